"""Redistributions on a communicator: set-up, plans, and the three forms of a call."""
