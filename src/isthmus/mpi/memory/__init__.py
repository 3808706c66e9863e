"""Buffers, pieces of memory, staging, operators, the memory of a node."""
