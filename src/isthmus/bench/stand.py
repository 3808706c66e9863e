"""The world's processes in groups, with the contenders of a comparison."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ..mpi.comm import intercomm, intracomm  # noqa: F401  they enter their classes
from ..mpi.comm.family import ours
from ..mpi.costs.tuning import library as library
from . import by_hand
from .calls import CALLS, Call, Seat
from .job import Case, Contender

NOTHING, NO_BYTES = bytearray(), np.empty(0, np.uint8)

#: what all ranks of a group contribute together, in rank order: of which sizes in
#: bytes, for which group
Content = Callable[[tuple[int, ...], int], np.ndarray]


def random_bytes(sizes: tuple[int, ...], side: int) -> np.ndarray:
    """Bytes without any pattern, the same on every rank."""
    rng = np.random.default_rng([side, len(sizes)])
    return rng.integers(0, 256, sum(sizes), np.uint8)


def fresh(x: Any) -> Any:
    """An argument as a user passes it: a slice, which is another object every time."""
    if isinstance(x, np.ndarray):
        return x[:]
    if isinstance(x, list) and x and isinstance(x[0], np.ndarray):
        return [x[0][:], *x[1:]]
    return x


def on_views(call: Callable[..., Any], args: Sequence[Any], **more: Any) -> Any:
    """A call with other views of its arrays every time."""

    def run() -> None:
        call(*[fresh(x) for x in args], **more)

    return run


class Trial:
    """One way to do an operation, with buffers of its own."""

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
        """Nothing is held."""


class Persistent(Trial):
    """The same through a persistent request."""

    def __init__(
        self, request: MPI.Prequest, recv: np.ndarray, expected: np.ndarray
    ) -> None:
        super().__init__(self.start_and_wait, recv, expected)
        self.request = request

    def start_and_wait(self) -> None:
        """One round of the request."""
        self.request.Start()
        self.request.Wait()

    def free(self) -> None:
        """Give the request back."""
        self.request.Free()


class Stand:
    """The processes of the world in one group, or in two that are joined."""

    def __init__(
        self,
        groups: tuple[int, ...],
        content: Content = random_bytes,
        same_arrays: bool = False,
    ) -> None:
        """Calls get the same arrays every time, or other views of them."""
        self.same_arrays = same_arrays
        self.comm = MPI.COMM_WORLD.Dup()
        if sum(groups) != self.comm.size:
            raise ValueError(
                f"groups of {' and '.join(map(str, groups))} processes need "
                f"{sum(groups)}; there are {self.comm.size}"
            )
        self.content = content
        self.rank = self.comm.rank
        self.mine = int(self.rank >= groups[0])
        self.other = len(groups) - 1 - self.mine
        self.local = MPI.Intracomm(self.comm.Split(self.mine, self.rank))
        self.native: Any = self.local
        if len(groups) == 2:
            leader = 0 if self.mine else groups[0]
            self.native = self.local.Create_intercomm(0, self.comm, leader, 1)
        self.ours: Any = ours(self.native)
        self._case: Case | None = None
        self._made: Call
        self._side: by_hand.MatrixSide

    def _allgather(self, case: Case) -> Call:
        """Everyone's block of the content to everyone."""
        sizes = (case.a, case.b)
        whole = self.content(sizes[self.mine], self.mine)
        expected = self.content(sizes[self.other], self.other)
        ends = np.cumsum((0, *sizes[self.mine])) // whole.itemsize
        i = self.local.rank
        send = whole[ends[i] : ends[i + 1]].copy()
        recv = np.empty_like(expected)
        spec: Any = recv
        if case.op == "allgatherv":
            spec = [recv, [n // recv.itemsize for n in sizes[self.other]]]
        return Call((send, spec), recv, expected)

    def _call(self, case: Case) -> Call:
        """The buffers of a case, which all contenders share: where they lie matters."""
        if self._case != case:
            self._case, self._made = case, self._make(case)
        return self._made

    def _make(self, case: Case) -> Call:
        if case.op.startswith("allgather"):
            return self._allgather(case)
        sizes = (case.a, case.b) if self.mine == 0 else (case.b, case.a)
        return CALLS[case.op](Seat(self.mine, self.local.rank, *sizes))

    def prepare(self, case: Case, contender: Contender) -> Trial:
        """A contender of a case, ready to run."""
        if case.op == "redistribution":
            return self._redistribution(case, contender)
        arguments, recv, expected = self._call(case)
        if contender.algorithm == "copy":
            return Trial(lambda: np.copyto(recv, expected), recv, expected)
        name = case.op.capitalize()
        if contender.algorithm == "native" and not contender.persistent:
            call = getattr(self.native, name)
            run = self._bound(call, arguments)
            return Trial(run, recv, expected)
        auto = contender.algorithm == "auto"  # as a user calls it
        more = {} if auto else {"algorithm": contender.algorithm}
        if contender.persistent:
            request = getattr(self.ours, f"{name}_init")(*arguments, **more)
            return Persistent(request, recv, expected)
        call = getattr(self.ours, name)
        run = self._bound(call, arguments, **more)
        taken = self.ours._taken if auto else (lambda: contender.algorithm)
        return Trial(run, recv, expected, taken)

    def _redistribution(self, case: Case, contender: Contender) -> Trial:
        if self._case != case:
            self._case, self._side = case, by_hand.MatrixSide(self, case)
        side, name = self._side, contender.algorithm
        run = by_hand.contender(side, name, contender.persistent)
        receives = slice(None) if not side.sends else slice(0)
        array, expected = side.array.reshape(-1), side.expected.reshape(-1)
        return Trial(run, array[receives], expected[receives], lambda: name)

    def _bound(self, call: Callable[..., Any], args: Any, **more: Any) -> Any:
        """The call with its arguments: the same arrays, or other views of them."""
        if self.same_arrays:
            return partial(call, *args, **more)
        return on_views(call, args, **more)

    def barrier(self) -> None:
        """Wait for all ranks, twice: the second time all begin close together.

        The same messages for every library and contender: in round k everyone tells
        the rank 2^k after its own (dissemination, Hensgen, Finkel and Manber 1988).
        """
        for _ in range(2):
            distance = 1
            while distance < self.comm.size:
                to, frm = self.rank + distance, self.rank - distance
                n = self.comm.size
                self.comm.Sendrecv(NOTHING, to % n, 0, NOTHING, frm % n, 0)
                distance *= 2

    def worst(self, values: Sequence[float]) -> list[float]:
        """Of each value the largest on any rank."""
        found = np.array(values, float)
        self.comm.Allreduce(MPI.IN_PLACE, found, MPI.MAX)
        result: list[float] = found.tolist()
        return result

    def free(self) -> None:
        """Give the communicators back."""
        for comm in {id(x): x for x in (self.native, self.local, self.comm)}.values():
            comm.Free()


def world() -> MPI.Intracomm:
    """A private duplicate of the processes that were started together."""
    return MPI.Intracomm(MPI.COMM_WORLD.Dup())


def world_size() -> int:
    """The number of processes that were started together."""
    return MPI.COMM_WORLD.size


def abort(error: BaseException) -> None:
    """End all processes: the others would wait for this one for ever."""
    traceback.print_exception(error)
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)
