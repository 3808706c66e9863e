"""The ways of MPI libraries: algorithms to compare with, mostly through one process."""
