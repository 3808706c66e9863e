"""Starting MPI programs with the mpiexec that is installed, here or on other hosts."""
