"""All processes of a chain compare their calls before any of them goes ahead.

⌈log n⌉ rounds of small messages. All processes hear of an error on any process and
raise together; otherwise the others would wait for a process that has left the call.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .chain import ChainLink
from .dialogue import Dialogue
from .scans import total


class Refused(ValueError):
    """Another process of the call has a wrong argument, or makes another call."""


#: the error, "" if there is none; a rank; its call; facts to be combined
_Call: TypeAlias = tuple[str, int, tuple[Any, ...], tuple[int, ...]]


def agree(
    link: ChainLink,
    call: tuple[Any, ...],
    facts: tuple[int, ...] = (),
    error: Exception | None = None,
) -> Dialogue[tuple[int, ...]]:
    """The largest of every fact; an error on all ranks if calls differ or one fails."""
    text = f"rank {link.rank}: {type(error).__name__}: {error}" if error else ""
    contribution: _Call = (text, link.rank, call, facts)
    text, _, _, facts = yield from total(link, contribution, _combine)
    if error is not None:
        raise error from Refused(text)  # as all ranks know of the error
    if text:
        raise Refused(text)
    return facts


def _combine(left: _Call, right: _Call) -> _Call:
    """Two calls as one: the first error, or the larger of each fact."""
    text = left[0] or right[0]
    if not text and left[2] != right[2]:
        text = f"rank {left[1]} calls {_show(left[2])}, "
        text += f"rank {right[1]} calls {_show(right[2])}"
    if text:
        return text, left[1], left[2], ()
    return "", left[1], left[2], tuple(map(max, left[3], right[3]))


def _show(call: tuple[Any, ...]) -> str:
    return f"{call[0]}({', '.join(map(str, call[1:]))})"
