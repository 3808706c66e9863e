"""Questions: the sizes a rank must ask other ranks for before an irregular call.

Between groups a rank knows the sizes of the remote group, but not the sizes of the own
group, which the remote group knows. So a remote rank sends each rank the sizes in a
single message, where the paper's Exscan and Allreduce take a number of rounds that
grows with the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: from an answer to the sizes that a schedule wants, or to the next question
Reader: TypeAlias = "Callable[[bytes], tuple[Any, ...] | Question]"


@dataclass(frozen=True, slots=True)
class Question:
    """Bytes that a rank says to its peers, and an answer of known length."""

    said: bytes
    #: the reader of the answer
    read: Reader
    #: for questions among all ranks of a range, which all say equally many bytes: the
    #: range, and whether the range is the local group
    everyone: range | None = None
    is_local: bool = False
    #: otherwise single messages: target, first byte and number of bytes of `said`; and
    #: source and number of bytes
    sends: tuple[tuple[int, int, int], ...] = ()
    receives: tuple[tuple[int, int], ...] = ()


def ask_each(
    ranks: range,
    own: Sequence[int],
    read: Callable[[np.ndarray], tuple[Any, ...]],
    *,
    is_local: bool = True,
) -> Question:
    """The question in which all ranks of a range say equally many integers to all.

    `read` gets an array with a row for each rank.
    """
    row = np.array(own, np.int64)

    def read_rows(answer: bytes) -> tuple[Any, ...]:
        return read(np.frombuffer(answer, np.int64).reshape(len(ranks), row.size))

    return Question(row.tobytes(), read_rows, ranks, is_local)


def _nothing(answer: bytes) -> tuple[Any, ...]:
    return ()


#: the question of a rank that knows all sizes, while other ranks ask each other
NOTHING_TO_ASK = Question(b"", _nothing)


def first_column(rows: np.ndarray) -> tuple[tuple[int, ...]]:
    """The integers of all ranks, for a question of an integer from each rank."""
    return (tuple(rows[:, 0].tolist()),)
