"""Aliases of version 0.1 for machines of nested units, now in `machine`."""

from .machine import Level, Machine as Hierarchy, Memory

__all__ = ["Hierarchy", "Level", "Memory"]
