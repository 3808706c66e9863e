"""Operators in Python that raise, in the middle of a scan or a reduction of objects.

mpi4py ends the program where an operator of MPI raises, as MPI cannot go on
(tests/mpi/test_misuse.py). Collectives on a chain call the operator themselves: there
the error is the user's to catch. Nobody may get wrong data then, nobody may wait longer
than the limit, and the rank whose operator raised makes no call that others take for
this one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import isthmus

from .series import FaultError, made

if TYPE_CHECKING:
    from .modes import Stage

#: seconds that a rank waits for the others, and in which a refused call must raise
LIMIT_SECONDS, REFUSED_SECONDS = 2.0, 1.0


class OperatorError(Exception):
    """The error of an operator of the fuzz's."""


@dataclass
class _Joining:
    """An operator that joins texts, and raises when it is applied so many times."""

    raises_at: int = 0
    applied: int = 0

    def __call__(self, x: str, y: str) -> str:
        self.applied += 1
        if self.applied == self.raises_at:
            raise OperatorError(f"at the {self.applied}th time")
        return x + y


@dataclass
class _Said:
    """What a call gave on one rank."""

    is_right: bool
    error: str
    seconds: float


#: calls on a chain with a text and an operator, and what they give on a rank of so many
_CALLS: dict[str, tuple[Callable[..., Any], Callable[[int, int], Any]]] = {
    "scan": (lambda c, x, op: c.scan(x, op), lambda r, n: _joined(0, r + 1)),
    "exscan": (
        lambda c, x, op: c.exscan(x, op),
        lambda r, n: _joined(0, r) if r else None,
    ),
    "double_scan": (
        lambda c, x, op: (lambda s: (s.upto, s.onward))(c.double_scan(x, op)),
        lambda r, n: (_joined(0, r + 1), _joined(r, n)),
    ),
    "allreduce": (lambda c, x, op: c.allreduce(x, op), lambda r, n: _joined(0, n)),
    "reduce": (
        lambda c, x, op: c.reduce(x, op, root=c.size - 1),
        lambda r, n: _joined(0, n) if r == n - 1 else None,
    ),
}


def operators(stage: Stage) -> None:
    """An operator that raises on one rank, after calls in which it does not."""
    everyone = stage.world.Dup()
    comm = isthmus.Intracomm(everyone)
    comm.timeout = LIMIT_SECONDS
    chain = isthmus.Chain.from_comm(comm)
    name = str(stage.rng.choice(list(_CALLS)))
    odd = int(stage.rng.integers(everyone.size))
    raises_at = 1 + int(stage.rng.integers(3))
    for _ in range(int(stage.rng.integers(3))):
        if not (said := _call(chain, name, 0)).is_right:
            raise FaultError(f"{name} of a chain: {said}")
    everyone.Barrier()
    calls = [_call(chain, name, raises_at if everyone.rank == odd else 0)]
    calls.append(_call(chain, name, 0))
    rows = stage.world.allgather(calls)
    where = f"{name}, the operator of rank {odd} raises at its {raises_at}th time"
    for rank, row in enumerate(rows):
        for said in row:
            if not said.is_right and not said.error:
                raise FaultError(f"{where}: rank {rank} has wrong data")
            if said.seconds > 3 * LIMIT_SECONDS:
                raise FaultError(f"{where}: rank {rank} took {said.seconds:.1f} s")
    first, second = rows[odd]
    if not first.error:  # it is not applied so often there
        if not all(said.is_right for row in rows for said in row):
            raise FaultError(f"{where}: it does not, and others fail: {rows}")
    elif not first.error.startswith(OperatorError.__name__):
        raise FaultError(f"{where}: the rank itself has {first.error}")
    elif not second.error or second.seconds > REFUSED_SECONDS:
        raise FaultError(f"{where}: the next call of that rank: {second}")


def _joined(low: int, high: int) -> str:
    return "".join(f"<{i}>" for i in range(low, high))


def _call(chain: Any, name: str, raises_at: int) -> _Said:
    """Make one call, whatever comes of it."""
    make, wanted = _CALLS[name]
    made[name] += 1
    begin, value, error = time.monotonic(), None, ""
    try:
        value = make(chain, f"<{chain.rank}>", _Joining(raises_at))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    is_right = not error and value == wanted(chain.rank, chain.size)
    return _Said(is_right, error, time.monotonic() - begin)
