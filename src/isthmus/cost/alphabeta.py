"""Aliases of version 0.1 for machines without nested units, now in `machine`."""

from .machine import AlphaBeta, Unequal

__all__ = ["AlphaBeta", "Unequal"]
