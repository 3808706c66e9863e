"""The costs of messages on a communicator, and the times of candidates."""
