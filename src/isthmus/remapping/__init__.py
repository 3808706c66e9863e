"""Remapping by a sparse matrix of weights, from grid to grid: reading weights, and the
product of a rank. Nothing here needs MPI; `isthmus.Remapping` runs the rounds."""
