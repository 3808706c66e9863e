"""The environment variables of isthmus, all read in one place.

Rank 0 reads the variables when the first collective call on a communicator is made, for
all ranks and for the life of the communicator: ranks with different settings would take
different algorithms and hang.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

#: the path of a tuning file, or "none"
TUNING = "ISTHMUS_TUNING"
#: whether all ranks compare their arguments before each call
CHECK = "ISTHMUS_CHECK"
#: how buffers in device memory travel, one of DEVICE_MODES
DEVICE = "ISTHMUS_DEVICE"
DEVICE_MODES = ("direct", "stage", "refuse")

#: the most consecutive ranks of a node that share memory, if not all of the node
PER_NODE = "ISTHMUS_PER_NODE"
#: whether "auto" measures its candidates while a program runs; else sizes decide alone
TRIAL = "ISTHMUS_TRIAL"

#: the most seconds that a process waits in any call
TIMEOUT = "ISTHMUS_TIMEOUT"

#: Python files with algorithms of users
IMPORT = "ISTHMUS_IMPORT"

#: what precedes the name of an operation in the variable of its algorithm: between
#: groups as in ISTHMUS_BCAST, inside a group as in ISTHMUS_INTRA_BCAST
BETWEEN_PREFIX, INSIDE_PREFIX = "ISTHMUS_", "ISTHMUS_INTRA_"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a communicator, alike on all ranks."""

    checked: bool
    #: the values of variables that may name an algorithm
    algorithms: Mapping[str, str]
    #: the most ranks of a node that share memory; 0 for all
    per_node: int = 0
    #: whether "auto" measures its candidates
    trial: bool = True
    #: how buffers in device memory travel; None leaves the choice to isthmus
    device: str | None = None

    def algorithm(self, prefix: str, operation: str) -> str:
        """The algorithm that a variable names for an operation, or "auto".

        The prefix is BETWEEN_PREFIX or INSIDE_PREFIX.
        """
        operations = [operation.upper()]
        if operation == "Allgatherv":  # has the algorithms of Allgather, and is one too
            operations.append("ALLGATHER")
        values = (self.algorithms.get(prefix + name) for name in operations)
        return next((name for name in values if name), "auto")


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in the environment of this process."""
    environ = os.environ if environ is None else environ
    algorithms = {
        name: value
        for name, value in environ.items()
        if name.startswith(BETWEEN_PREFIX)
    }
    return Settings(
        checked=environ.get(CHECK, "0") not in ("", "0"),
        algorithms=algorithms,
        per_node=int(environ.get(PER_NODE) or 0),
        trial=environ.get(TRIAL, "1") not in ("", "0"),
        device=device(environ),
    )


def device(environ: Mapping[str, str] | None = None) -> str | None:
    """The mode for buffers in device memory; None if the variable is not set."""
    environ = os.environ if environ is None else environ
    mode = environ.get(DEVICE) or None
    if mode not in (None, *DEVICE_MODES):
        raise ValueError(f"{DEVICE}={mode}: it is one of {', '.join(DEVICE_MODES)}")
    return mode


def timeout(environ: Mapping[str, str] | None = None) -> float | None:
    """The most seconds that the process waits; None without a limit."""
    environ = os.environ if environ is None else environ
    return seconds(environ.get(TIMEOUT) or None, TIMEOUT)


def seconds(value: str | float | None, name: str) -> float | None:
    """A value as a time limit: a positive number of seconds, or None for no limit.

    Anything else is refused, with the name of the option or variable in the message.
    """
    try:
        limit = None if value is None else float(value)
    except (TypeError, ValueError):
        limit = -1.0
    if limit is not None and not 0 < limit < float("inf"):
        raise ValueError(f"{name} is {value!r}, not a positive number of seconds")
    return limit


def plugins(environ: Mapping[str, str] | None = None) -> list[str]:
    """The files from which algorithms of users are imported."""
    environ = os.environ if environ is None else environ
    return [path for path in environ.get(IMPORT, "").split(os.pathsep) if path]
