"""Collectives of Python objects, which are encoded as bytes."""
