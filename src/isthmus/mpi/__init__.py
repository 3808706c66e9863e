"""The engine: rounds run on a user's communicators. Only this folder knows mpi4py."""

from .comm.coupling import Coupling
from .comm.intercomm import Intercomm
from .comm.intracomm import Intracomm
from .context.check import MismatchError
from .groups.chain import Chain
from .groups.groups import Group, couple, hierarchy, rank_items, split
from .measure.recorder import recording
from .redistribution.redistribution import Redistribution

__all__ = [
    "Chain",
    "Coupling",
    "Group",
    "Intercomm",
    "Intracomm",
    "MismatchError",
    "Redistribution",
    "couple",
    "hierarchy",
    "rank_items",
    "recording",
    "split",
]
