"""Redistributions to be measured: isthmus's, Alltoallw, and two written by hand.

By hand, people send a message to each partner, or gather the whole array and broadcast
it. Both are contenders, since a user asks whether a library call gains anything over
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..mpi.redistribution.redistribution import Redistribution
from ..redistribution.cases import layouts
from ..redistribution.layouts import Layout
from ..redistribution.runs import common
from .job import BenchCase

if TYPE_CHECKING:
    from .stand import Stand

#: a part of a rank's own array that one peer sends or receives
Index = tuple[slice, ...]


def values(layout: Layout, rank: int) -> np.ndarray:
    """A rank's part of a matrix of doubles, all of them different."""
    rows, columns = (axis.indices for axis in layout.region(rank))
    part: np.ndarray = np.add.outer(rows * float(layout.shape[1]), columns)
    return part


def indices_by_peer(
    own_layout: Layout, rank: int, peer_layout: Layout, peers: range
) -> list[list[Index]]:
    """The parts of a rank's own array in the region of each peer."""
    region = own_layout.region(rank)
    indices: list[list[Index]] = []
    for peer in peers:
        axes = []
        for own_runs, peer_runs in zip(region, peer_layout.region(peer), strict=True):
            shared = common(own_runs, peer_runs)
            starts = own_runs.position(shared.start).tolist()
            runs = zip(starts, shared.size.tolist(), strict=True)
            axes.append([slice(start, start + n) for start, n in runs])
        indices.append(list(product(*axes)))
    return indices


class MatrixSide:
    """A rank of a redistribution, in the sending or in the receiving group.

    All contenders share the array, since the place of an array changes their speed.
    """

    def __init__(self, stand: Stand, case: BenchCase) -> None:
        p, q = len(case.a), len(case.b)
        self.source, self.target = layouts(case.kind, sum(case.a) // 8, p, q)
        self.native, self.ours, self.local = stand.native, stand.ours, stand.local
        self.sends, self.rank = stand.side == 0, stand.local.rank
        local, remote = self.source, self.target
        if not self.sends:
            local, remote = remote, local
        self.expected = np.ascontiguousarray(values(local, self.rank))
        self.array = np.array(self.expected)
        # of replicas of a source, which these cases do not have, the first would send
        self.indices = indices_by_peer(local, self.rank, remote, range(remote.ranks))

    def redistribution(self, persistent: bool) -> Callable[[], Any]:
        """isthmus's own redistribution, blocking or persistent."""
        source, target = (self.source, None) if self.sends else (None, self.target)
        move = Redistribution(self.native, source, target)
        if not persistent:
            return lambda: move(self.array[:])
        request = move.init(self.array)

        def run() -> None:
            request.Start()
            request.Wait()

        return run

    def alltoallw(self) -> Callable[[], Any]:
        """The MPI library's Alltoallw, of subarrays."""
        types = [self._type(parts) for parts in self.indices]
        n = len(types)
        counts = [int(bool(parts)) for parts in self.indices]
        parts_of_array = [self.array, (counts, [0] * n), types]
        nothing = [bytearray(1), ([0] * n, [0] * n), [MPI.BYTE] * n]
        ends = (parts_of_array, nothing) if self.sends else (nothing, parts_of_array)
        return lambda: self.native.Alltoallw(*ends)

    def _type(self, parts: Sequence[Index]) -> MPI.Datatype:
        """The datatype of several parts of the array."""
        if not parts:
            return MPI.BYTE
        shape = self.array.shape
        subarrays = [
            MPI.DOUBLE.Create_subarray(
                shape, [x.stop - x.start for x in index], [x.start for x in index]
            )
            for index in parts
        ]
        n = len(subarrays)
        return MPI.Datatype.Create_struct([1] * n, [0] * n, subarrays).Commit()

    def isend(self) -> Callable[[], Any]:
        """By hand: a message to each partner in rank order, all at once."""
        sizes = [sum(self.array[i].size for i in parts) for parts in self.indices]
        messages = [np.empty(n) for n in sizes]

        def run() -> None:
            requests = []
            for peer, parts in enumerate(self.indices):
                if not parts:
                    continue
                message = messages[peer]
                if self.sends:
                    np.concatenate([self.array[i].ravel() for i in parts], out=message)
                    requests.append(self.native.Isend(message, peer))
                else:
                    requests.append(self.native.Irecv(message, peer))
            MPI.Request.Waitall(requests)
            if not self.sends:
                for parts, message in zip(self.indices, messages, strict=True):
                    _unpack(self.array, parts, message)

        return run

    def gather_bcast(self) -> Callable[[], Any]:
        """By hand: gather in a group, broadcast to the remote group, take a part."""
        source = self.source
        sizes = [prod(source.local_shape(r)) for r in range(source.ranks)]
        matrix = np.empty(source.shape)
        gathered = np.empty(sum(sizes))

        def run() -> None:
            if self.sends:
                recv = [gathered, sizes] if self.rank == 0 else None
                self.local.Gatherv(self.array, recv, 0)
                if self.rank == 0:
                    parts = np.split(gathered, np.cumsum(sizes)[:-1])
                    for r, part in enumerate(parts):
                        matrix[source.local(r)] = part.reshape(source.local_shape(r))
                self.native.Bcast(matrix, MPI.PROC_NULL if self.rank else MPI.ROOT)
            else:
                self.native.Bcast(matrix, 0)
                self.array[...] = matrix[self.target.local(self.rank)]

        return run


def _unpack(array: np.ndarray, parts: Sequence[Index], message: np.ndarray) -> None:
    """Copy a received message into parts of an array."""
    start = 0
    for index in parts:
        n = array[index].size
        array[index] = message[start : start + n].reshape(array[index].shape)
        start += n


def contender(side: MatrixSide, name: str, persistent: bool) -> Callable[[], Any]:
    """The call of a contender in a redistribution."""
    if name == "auto":
        return side.redistribution(persistent)
    if persistent:
        raise ValueError(f"{name!r} has no persistent form")
    if name == "copy":
        return lambda: np.copyto(side.array, side.expected)
    return {
        "native": side.alltoallw,
        "isend": side.isend,
        "gather_bcast": side.gather_bcast,
    }[name]()
