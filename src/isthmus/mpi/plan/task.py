"""One rank's part in a collective: what it passed, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ...schedules.schedule import Schedule
from ..buffers.operators import Operator
from ..buffers.user_buffer import Parts, UserBuffer

if TYPE_CHECKING:
    from .native import NativeCall
    from .question import Question
    from .steps import Step

#: what is sent or received: blocks of a user's buffer, or buffers anywhere
Data: TypeAlias = UserBuffer | Parts
#: by the numbers of ranks, how many bytes each contributes; -1 where that is unknown
Contributions: TypeAlias = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a rank passed to a collective, and its rounds, if it has a part in it."""

    #: the algorithm, for people
    algorithm: str
    #: gives what all ranks do, as far as this rank knows the sizes; its arguments are
    #: what was answered, if others must be asked
    schedule: Callable[..., Schedule] | None = None
    #: the numbers of the ranks of the schedule, where these are not all ranks in order
    ranks: tuple[int, ...] | None = None
    send: tuple[Data, ...] = ()
    recv: tuple[Data, ...] = ()
    operator: Operator | None = None
    #: what must be asked first
    question: Question | None = None
    #: gives what each rank contributes; its arguments are those of `schedule`
    contributions: Callable[..., Contributions] | None = None
    #: the numbers of those who have a part in it; None for all ranks
    participants: tuple[int, ...] | None = None
    #: steps without a schedule, if there are such
    steps: tuple[Step, ...] = ()
    #: the MPI library's own call, where that is chosen
    native: NativeCall | None = None
    #: whether what is sent lies where results go, and so must be copied first
    is_in_place: bool = False
    #: the index of the block among those received that is this rank's own contribution;
    #: or among those sent, of a root that keeps what it sends to itself
    own_block: int | None = None
    #: for the checked mode: the number of the root, where this rank knows it, the bytes
    #: that go to each rank, or to everyone, and those that are expected from each
    root: int | None = None
    sent: int | dict[int, int] = 0
    expected: dict[int, int] = field(default_factory=dict)

    @property
    def is_dense(self) -> bool:
        """Whether all data lie as they travel."""
        return all(isinstance(x, Parts) or x.is_dense for x in (*self.send, *self.recv))
