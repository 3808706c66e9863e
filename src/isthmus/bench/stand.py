"""The processes of the world in groups, and the trials of a comparison.

A trial owns no buffers: all contenders of a case share buffers, since a call's speed
depends on the places of its arrays. Before each repetition the receive buffer is made
wrong everywhere, so that a call without an effect is noticed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ..mpi import forms
from ..mpi.comm import intercomm, intracomm  # noqa: F401  they enter their classes
from ..mpi.comm.family import as_isthmus
from ..mpi.costs.tuning import library as library
from . import by_hand
from .calls import CALL_MAKERS, CheckedCall, Seat
from .job import NATIVE_BY_NAME, BenchCase, Contender

EMPTY_MESSAGE, NO_BYTES = bytearray(), np.empty(0, np.uint8)

#: the data of all ranks of a group in rank order, for the bytes of each rank and the
#: number of the group
Content = Callable[[tuple[int, ...], int], np.ndarray]


def settle(comm: Any, operation: str) -> None:
    """Make all steps of the trials that the choice for an operation rests on.

    The calls of a program make these steps, one each. In a measurement the steps would
    be a part of the times of some calls, and of all calls of a case with few calls.
    """
    context = comm._context()
    while context.warm_up(operation) is not None:
        context.advance_trial(operation, partial(forms.run, comm, context))


def random_bytes(sizes: tuple[int, ...], side: int) -> np.ndarray:
    """Random bytes of all ranks of a group, equal on every rank."""
    rng = np.random.default_rng([side, len(sizes)])
    return rng.integers(0, 256, sum(sizes), np.uint8)


def fresh(argument: Any) -> Any:
    """An argument with a new view of its array.

    Programs pass slices, new objects at each call, so a call must not profit from
    objects of an earlier call.
    """
    if isinstance(argument, np.ndarray):
        return argument[:]
    if isinstance(argument, list) and argument and isinstance(argument[0], np.ndarray):
        return [argument[0][:], *argument[1:]]
    return argument


def on_views(
    call: Callable[..., Any], arguments: Sequence[Any], **options: Any
) -> Callable[[], None]:
    """A call with new views of its arrays each time."""

    def run() -> None:
        call(*[fresh(argument) for argument in arguments], **options)

    return run


class Trial:
    """A timed call, with the data that must arrive."""

    def __init__(
        self,
        run: Callable[[], object],
        recv: np.ndarray = NO_BYTES,
        expected: np.ndarray = NO_BYTES,
        taken: Callable[[], str] = lambda: "",
    ) -> None:
        self.run, self.taken = run, taken
        self.received, self.expected = recv.view(np.uint8), expected.view(np.uint8)

    def wipe(self) -> None:
        """Make the receive buffer wrong everywhere."""
        np.bitwise_not(self.expected, out=self.received)

    def right(self) -> bool:
        """Whether every byte of the receive buffer is right on this rank."""
        return bool((self.received == self.expected).all())

    def free(self) -> None:
        """Free the request of a persistent trial; others have none."""


class PersistentTrial(Trial):
    """A trial of a persistent request: of starting and waiting, not of making it."""

    def __init__(
        self, request: MPI.Prequest, recv: np.ndarray, expected: np.ndarray
    ) -> None:
        super().__init__(self.start_and_wait, recv, expected)
        self.request = request

    def start_and_wait(self) -> None:
        """Start the request once and wait for it."""
        self.request.Start()
        self.request.Wait()

    def free(self) -> None:
        """Free the persistent request."""
        self.request.Free()


class Stand:
    """The processes of the world in one group, or in two with an intercommunicator.

    `side` is the number of this rank's group, `sender_side` the number of the group
    that sends to this rank.
    """

    def __init__(
        self,
        groups: tuple[int, ...],
        content: Content = random_bytes,
        same_arrays: bool = False,
    ) -> None:
        """Make the communicators; with `same_arrays`, trials pass no new views."""
        self.same_arrays = same_arrays
        self.comm = MPI.COMM_WORLD.Dup()
        if sum(groups) != self.comm.size:
            raise ValueError(
                f"groups of {' and '.join(map(str, groups))} processes need "
                f"{sum(groups)}; there are {self.comm.size}"
            )
        self.content = content
        self.rank = self.comm.rank
        self.side = int(self.rank >= groups[0])
        self.sender_side = len(groups) - 1 - self.side
        self.local = MPI.Intracomm(self.comm.Split(self.side, self.rank))
        self.native: Any = self.local
        if len(groups) == 2:
            leader = 0 if self.side else groups[0]
            self.native = self.local.Create_intercomm(0, self.comm, leader, 1)
        self.ours: Any = as_isthmus(self.native)
        #: the case for which `_checked_call` or `_matrix_side` was made
        self._case: BenchCase | None = None
        self._checked_call: CheckedCall
        self._matrix_side: by_hand.MatrixSide

    def _allgather(self, case: BenchCase) -> CheckedCall:
        """An allgather of the content: the only call whose data a job can choose."""
        sizes = (case.a, case.b)
        whole = self.content(sizes[self.side], self.side)
        expected = self.content(sizes[self.sender_side], self.sender_side)
        ends = np.cumsum((0, *sizes[self.side])) // whole.itemsize
        i = self.local.rank
        send = whole[ends[i] : ends[i + 1]].copy()
        recv = np.empty_like(expected)
        spec: Any = recv
        if case.op == "allgatherv":
            spec = [recv, [n // recv.itemsize for n in sizes[self.sender_side]]]
        return CheckedCall((send, spec), recv, expected)

    def checked_call(self, case: BenchCase) -> CheckedCall:
        """The call of a case with its buffers, made once for all contenders."""
        if self._case != case:
            self._case, self._checked_call = case, self._make_call(case)
        return self._checked_call

    def _make_call(self, case: BenchCase) -> CheckedCall:
        if case.op.startswith("allgather"):
            return self._allgather(case)
        sizes = (case.a, case.b) if self.side == 0 else (case.b, case.a)
        return CALL_MAKERS[case.op](Seat(self.side, self.local.rank, *sizes))

    def prepare(self, case: BenchCase, contender: Contender) -> Trial:
        """The trial of a contender in a case."""
        if case.op == "redistribution":
            return self._redistribution(case, contender)
        arguments, recv, expected = self.checked_call(case)
        if contender.algorithm == "copy":
            return Trial(lambda: np.copyto(recv, expected), recv, expected)
        name = case.op.capitalize()
        if contender.algorithm == "native" and not contender.persistent:
            call = getattr(self.native, name)
            run = self._bound(call, arguments)
            return Trial(run, recv, expected)
        auto = contender.algorithm == "auto"  # users call without the option
        algorithm = "native" if contender == NATIVE_BY_NAME else contender.algorithm
        options = {} if auto else {"algorithm": algorithm}
        if contender.persistent:
            request = getattr(self.ours, f"{name}_init")(*arguments, **options)
            return PersistentTrial(request, recv, expected)
        if auto:
            settle(self.ours, name)
        call = getattr(self.ours, name)
        run = self._bound(call, arguments, **options)
        taken = self.ours._last_algorithm if auto else (lambda: contender.algorithm)
        return Trial(run, recv, expected, taken)

    def _redistribution(self, case: BenchCase, contender: Contender) -> Trial:
        """The trial of a contender in a redistribution."""
        if self._case != case:
            self._case, self._matrix_side = case, by_hand.MatrixSide(self, case)
        side, name = self._matrix_side, contender.algorithm
        run = by_hand.contender(side, name, contender.persistent)
        receives = slice(None) if not side.sends else slice(0)
        array, expected = side.array.reshape(-1), side.expected.reshape(-1)
        return Trial(run, array[receives], expected[receives], lambda: name)

    def _bound(
        self, call: Callable[..., Any], arguments: Sequence[Any], **options: Any
    ) -> Callable[[], Any]:
        """A call with its arguments: fixed arrays, or new views of the arrays at each
        call."""
        if self.same_arrays:
            return partial(call, *arguments, **options)
        return on_views(call, arguments, **options)

    def barrier(self) -> None:
        """Wait for all ranks, twice: after the second time all begin close together.

        In round k each rank sends to the rank 2^k after its own (dissemination,
        Hensgen, Finkel and Manber 1988). A common barrier for all libraries and
        contenders lets all of them begin with equal messages behind them.
        """
        n = self.comm.size
        for _ in range(2):
            distance = 1
            while distance < n:
                target, source = (self.rank + distance) % n, (self.rank - distance) % n
                self.comm.Sendrecv(EMPTY_MESSAGE, target, 0, EMPTY_MESSAGE, source, 0)
                distance *= 2

    def worst(self, values: Sequence[float]) -> list[float]:
        """The largest of each value on any rank; collective."""
        largest = np.array(values, float)
        self.comm.Allreduce(MPI.IN_PLACE, largest, MPI.MAX)
        return [float(value) for value in largest]

    def free(self) -> None:
        """Free the communicators; inside one group two are one."""
        for comm in {id(x): x for x in (self.native, self.local, self.comm)}.values():
            comm.Free()


def world() -> MPI.Intracomm:
    """A private duplicate of the processes that were started together."""
    return MPI.Intracomm(MPI.COMM_WORLD.Dup())


def world_size() -> int:
    """The number of processes that were started together."""
    return MPI.COMM_WORLD.size


def abort(error: BaseException) -> None:
    """End all processes, since all others would wait for this process for ever."""
    traceback.print_exception(error)
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)
