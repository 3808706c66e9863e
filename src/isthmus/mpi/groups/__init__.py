"""Chains and splits on MPI."""
