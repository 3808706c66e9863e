"""Remappings on a communicator."""
