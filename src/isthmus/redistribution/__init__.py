"""A distributed array from one layout to another: who sends what to whom, and in which
order. Nothing here needs MPI; `isthmus.Redistribution` runs the rounds."""
