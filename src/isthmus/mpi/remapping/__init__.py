"""Remappings on a communicator: set-up of the weights, and steps with products."""
