"""The context of a communicator: private communicators, channels, costs, failures."""
