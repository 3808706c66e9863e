"""A distributed array from one layout to another: who sends what to whom, in which
order. Without MPI; `isthmus.Redistribution` runs it."""

from .layouts import Layout, Replicate, Shard
from .schedule import schedule

__all__ = ["Layout", "Replicate", "Shard", "schedule"]
