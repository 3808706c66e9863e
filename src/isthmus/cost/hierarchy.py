"""Names of version 0.1 for machines; `machine` has them all."""

from .machine import Level, Machine as Hierarchy, Memory

__all__ = ["Hierarchy", "Level", "Memory"]
