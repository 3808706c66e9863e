"""Calls that one rank can see to be wrong, and that must be refused without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from .transfers import REDUCTIONS, ROOTED

Rng = np.random.Generator
Arguments = tuple[Any, ...]


def _read_only() -> np.ndarray:
    array = np.zeros(64)
    array.flags.writeable = False
    return array


#: in place of a buffer: nobody can send from it or receive into it
_NO_BUFFERS: dict[str, Callable[[], Any]] = {
    "an array with strides": lambda: np.zeros((6, 2))[:, 0],
    "no buffer": object,
    "a number": lambda: 3.5,
    "an unknown type": lambda: [np.zeros(8), "no such type"],
    "a count that is too large": lambda: [np.zeros(2), 1000, MPI.DOUBLE],
    "a negative count": lambda: [np.zeros(8), -3, MPI.DOUBLE],
    "too many items": lambda: [np.zeros(8), 1, 0, MPI.DOUBLE, 7, 7],
    "counts of text": lambda: [np.zeros(8), "no count", MPI.DOUBLE],
    "MPI.BOTTOM without a type": lambda: MPI.BOTTOM,
    "an empty list": list,
}


def spoil(rng: Rng, op: str, args: Arguments) -> tuple[str, Arguments, dict[str, Any]]:
    """What is wrong, and the arguments of a call that has it."""
    is_buffer = [x is not None and x is not MPI.IN_PLACE for x in args[:2]]
    if op == "Bcast":
        is_buffer = [True]
    ways = ["a buffer"] * 4 + ["the algorithm"]
    ways += ["the operator"] * (op in REDUCTIONS) + ["the root"] * (op in ROOTED)
    way = str(rng.choice(ways))
    at = int(rng.choice(np.flatnonzero(is_buffer)))
    changed = list(args)
    if way == "the algorithm":
        return "an unknown algorithm", args, {"algorithm": "no such thing"}
    if way == "the operator":
        k = next(i for i, x in enumerate(args) if isinstance(x, MPI.Op))
        changed[k] = "a word" if rng.random() < 0.5 else MPI.OP_NULL
    elif way == "the root":
        changed[-1] = 1 << 20
    else:
        way = str(rng.choice(list(_NO_BUFFERS)))
        changed[at] = _NO_BUFFERS[way]()
    return way, tuple(changed), {}
