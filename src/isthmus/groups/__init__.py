"""Forming groups of processes: chains, scans, sorts and splits, without MPI."""
