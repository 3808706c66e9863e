"""What is kept for a communicator: private communicators, costs, choices."""
