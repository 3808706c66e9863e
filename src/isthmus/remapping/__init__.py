"""Remapping from grid to grid by a sparse matrix: weights, and the product of a rank.

Nothing needs MPI, so products are tested without ranks. `isthmus.Remapping` runs the
rounds.
"""
