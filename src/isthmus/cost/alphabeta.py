"""Names of version 0.1 for machines; `machine` has them all."""

from .machine import AlphaBeta, Unequal

__all__ = ["AlphaBeta", "Unequal"]
