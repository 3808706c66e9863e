"""Chains, and splits into groups, on a user's communicator."""
