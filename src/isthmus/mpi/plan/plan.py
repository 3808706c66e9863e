"""A plan: the steps of one rank in one call, and the memory that the call needs."""

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
    """The steps of one rank in a call, found by the values of the arguments alone.

    A plan is never changed and holds nothing of a single call, so that any number of
    calls under way may share a plan.
    """

    #: the values of the call; together with an answer, the key of the plan that follows
    #: the question
    values: tuple[Hashable, ...]
    #: the name of the algorithm, for people
    algorithm: str
    steps: tuple[Step, ...] = ()
    #: the number of messages, each of which has a slot for a request
    slots: int = 0
    #: bytes of "tmp" and of "node" that one call needs
    scratch: int = 0
    node: int = 0
    #: the bytes that this rank says in the steps of a question
    said: bytes = b""
    #: the numbers of the ranks with a part in the call; None for all ranks, empty on a
    #: rank without a part
    participants: tuple[int, ...] | None = None
    #: the number of the root, if any; between groups each root has a channel, since
    #: further ranks of the root's group have no part in the call
    root: int | None = None
    #: whether the arguments must be read at every call: data are staged, or lie in more
    #: buffers than one to send and one to receive
    must_read: bool = False
    #: whether the receive buffer is written, and whether the send buffer must not
    #: overlap the receive buffer
    writes: bool = False
    must_be_apart: bool = False
    #: the index of the argument with the type of the elements to combine; -1 without an
    #: operator
    operand: int = -1
    #: the MPI library's own call in place of steps
    native: NativeCall | None = None
    #: the copies from and to devices beside the messages
    transfers: Transfers | None = None
    #: counts a call, and tells whether the call makes a step of the trial of the
    #: candidates, as all calls after the warm-up; None without a trial
    warm_up: Callable[[], bool] | None = None
    #: whether the participants number the call alike, and whether these are all ranks.
    #: The MPI library's own call is not numbered: only ranks with arrays on a device
    #: have steps there, for the copies before and after
    is_counted: bool = field(init=False)
    is_of_all: bool = field(init=False)

    @property
    def asks(self) -> bool:
        """Whether the plan ends with an answer, and another plan follows."""
        return bool(self.steps) and isinstance(self.steps[-1], Ask)

    def __post_init__(self) -> None:
        is_counted = self.native is None and self.participants != ()
        object.__setattr__(self, "is_counted", is_counted)
        object.__setattr__(self, "is_of_all", is_counted and self.participants is None)

    @property
    def meets(self) -> bool:
        """Whether ranks of the node meet, though perhaps over nothing at all."""
        return any(isinstance(step, Meet) for step in self.steps)

    @property
    def nbytes(self) -> int:
        """The memory of the plan in a cache, roughly."""
        return 200 * (len(self.steps) + 2) + len(self.said) + _selected(self.steps)


def _selected(steps: tuple[Any, ...]) -> int:
    arrays = (getattr(step, "selection", None) for step in steps)
    return sum(24 * len(x.offsets) + 8 * x.nbytes // x.unit for x in arrays if x)
