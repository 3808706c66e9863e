"""What a rank must ask others before an irregular call can begin.

Between groups a rank knows what the other group sends, but not what its own group does;
the other group does. So each rank is told by one of the other group, in one
message, where the paper's Exscan and Allreduce take a number of rounds that grows with
the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: the sizes that a schedule wants, or the next question, by what was answered
Reader: TypeAlias = "Callable[[bytes], tuple[Any, ...] | Question]"


@dataclass(frozen=True, slots=True)
class Question:
    """What this rank says, to whom, and what it is told: bytes of a known number."""

    said: bytes
    #: makes of the answer what the rounds depend on
    read: Reader
    #: where every rank of a range says as much to all others of it: the range, and
    #: whether it is the own group alone
    everyone: range | None = None
    is_local: bool = False
    #: else messages: to whom which bytes of what is said go, from whom how many come
    sends: tuple[tuple[int, int, int], ...] = ()
    receives: tuple[tuple[int, int], ...] = ()


def ask_each(
    ranks: range,
    own: Sequence[int],
    read: Callable[[np.ndarray], tuple[Any, ...]],
    *,
    is_local: bool = True,
) -> Question:
    """Each of some ranks says as many integers to all of them; what is read has a row
    of each."""
    row = np.array(own, np.int64)

    def read_rows(answer: bytes) -> tuple[Any, ...]:
        return read(np.frombuffer(answer, np.int64).reshape(len(ranks), row.size))

    return Question(row.tobytes(), read_rows, ranks, is_local)


def _nothing(answer: bytes) -> tuple[Any, ...]:
    return ()


#: the question of a rank that knows all, where others ask each other
NOTHING_TO_ASK = Question(b"", _nothing)


def first_column(rows: np.ndarray) -> tuple[tuple[int, ...]]:
    """What each rank says, where that is one integer."""
    return (tuple(rows[:, 0].tolist()),)
