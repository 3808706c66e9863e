"""The engine: rounds run on a user's communicators. Only this folder knows mpi4py."""

from .chain import Chain
from .check import MismatchError
from .groups import Group, couple, hierarchy, rank_items, split
from .intercomm import Intercomm
from .intracomm import Intracomm
from .recorder import recording

__all__ = [
    "Chain",
    "Group",
    "Intercomm",
    "Intracomm",
    "MismatchError",
    "couple",
    "hierarchy",
    "rank_items",
    "recording",
    "split",
]
