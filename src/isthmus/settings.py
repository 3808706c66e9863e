"""What environment variables ask for: all of them, read in one place.

Rank 0 reads them when the first collective call on a communicator is made, for all its
ranks and for as long as it lives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

#: the path of a tuning file, or "none"
TUNING = "ISTHMUS_TUNING"
#: whether all ranks compare their arguments before every call
CHECK = "ISTHMUS_CHECK"
#: what is done with buffers in device memory: see DEVICES
DEVICE = "ISTHMUS_DEVICE"
DEVICES = ("direct", "stage", "refuse")

#: so many ranks that follow each other share memory at most, fewer than those of a node
PER_NODE = "ISTHMUS_PER_NODE"
#: whether what may be chosen is measured while a program runs; else sizes alone decide
TRIAL = "ISTHMUS_TRIAL"

#: how many seconds a process waits at most, in any call
TIMEOUT = "ISTHMUS_TIMEOUT"

#: Python files with algorithms of users
IMPORT = "ISTHMUS_IMPORT"

#: followed by the name of an operation in capitals, each names an algorithm: between
#: groups as ISTHMUS_BCAST, inside one as ISTHMUS_INTRA_BCAST
BETWEEN, INSIDE = "ISTHMUS_", "ISTHMUS_INTRA_"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a communicator."""

    checked: bool
    #: the variables that may name an algorithm, and what they say
    algorithms: Mapping[str, str]
    #: ranks of a node that share memory; 0 for all
    per_node: int = 0
    trial: bool = True
    #: what is done with buffers in device memory, if that is asked
    device: str | None = None

    def algorithm(self, prefix: str, operation: str) -> str:
        """The algorithm asked for an operation, BETWEEN groups or INSIDE one."""
        names = [operation.upper()]
        if operation == "Allgatherv":  # has the algorithms of Allgather, and is one too
            names.append("ALLGATHER")
        asked = (self.algorithms.get(prefix + name) for name in names)
        return next((name for name in asked if name), "auto")


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """What the variables say now."""
    environ = os.environ if environ is None else environ

    return Settings(
        environ.get(CHECK, "0") not in ("", "0"),
        {name: said for name, said in environ.items() if name.startswith(BETWEEN)},
        int(environ.get(PER_NODE) or 0),
        environ.get(TRIAL, "1") not in ("", "0"),
        device(environ),
    )


def device(environ: Mapping[str, str] | None = None) -> str | None:
    """What is asked for buffers in device memory, if anything."""
    environ = os.environ if environ is None else environ
    found = environ.get(DEVICE) or None
    if found not in (None, *DEVICES):
        raise ValueError(f"{DEVICE}={found}: it is one of {', '.join(DEVICES)}")
    return found


def timeout(environ: Mapping[str, str] | None = None) -> float | None:
    """How many seconds this process waits at most; None for as long as it takes."""
    environ = os.environ if environ is None else environ
    return seconds(environ.get(TIMEOUT) or None, TIMEOUT)


def seconds(given: str | float | None, name: str) -> float | None:
    """A limit, if it is one: a positive number of seconds, or None."""
    try:
        found = None if given is None else float(given)
    except (TypeError, ValueError):
        found = -1.0
    if found is not None and not 0 < found < float("inf"):
        raise ValueError(f"{name} is {given!r}, not a positive number of seconds")
    return found


def plugins(environ: Mapping[str, str] | None = None) -> list[str]:
    """The files from which algorithms of users are imported."""
    environ = os.environ if environ is None else environ
    return [path for path in environ.get(IMPORT, "").split(os.pathsep) if path]
