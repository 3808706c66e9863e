"""Python objects of any kind as buffers: large arrays in them are not pickled."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from ..buffers.user_buffer import Parts

#: buffers begin at multiples of this, as numpy likes them
ALIGNMENT = 64
_PADDING = bytes(ALIGNMENT)


def _padded(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def encode(obj: Any) -> Parts:
    """An object as buffers: how long each part is, the pickle, the large arrays."""
    pickled, large = MPI.pickle.dumps_oob(obj)
    parts: list[Any] = [pickled, *large]
    lengths = [MPI.memory(x).nbytes for x in parts]
    head = np.array([len(parts), *lengths], np.int64)
    owners: list[Any] = []
    for part in [head, *parts]:
        n = MPI.memory(part).nbytes
        owners += [part, _PADDING[: _padded(n) - n]]
    return Parts(tuple(x for x in owners if MPI.memory(x).nbytes))


def decode(data: np.ndarray) -> Any:
    """The object that was encoded; its large arrays stay where they arrived."""
    n = int(data[:8].view(np.int64)[0])
    lengths = data[8 : 8 * (n + 1)].view(np.int64).tolist()
    starts = accumulate(map(_padded, lengths), initial=_padded(8 * (n + 1)))
    parts = [data[at : at + k] for at, k in zip(starts, lengths, strict=False)]
    return MPI.pickle.loads_oob(parts[0], parts[1:])


def room_for(lengths: np.ndarray) -> list[np.ndarray]:
    """An array of bytes for each object of some length."""
    return [np.empty(n, np.uint8) for n in lengths.tolist()]
