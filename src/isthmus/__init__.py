"""Collective communication between and inside groups of MPI processes, at the limit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import distributions
from .collectives.schedule import schedule
from .groups.compare import register_comparison
from .groups.encoding import register_encoding
from .redistribution import Layout, Replicate, Shard

if TYPE_CHECKING:
    from . import lab
    from .mpi import (
        Chain,
        Group,
        Intercomm,
        Intracomm,
        MismatchError,
        ProcessLost,
        Redistribution,
        Stalled,
        couple,
        hierarchy,
        rank_items,
        recording,
        split,
        stalled_report,
    )

__all__ = [
    "Chain",
    "Group",
    "Intercomm",
    "Intracomm",
    "Layout",
    "MismatchError",
    "ProcessLost",
    "Redistribution",
    "Replicate",
    "Shard",
    "Stalled",
    "__version__",
    "couple",
    "distributions",
    "hierarchy",
    "lab",
    "rank_items",
    "recording",
    "register_comparison",
    "register_encoding",
    "schedule",
    "split",
    "stalled_report",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The names that need MPI, which starts when one of them is first used; the lab."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "lab":
        return import_module(".lab", __name__)
    from . import mpi

    value = globals()[name] = getattr(mpi, name)
    return value
