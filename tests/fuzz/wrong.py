"""Calls that one rank can see to be wrong, and that must be refused without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from .transfers import REDUCTIONS, ROOTED

Rng = np.random.Generator
Arguments = tuple[Any, ...]


def _read_only(spec: Any) -> Any:
    """A buffer of an array that cannot be written: alike to the one in its place in all
    by which a plan is found, so that it is refused after the plan."""
    if isinstance(spec, list | tuple):
        return type(spec)((_read_only(spec[0]), *spec[1:]))
    array = spec.copy()
    array.flags.writeable = False
    return array


def _is_array(spec: Any) -> bool:
    """Whether a buffer is an array with bytes, alone or in a list."""
    first = spec[0] if isinstance(spec, list | tuple) and spec else spec
    return isinstance(first, np.ndarray) and first.nbytes > 0


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
    if op != "Bcast" and len(args) > 1 and _is_array(args[1]):
        ways += ["a buffer that cannot be written"] * 3
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
    elif way == "a buffer that cannot be written":
        changed[1] = _read_only(args[1])
    else:
        way = str(rng.choice(list(_NO_BUFFERS)))
        changed[at] = _NO_BUFFERS[way]()
    return way, tuple(changed), {}
