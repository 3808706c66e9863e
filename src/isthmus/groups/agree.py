"""All processes of a chain compare their calls before any of them goes ahead.

⌈log n⌉ rounds of small messages. All processes hear of an error on one of them and
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
        raise error from Refused(text)  # marks it as an error that all ranks know of
    if text:
        raise Refused(text)
    return facts


def _combine(x: _Call, y: _Call) -> _Call:
    text = x[0] or y[0]
    if not text and x[2] != y[2]:
        text = f"rank {x[1]} calls {_show(x[2])}, rank {y[1]} calls {_show(y[2])}"
    if text:
        return text, x[1], x[2], ()
    return "", x[1], x[2], tuple(map(max, x[3], y[3]))


def _show(call: tuple[Any, ...]) -> str:
    return f"{call[0]}({', '.join(map(str, call[1:]))})"
