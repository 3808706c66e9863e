"""Algorithms of MPI libraries, to compare with: mostly through one process."""
