"""What a user passed, read into values and buffers before anything is sent."""
