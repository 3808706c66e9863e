"""Starting MPI programs with the installed mpiexec, on this host or on others."""
