"""From grid to grid by a sparse matrix of weights: reading them, and the product of a
rank. Without MPI; `isthmus.Remapping` runs it."""
