"""Python objects: large arrays travel straight from their memory."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from . import buffers, forms, forms_inter, forms_intra
from .buffers import Message
from .call import Call
from .context_inter import InterContext
from .context_intra import IntraContext
from .counts import alone, complete

#: buffers begin at multiples of this, as numpy likes them
ALIGN = 64
_PAD = bytes(ALIGN)


def _padded(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def _encode(obj: Any) -> list[Any]:
    """An object as buffers: how long each part is, the pickle, the large arrays."""
    pickled, large = MPI.pickle.dumps_oob(obj)
    parts = [pickled, *large]
    lengths = [MPI.memory(x).nbytes for x in parts]
    head = np.array([len(parts), *lengths], np.int64)
    found: list[Any] = []
    for part in (head, *parts):
        n = MPI.memory(part).nbytes
        found += [part, _PAD[: _padded(n) - n]]
    return [x for x in found if MPI.memory(x).nbytes]


def _decode(data: np.ndarray) -> Any:
    """The object that was encoded; its large arrays stay where they arrived."""
    n = int(data[:8].view(np.int64)[0])
    lengths = data[8 : 8 * (n + 1)].view(np.int64).tolist()
    starts = accumulate(map(_padded, lengths), initial=_padded(8 * (n + 1)))
    parts = [data[at : at + k] for at, k in zip(starts, lengths, strict=False)]
    return MPI.pickle.loads_oob(parts[0], parts[1:])


def _message(parts: list[Any]) -> Message:
    """Buffers anywhere in memory, as blocks of one message."""
    found = [MPI.memory(x) for x in parts]
    counts = tuple(x.nbytes for x in found)
    return Message(parts, 0, MPI.BYTE, counts, tuple(x.address for x in found))


def exchange(context: InterContext, obj: Any, name: str) -> list[Any]:
    """Exchange objects with the other group: first lengths, then bytes."""
    send = _message(_encode(obj))
    length, lengths = np.array([sum(send.counts)]), np.empty(context.there, np.int64)
    sizes = buffers.block(length, False), buffers.block(lengths, True, context.there)
    call = Call(context, name, *sizes, v=False)
    forms.blocking(context, None, forms_inter.plan(call, None))
    arrived = [np.empty(n, np.uint8) for n in lengths.tolist()]
    call = Call(context, name, send, _message(arrived), v=True)
    if context.must_ask(name):
        own = complete(forms_inter.question(call).ask(tag=0))
    else:
        own = alone(context, call.sent)
    forms.blocking(context, None, forms_inter.plan(call, own))
    return [_decode(data) for data in arrived]


def gather(context: IntraContext, obj: Any, name: str) -> list[Any]:
    """Gather objects inside a group: first lengths, then bytes."""
    send = _message(_encode(obj))
    lengths = np.empty(context.p, np.int64)
    context.comm.Allgather(np.array([sum(send.counts)]), lengths)
    arrived = [np.empty(n, np.uint8) for n in lengths.tolist()]
    call = Call(context, name, send, _message(arrived), v=True)
    plan = forms_intra.plan(call, forms_intra.settle(call))
    forms.blocking(context, None, plan)
    return [_decode(data) for data in arrived]
