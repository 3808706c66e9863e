"""The engine: rounds run on a user's communicators. Only this folder knows mpi4py."""

from .comm.intercomm import Intercomm
from .comm.intracomm import Intracomm
from .comm.report import stalled_report
from .context.check import MismatchError
from .groups.chain import Chain
from .groups.groups import Group, couple, hierarchy, rank_items, split
from .measure.recorder import recording
from .redistribution.redistribution import Redistribution
from .waiting.errors import ProcessLost, Stalled

__all__ = [
    "Chain",
    "Group",
    "Intercomm",
    "Intracomm",
    "MismatchError",
    "ProcessLost",
    "Redistribution",
    "Stalled",
    "couple",
    "hierarchy",
    "rank_items",
    "recording",
    "split",
    "stalled_report",
]
