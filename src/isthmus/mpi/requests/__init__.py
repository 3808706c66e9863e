"""Requests of nonblocking and persistent calls, and the thread that advances calls."""
