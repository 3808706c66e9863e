"""Redistributions on a communicator."""
