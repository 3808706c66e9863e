"""The task of a rank in a collective: arguments, read and checked."""

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

#: data to send or receive: blocks of a user's buffer, or several buffers
Data: TypeAlias = UserBuffer | Parts
#: the bytes that each rank contributes, by number; -1 for unknown
Contributions: TypeAlias = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The arguments of a rank in a collective, and the schedule, if any."""

    #: the name of the algorithm, for people
    algorithm: str
    #: the schedule, as far as this rank knows the sizes; a function of the answer, if
    #: there is a question
    schedule: Callable[..., Schedule] | None = None
    #: the numbers of the schedule's ranks; None for all ranks in order
    ranks: tuple[int, ...] | None = None
    send: tuple[Data, ...] = ()
    recv: tuple[Data, ...] = ()
    operator: Operator | None = None
    #: the question to ask first, if the sizes are not known
    question: Question | None = None
    #: the contributions of all ranks; a function of the arguments of `schedule`
    contributions: Callable[..., Contributions] | None = None
    #: the numbers of the ranks with a part in the call; None for all ranks, empty on a
    #: rank without a part
    participants: tuple[int, ...] | None = None
    #: steps in place of a schedule, if any
    steps: tuple[Step, ...] = ()
    #: the MPI library's own call, if chosen
    native: NativeCall | None = None
    #: whether the data to send lie in the receive buffer, and so must be copied first
    is_in_place: bool = False
    #: the index of this rank's own contribution among the received blocks; or, at a
    #: root, of the block among the sent blocks that stays at the root
    own_block: int | None = None
    #: the number of the root, where this rank knows the root
    root: int | None = None
    #: for the checked mode: the bytes sent to each rank, or to everyone, and the bytes
    #: expected from each rank
    sent: int | dict[int, int] = 0
    expected: dict[int, int] = field(default_factory=dict)

    @property
    def is_dense(self) -> bool:
        """Whether all data are without gaps, since data with gaps must be staged."""
        data = (*self.send, *self.recv)
        return all(isinstance(part, Parts) or part.is_dense for part in data)
