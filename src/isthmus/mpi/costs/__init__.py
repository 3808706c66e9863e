"""What messages and candidates cost on a communicator: measured, or from a file."""
