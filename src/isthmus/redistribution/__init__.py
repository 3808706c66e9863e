"""A distributed array from one layout to another: who sends what to whom, in which
order. Without MPI; `isthmus.Redistribution` runs it."""
