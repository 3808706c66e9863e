"""Redistributions to be measured: ours, Alltoallw, and what people write by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from mpi4py import MPI

from ..mpi.redistribution.redistribution import Redistribution
from ..redistribution.cases import layouts
from ..redistribution.layouts import Layout
from ..redistribution.runs import common

#: one rank's part of a region of the other side, as an index of its own array
Index = tuple[slice, ...]


def values(layout: Layout, rank: int) -> np.ndarray:
    """What a rank has of a matrix of doubles, all of them different."""
    rows, columns = (x.indices for x in layout.region(rank))
    found: np.ndarray = np.add.outer(rows * float(layout.shape[1]), columns)
    return found


def pieces(mine: Layout, rank: int, other: Layout, peers: range) -> list[list[Index]]:
    """What a rank and each of the others have in common, in its own array."""
    region = mine.region(rank)
    found: list[list[Index]] = []
    for peer in peers:
        axes = []
        for own, its in zip(region, other.region(peer), strict=True):
            both = common(own, its)
            low = own.position(both.start).tolist()
            ends = zip(low, both.size.tolist(), strict=True)
            axes.append([slice(x, x + n) for x, n in ends])
        found.append(list(product(*axes)))
    return found


class MatrixSide:
    """A rank of the group that sends or of the one that receives."""

    def __init__(self, stand: Any, case: Any) -> None:
        p, q = len(case.a), len(case.b)
        self.source, self.target = layouts(case.kind, sum(case.a) // 8, p, q)
        self.native, self.ours, self.local = stand.native, stand.ours, stand.local
        self.sends, self.rank = stand.mine == 0, stand.local.rank
        mine = self.source if self.sends else self.target
        self.expected = np.ascontiguousarray(values(mine, self.rank))
        self.array = np.array(self.expected)
        other = self.target if self.sends else self.source
        # of replicas of a source, which these cases do not have, the first would send
        peers = range(other.ranks)
        self.parts = pieces(mine, self.rank, other, peers)

    def moved(self, persistent: bool) -> Callable[[], Any]:
        """Ours."""
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
        """The MPI library's, of subarrays."""
        kinds = [self._type(some) for some in self.parts]
        n = len(kinds)
        counts = [int(bool(some)) for some in self.parts]
        mine = [self.array, (counts, [0] * n), kinds]
        none = [bytearray(1), ([0] * n, [0] * n), [MPI.BYTE] * n]
        ends = (mine, none) if self.sends else (none, mine)
        return lambda: self.native.Alltoallw(*ends)

    def _type(self, some: Sequence[Index]) -> MPI.Datatype:
        if not some:
            return MPI.BYTE
        shape = self.array.shape
        made = [
            MPI.DOUBLE.Create_subarray(
                shape, [x.stop - x.start for x in index], [x.start for x in index]
            )
            for index in some
        ]
        return MPI.Datatype.Create_struct(
            [1] * len(made), [0] * len(made), made
        ).Commit()

    def isend(self) -> Callable[[], Any]:
        """By hand: a message to each partner in rank order, all at once."""
        sizes = [sum(self.array[i].size for i in some) for some in self.parts]
        buffers = [np.empty(n) for n in sizes]

        def run() -> None:
            requests = []
            for peer, (some, buffer) in enumerate(
                zip(self.parts, buffers, strict=True)
            ):
                if not some:
                    continue
                if self.sends:
                    np.concatenate([self.array[i].ravel() for i in some], out=buffer)
                    requests.append(self.native.Isend(buffer, peer))
                else:
                    requests.append(self.native.Irecv(buffer, peer))
            MPI.Request.Waitall(requests)
            if not self.sends:
                for some, buffer in zip(self.parts, buffers, strict=True):
                    _unpack(self.array, some, buffer)

        return run

    def gather_bcast(self) -> Callable[[], Any]:
        """By hand: gather in the one group, broadcast to the other, take a part."""
        shape = self.source.shape
        sizes = [prod(self.source.local_shape(r)) for r in range(self.source.ranks)]
        whole = np.empty(shape)
        every = np.empty(sum(sizes))

        def run() -> None:
            if self.sends:
                into = [every, sizes] if self.rank == 0 else None
                self.local.Gatherv(self.array, into, 0)
                if self.rank == 0:
                    parts = np.split(every, np.cumsum(sizes)[:-1])
                    for r, part in enumerate(parts):
                        shape_ = self.source.local_shape(r)
                        whole[self.source.local(r)] = part.reshape(shape_)
                self.native.Bcast(whole, MPI.PROC_NULL if self.rank else MPI.ROOT)
            else:
                self.native.Bcast(whole, 0)
                self.array[...] = whole[self.target.local(self.rank)]

        return run


def _unpack(array: np.ndarray, some: Sequence[Index], buffer: np.ndarray) -> None:
    at = 0
    for index in some:
        n = array[index].size
        array[index] = buffer[at : at + n].reshape(array[index].shape)
        at += n


def contender(side: MatrixSide, name: str, persistent: bool) -> Callable[[], Any]:
    """One way to do it."""
    if name == "auto":
        return side.moved(persistent)
    if persistent:
        raise ValueError(f"{name!r} has no persistent form")
    if name == "copy":
        return lambda: np.copyto(side.array, side.expected)
    return {
        "native": side.alltoallw,
        "isend": side.isend,
        "gather_bcast": side.gather_bcast,
    }[name]()
