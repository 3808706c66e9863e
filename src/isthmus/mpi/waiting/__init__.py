"""Waiting with and without a time limit, and the errors that end a wait."""
