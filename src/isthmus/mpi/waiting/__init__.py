"""Waiting: with a limit and without one."""
