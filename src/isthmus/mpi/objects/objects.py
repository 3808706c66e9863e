"""Python objects gathered to all: large arrays travel straight from their memory."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from ..context.context import Context
from ..engine import engine
from ..memory.buffers import Message

#: buffers begin at multiples of this, as numpy likes them
ALIGN = 64
_PAD = bytes(ALIGN)


def _padded(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def encode(obj: Any) -> list[Any]:
    """An object as buffers: how long each part is, the pickle, the large arrays."""
    pickled, large = MPI.pickle.dumps_oob(obj)
    parts: list[Any] = [pickled, *large]
    lengths = [MPI.memory(x).nbytes for x in parts]
    head = np.array([len(parts), *lengths], np.int64)
    found: list[Any] = []
    for part in [head, *parts]:
        n = MPI.memory(part).nbytes
        found += [part, _PAD[: _padded(n) - n]]
    return [x for x in found if MPI.memory(x).nbytes]


def decode(data: np.ndarray) -> Any:
    """The object that was encoded; its large arrays stay where they arrived."""
    n = int(data[:8].view(np.int64)[0])
    lengths = data[8 : 8 * (n + 1)].view(np.int64).tolist()
    starts = accumulate(map(_padded, lengths), initial=_padded(8 * (n + 1)))
    parts = [data[at : at + k] for at, k in zip(starts, lengths, strict=False)]
    return MPI.pickle.loads_oob(parts[0], parts[1:])


def message(parts: list[Any]) -> Message:
    """Buffers anywhere in memory, as blocks of one message."""
    found = [MPI.memory(x) for x in parts]
    counts = tuple(x.nbytes for x in found)
    return Message(parts, 0, MPI.BYTE, counts, tuple(x.address for x in found))


def allgather(tasks: Any, context: Context, data: list[Any], name: str) -> list[Any]:
    """Gather encoded objects, of one group or two: how long they are, then their
    bytes."""
    send = message(data)
    with context.uninterrupted("allgather"):
        sizes = np.empty(len(context.senders), np.int64)
        own = np.array([sum(send.counts)])
        engine.once(tasks.allgather(context, name, own, sizes))
        arrived = [np.empty(n, np.uint8) for n in sizes.tolist()]
        engine.once(tasks.gathered(context, name, send, message(arrived), True))
    return [decode(data) for data in arrived]
