"""Collective communication between and inside groups of MPI processes, at the limit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import adapters, distributions, lab
    from .bench.recorder import recording
    from .facade import redistribution_schedule, schedule
    from .groups.compare import register_comparison
    from .groups.encoding import register_encoding
    from .mpi.comm.coupling import Coupling
    from .mpi.comm.intercomm import Intercomm
    from .mpi.comm.intracomm import Intracomm
    from .mpi.comm.report import stalled_report
    from .mpi.groups.chain import Chain
    from .mpi.groups.groups import Group, couple, hierarchy, rank_items, split
    from .mpi.redistribution.redistribution import Redistribution
    from .mpi.remapping.remapping import Remapping
    from .mpi.waiting.errors import Interrupted, MismatchError, ProcessLost, Stalled
    from .redistribution.layouts import Layout, Replicate, Shard

__version__ = "0.1.0"

#: the module of each public name; MPI starts when a name of `mpi` is first used
_HOMES = {
    "Chain": "mpi.groups.chain",
    "Coupling": "mpi.comm.coupling",
    "Group": "mpi.groups.groups",
    "Intercomm": "mpi.comm.intercomm",
    "Interrupted": "mpi.waiting.errors",
    "Intracomm": "mpi.comm.intracomm",
    "Layout": "redistribution.layouts",
    "MismatchError": "mpi.waiting.errors",
    "ProcessLost": "mpi.waiting.errors",
    "Redistribution": "mpi.redistribution.redistribution",
    "Remapping": "mpi.remapping.remapping",
    "Replicate": "redistribution.layouts",
    "Shard": "redistribution.layouts",
    "Stalled": "mpi.waiting.errors",
    "couple": "mpi.groups.groups",
    "hierarchy": "mpi.groups.groups",
    "rank_items": "mpi.groups.groups",
    "recording": "bench.recorder",
    "redistribution_schedule": "facade",
    "register_comparison": "groups.compare",
    "register_encoding": "groups.encoding",
    "schedule": "facade",
    "split": "mpi.groups.groups",
    "stalled_report": "mpi.comm.report",
}

__all__ = [
    "Chain",
    "Coupling",
    "Group",
    "Intercomm",
    "Interrupted",
    "Intracomm",
    "Layout",
    "MismatchError",
    "ProcessLost",
    "Redistribution",
    "Remapping",
    "Replicate",
    "Shard",
    "Stalled",
    "__version__",
    "adapters",
    "couple",
    "distributions",
    "hierarchy",
    "lab",
    "rank_items",
    "recording",
    "redistribution_schedule",
    "register_comparison",
    "register_encoding",
    "schedule",
    "split",
    "stalled_report",
]


def __getattr__(name: str) -> Any:
    """A public object, imported when its name is first used."""
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in __all__:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
