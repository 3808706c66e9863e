"""Communicators of ours: public methods, and nothing else."""
