"""A plan: the steps of one rank in one call, and what it needs of the operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .steps import Ask, Meet, Step

if TYPE_CHECKING:
    from ..buffers.devices.overlap import Transfers
    from .native import NativeCall


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of one rank in a call, found by the values of its arguments alone.

    Nothing in it changes, and nothing in it belongs to one call, so any number of calls
    under way may share it.
    """

    #: the values that it was compiled for; with an answer they are the key of the plan
    #: that an operation goes on with after it has asked
    values: tuple[Hashable, ...]
    #: what was taken, for people
    algorithm: str
    steps: tuple[Step, ...] = ()
    #: messages, each of which has a slot for its request
    slots: int = 0
    #: bytes of "tmp" and of "node" that one call needs
    scratch: int = 0
    node: int = 0
    #: what this rank says in the steps that ask
    said: bytes = b""
    #: who has a part in the call, by their numbers; None for all ranks
    participants: tuple[int, ...] | None = None
    #: the number of the root of a call in which some ranks have no part
    root: int | None = None
    #: whether the arguments must be read at every call: data are staged, or in parts
    must_read: bool = False
    #: whether the receive buffer is written, and whether it must lie apart from what is
    #: sent
    writes: bool = False
    is_apart: bool = False
    #: which of the arguments has the elements that are combined; -1 where none are
    operand: int = -1
    #: the MPI library's own call in place of steps
    native: NativeCall | None = None
    #: what is copied from and to devices while messages are under way
    transfers: Transfers | None = None
    #: counts calls until what may be chosen is measured
    warm_up: Callable[[], bool] | None = None
    #: whether the ranks that have a part in the call count it alike, and whether those
    #: are all ranks. They do not count the MPI library's own call: on the ranks whose
    #: arrays lie on a device it stands between copies, and only there it has steps
    is_counted: bool = field(init=False)
    is_of_all: bool = field(init=False)

    @property
    def asks(self) -> bool:
        """Whether the plan ends with an answer, and another one goes on."""
        return bool(self.steps) and isinstance(self.steps[-1], Ask)

    def __post_init__(self) -> None:
        is_counted = self.native is None and self.participants != ()
        object.__setattr__(self, "is_counted", is_counted)
        object.__setattr__(self, "is_of_all", is_counted and self.root is None)

    @property
    def meets(self) -> bool:
        """Whether ranks of the node meet, though perhaps over nothing at all."""
        return any(isinstance(step, Meet) for step in self.steps)

    @property
    def nbytes(self) -> int:
        """About the memory that the plan takes in a cache."""
        return 200 * (len(self.steps) + 2) + len(self.said) + _selected(self.steps)


def _selected(steps: tuple[Any, ...]) -> int:
    arrays = (getattr(step, "selection", None) for step in steps)
    return sum(24 * len(x.offsets) + 8 * x.nbytes // x.unit for x in arrays if x)
