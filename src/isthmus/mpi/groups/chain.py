"""The chain: a light group of processes, and the collectives of a chain.

To make a communicator takes memory and time by the number of processes. A member of a
chain knows only its place and its two neighbours, so a group of any size takes five
numbers, and collectives need no more than messages between members.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from mpi4py import MPI

from ...groups import scans, trees
from ...groups.agree import Refused
from ...groups.chain import ChainLink, from_addresses, from_size
from ...groups.dialogue import Dialogue
from ..comm.intracomm import Intracomm
from ..waiting.bounded import bounded
from ..waiting.errors import MismatchError
from .dialogue import run
from .operators import function_of
from .private import PrivateComm, private_of

Result = TypeVar("Result")


class _ScatterError(str):
    """The error in a root's values, which travels in place of the values."""


class Chain:
    """A group of processes as a doubly linked list: five numbers on each process.

    A process outside the group has an empty chain, of size 0 and false. Values are any
    Python objects, also arrays. An operator is a function of two values, which returns
    a new value, or an operator of MPI; it need not be commutative. All members call a
    method together, without the processes outside.
    """

    def __init__(self, comm: PrivateComm, link: ChainLink | None) -> None:
        """A chain on a private communicator; users take one of the class methods."""
        self._private = comm
        self._link = link
        self._tree: trees.Tree | None = None

    @classmethod
    def from_comm(cls, comm: MPI.Intracomm) -> Chain:
        """The chain of all processes of a communicator, in order of rank.

        The first chain on a communicator waits for all processes, since it makes a
        private duplicate. Further chains are made without a message.
        """
        private = private_of(comm)
        return cls(private, from_size(private.rank, private.size))

    @classmethod
    def from_ranks(cls, comm: MPI.Intracomm, ranks: Sequence[int]) -> Chain:
        """The chain of processes with some ranks, in the order of an equal list on
        all processes."""
        private, addresses = private_of(comm), list(ranks)
        are_inside = all(0 <= rank < private.size for rank in addresses)
        if not are_inside or len(set(addresses)) < len(addresses):
            raise ValueError(f"{addresses} are not different ranks of {private.size}")
        return cls(private, from_addresses(private.rank, addresses))

    @classmethod
    def from_values(
        cls,
        comm: MPI.Intracomm,
        left: int | None,
        right: int | None,
        rank: int,
        size: int,
    ) -> Chain:
        """The chain with a place and neighbours of this process; None for the missing
        neighbour at an end."""
        if not 0 <= rank < size or (left is None) != (rank == 0):
            raise ValueError(f"rank {rank} of {size} cannot have {left} on its left")
        if (right is None) != (rank == size - 1):
            raise ValueError(f"rank {rank} of {size} cannot have {right} on its right")
        private = private_of(comm)
        return cls(private, ChainLink(rank, size, private.rank, left, right))

    def __bool__(self) -> bool:
        return self._link is not None

    def __repr__(self) -> str:
        name = type(self).__name__
        return (
            f"<{name} rank {self.rank} of {self.size}>" if self else f"<empty {name}>"
        )

    @property
    def rank(self) -> int | None:
        """The place of this process in the chain."""
        return self._link.rank if self._link else None

    @property
    def size(self) -> int:
        """The number of members."""
        return self._link.size if self._link else 0

    @property
    def address(self) -> int:
        """The rank of this process in the communicator."""
        return self._private.rank

    @property
    def left(self) -> int | None:
        """The address of the member before this process; None at the start."""
        return self._link.left if self._link else None

    @property
    def right(self) -> int | None:
        """The address of the member after this process; None at the end."""
        return self._link.right if self._link else None

    @property
    def is_leader(self) -> bool:
        """Whether this process is the first member."""
        return self.rank == 0

    def _own_link(self) -> ChainLink:
        if self._link is None:
            raise ValueError("this process is not in the chain")
        return self._link

    def _run(self, dialogue: Dialogue[Result]) -> Result:
        try:
            return run(self._private, dialogue)
        except Refused as error:
            raise MismatchError(f"isthmus: {error}") from None

    def _tree_for(self, root: int = 0) -> trees.Tree:
        """The tree over the chain, built at the first use, if the root is a member."""
        link = self._own_link()
        if not 0 <= root < link.size:
            raise ValueError(f"there is no root {root} in a chain of {link.size}")
        if self._tree is None:
            self._tree = self._run(trees.contract(link))
        return self._tree

    def scan(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The values of the members up to this process, combined."""
        return self._run(scans.scan(self._own_link(), value, function_of(op)))

    def exscan(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The values of the members before this process, combined; None on the
        first."""
        return self._run(scans.exscan(self._own_link(), value, function_of(op)))

    def double_scan(self, value: Any, op: Any = MPI.SUM) -> scans.Scan:
        """The combined values up to, before, from and after this process.

        The rounds are as many as of a single scan.
        """
        link, function = self._own_link(), function_of(op)
        return self._run(scans.double_scan(link, value, value, function))

    def barrier(self) -> None:
        """Wait until all members have called."""
        self._run(scans.barrier(self._own_link()))

    def allgather(self, value: Any) -> list[Any]:
        """The values of all members, on all members."""
        return list(self._run(scans.allgather(self._own_link(), value)))

    def bcast(self, value: Any = None, root: int = 0) -> Any:
        """The value of the root, on all members."""
        tree = self._tree_for(root)
        value = self._run(trees.to_root(tree, value, root))
        return self._run(trees.bcast(tree, value))

    def reduce(self, value: Any, op: Any = MPI.SUM, root: int = 0) -> Any:
        """The combined values of all members, on the root; None elsewhere."""
        tree, function = self._tree_for(root), function_of(op)
        total = self._run(trees.reduce(tree, value, function))
        return self._run(trees.from_root(tree, total, root))

    def allreduce(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The combined values of all members, equal on all to the last digit."""
        return self._run(trees.allreduce(self._tree_for(), value, function_of(op)))

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """The values of all members, on the root; None elsewhere."""
        tree = self._tree_for(root)
        values = self._run(trees.gather(tree, value))
        result: list[Any] | None = self._run(trees.from_root(tree, values, root))
        return result

    def scatter(self, values: Sequence[Any] | None = None, root: int = 0) -> Any:
        """The root's value for this process.

        An error in the values of the root travels to all members, since they would
        otherwise wait for values.
        """
        tree = self._tree_for(root)
        if self.rank == root and (values is None or len(values) != self.size):
            error = _ScatterError(f"a scatter to {self.size} needs as many values")
            values = [error] * self.size
        values = self._run(trees.to_root(tree, values, root))
        value = self._run(trees.scatter(tree, values))
        if isinstance(value, _ScatterError):
            raise ValueError(str(value))
        return value

    def to_comm(self) -> Intracomm | MPI.Comm:
        """A new communicator of the members, in the order of the chain.

        Takes memory by the number of members only. `MPI.COMM_NULL` outside the chain.
        """
        if not self:
            return MPI.COMM_NULL
        all_ranks = self._private.Get_group()
        group = all_ranks.Incl(self.allgather(self.address))
        try:
            make = partial(self._private.Create_group, group)
            return Intracomm(bounded(make, self._private.limit))
        finally:
            group.Free()
            all_ranks.Free()
