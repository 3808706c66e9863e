"""The arguments of a call, read into values, buffers and a task before any message."""
