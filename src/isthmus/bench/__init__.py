"""Measurements of isthmus against the MPI library's own calls on a user's machine."""
