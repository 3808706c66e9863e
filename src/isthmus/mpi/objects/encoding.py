"""Python objects as buffers: large arrays inside are not pickled.

Large arrays travel from their own memory, behind a pickle of the rest, since a pickle
would contain a copy of every array. Decoded arrays lie in the memory of the message.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from ..buffers.user_buffer import Parts

#: every part begins at a multiple of so many bytes, so that arrays are aligned
PART_ALIGNMENT = 64
_PADDING = bytes(PART_ALIGNMENT)


def encode(obj: Any) -> Parts:
    """An object as buffers: the lengths of all parts, the pickle, the large arrays."""
    pickled, arrays = MPI.pickle.dumps_oob(obj)
    parts: list[Any] = [pickled, *arrays]
    lengths = [MPI.memory(part).nbytes for part in parts]
    head = np.array([len(parts), *lengths], np.int64)
    buffers: list[Any] = []
    for part in [head, *parts]:
        nbytes = MPI.memory(part).nbytes
        buffers += [part, _PADDING[: _padded(nbytes) - nbytes]]
    return Parts(tuple(buffer for buffer in buffers if MPI.memory(buffer).nbytes))


def decode(data: np.ndarray) -> Any:
    """The object of received bytes; large arrays are views of the bytes."""
    n = int(data[:8].view(np.int64)[0])
    lengths = data[8 : 8 * (n + 1)].view(np.int64).tolist()
    starts = accumulate(map(_padded, lengths), initial=_padded(8 * (n + 1)))
    pickled, *arrays = (
        data[start : start + length]
        for start, length in zip(starts, lengths, strict=False)
    )
    return MPI.pickle.loads_oob(pickled, arrays)


def room_for(lengths: np.ndarray) -> list[np.ndarray]:
    """An array of bytes for each object, from the lengths of the encoded objects."""
    return [np.empty(length, np.uint8) for length in lengths.tolist()]


def _padded(nbytes: int) -> int:
    return -(-nbytes // PART_ALIGNMENT) * PART_ALIGNMENT
