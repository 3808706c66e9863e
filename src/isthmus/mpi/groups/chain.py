"""The chain: a light group of processes, and the collectives on it."""

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
from .private import Private, private_of

T = TypeVar("T")


class _Wrong(str):
    """What is wrong with a root's values, in place of them."""


class Chain:
    """A group of processes as a doubly linked list: five numbers on each of them.

    A process that is not in it has an empty chain, of size 0 and false. Values are any
    Python objects, arrays among them; an operator is a function of two values or one of
    MPI's, and need not be commutative. It returns a new value. All members call a
    method together, and no other process does.
    """

    def __init__(self, comm: Private, link: ChainLink | None) -> None:
        """A chain on a private communicator; users take one of the class methods."""
        self._private = comm
        self._link = link
        self._tree: trees.Tree | None = None

    @classmethod
    def from_comm(cls, comm: MPI.Intracomm) -> Chain:
        """All processes of a communicator, in their order.

        The first chain on a communicator makes a private duplicate of it and so waits
        for all its processes; the others are made without a message.
        """
        private = private_of(comm)
        return cls(private, from_size(private.rank, private.size))

    @classmethod
    def from_ranks(cls, comm: MPI.Intracomm, ranks: Sequence[int]) -> Chain:
        """The processes with these ranks, in this order; all give the same list."""
        private, listed = private_of(comm), list(ranks)
        inside = all(0 <= r < private.size for r in listed)
        if not inside or len(set(listed)) < len(listed):
            raise ValueError(f"{listed} are not different ranks of {private.size}")
        return cls(private, from_addresses(private.rank, listed))

    @classmethod
    def from_values(
        cls,
        comm: MPI.Intracomm,
        left: int | None,
        right: int | None,
        rank: int,
        size: int,
    ) -> Chain:
        """From what this process knows of it; None where it has no neighbour."""
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
        """How many processes are in it."""
        return self._link.size if self._link else 0

    @property
    def address(self) -> int:
        """The rank of this process in the communicator."""
        return self._private.rank

    @property
    def left(self) -> int | None:
        """The address of the process before this one."""
        return self._link.left if self._link else None

    @property
    def right(self) -> int | None:
        """The address of the process after this one."""
        return self._link.right if self._link else None

    @property
    def is_leader(self) -> bool:
        """Whether this process is the first."""
        return self.rank == 0

    def _here(self) -> ChainLink:
        if self._link is None:
            raise ValueError("this process is not in the chain")
        return self._link

    def _run(self, dialogue: Dialogue[T]) -> T:
        try:
            return run(self._private, dialogue)
        except Refused as error:
            raise MismatchError(f"isthmus: {error}") from None

    def _contracted(self, root: int = 0) -> trees.Tree:
        """The tree over the chain, built when first needed."""
        link = self._here()
        if not 0 <= root < link.size:
            raise ValueError(f"there is no root {root} in a chain of {link.size}")
        if self._tree is None:
            self._tree = self._run(trees.contract(link))
        return self._tree

    def scan(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The values of all up to this process, combined."""
        return self._run(scans.scan(self._here(), value, function_of(op)))

    def exscan(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The values of all before this process, combined; None on the first."""
        return self._run(scans.exscan(self._here(), value, function_of(op)))

    def double_scan(self, value: Any, op: Any = MPI.SUM) -> scans.Scan:
        """The values up to, before, from and after this process, in the same rounds."""
        link, function = self._here(), function_of(op)
        return self._run(scans.double_scan(link, value, value, function))

    def barrier(self) -> None:
        """Return when all members have called."""
        self._run(scans.barrier(self._here()))

    def allgather(self, value: Any) -> list[Any]:
        """The values of all, on all."""
        return list(self._run(scans.allgather(self._here(), value)))

    def bcast(self, value: Any = None, root: int = 0) -> Any:
        """The root's value, on all."""
        tree = self._contracted(root)
        return self._run(trees.bcast(tree, self._run(trees.to_root(tree, value, root))))

    def reduce(self, value: Any, op: Any = MPI.SUM, root: int = 0) -> Any:
        """The values of all combined, on the root; None on the others."""
        tree, function = self._contracted(root), function_of(op)
        done = self._run(trees.reduce(tree, value, function))
        return self._run(trees.from_root(tree, done, root))

    def allreduce(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The values of all combined, the same on all to the last digit."""
        return self._run(trees.allreduce(self._contracted(), value, function_of(op)))

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """The values of all, on the root; None on the others."""
        tree = self._contracted(root)
        values = self._run(trees.gather(tree, value))
        found: list[Any] | None = self._run(trees.from_root(tree, values, root))
        return found

    def scatter(self, values: Sequence[Any] | None = None, root: int = 0) -> Any:
        """The value that the root has for this process."""
        tree = self._contracted(root)
        if self.rank == root and (values is None or len(values) != self.size):
            values = [
                _Wrong(f"a scatter to {self.size} needs as many values")
            ] * self.size
        mine = self._run(
            trees.scatter(tree, self._run(trees.to_root(tree, values, root)))
        )
        if isinstance(mine, _Wrong):
            raise ValueError(str(mine))
        return mine

    def to_comm(self) -> Intracomm | MPI.Comm:
        """A new communicator of the chain's processes, in its order.

        Needs memory for the group's size only. `MPI.COMM_NULL` where not in it.
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
