"""Starting MPI programs with the installed mpiexec, locally or on several hosts."""
