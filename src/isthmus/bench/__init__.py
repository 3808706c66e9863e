"""Measuring: isthmus against the MPI library's own calls, on the user's machine."""
