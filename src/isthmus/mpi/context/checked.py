"""The checked mode: before every call all ranks compare what they are about to call.

Each rank tells the others what it calls in a message of its own, so that it is known
who does not come. What one rank finds wrong with its arguments, all hear and raise. The
messages are those of no call, so ranks that call different operations, or different
forms of one, find each other.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..waiting.errors import MismatchError, Stalled
from ..waiting.waiting import until

if TYPE_CHECKING:
    from ..arguments.call import Call
    from .context import Context

#: the tag of these messages; calls have others
_TAG = 0


class _Rows:
    """What all ranks say, each in a message of its own."""

    def __init__(self, comm: MPI.Intracomm, row: dict[str, Any]) -> None:
        self._comm, me = comm, comm.Get_rank()
        self.rows: list[Any] = [None] * comm.Get_size()
        self.rows[me] = row
        self._left = [r for r in range(len(self.rows)) if r != me]
        self._sends = [comm.isend(row, r, _TAG) for r in self._left]

    def are_complete(self) -> bool:
        """Take what has come; whether that is all."""
        for r in [r for r in self._left if self._comm.Iprobe(r, _TAG)]:
            self.rows[r] = self._comm.recv(None, r, _TAG)
            self._left.remove(r)
        return not self._left and bool(MPI.Request.Testall(self._sends))

    def stalled(self, seconds: float) -> Stalled:
        """What to raise where some have not come in so many seconds."""
        n = len(self.rows)
        has = f"the arguments of {n - len(self._left)} of {n}"
        return Stalled(seconds, self._left, has)


def agree(context: Context, call: Call) -> None:
    """Compare a call with those of the other ranks: first the method and the algorithm,
    then the root, the operator, and the bytes sent to each and expected from each.

    To read the arguments may measure what messages take, which all ranks do together:
    so they know by then that they make the same call.
    """
    context.check_usable()
    label, algorithm = call.label, context.asked_for(call.name, call.algorithm)
    agree_on_method(context, label, algorithm)
    try:
        task = call.task()
    except BaseException as error:
        if context.refused:
            raise
        share(context, label, error)
        raise
    row: dict[str, Any] = {"operation": label, "algorithm": algorithm, "error": ""}
    row |= {"sent": task.sent, "expected": task.expected, "root": task.root}
    row["operator"] = "" if task.operator is None else task.operator.name
    _compare(context, row)


def agree_on_method(context: Context, label: str, algorithm: str = "auto") -> None:
    """Compare a call that has nothing but its name and its algorithm to agree on."""
    nothing = {"sent": 0, "expected": {}, "root": None, "operator": "", "error": ""}
    _compare(context, {"operation": label, "algorithm": algorithm, **nothing})


def share(context: Context, label: str, error: BaseException) -> None:
    """Tell the other ranks that this one's arguments are wrong; all raise that."""
    text = f"{type(error).__name__}: {error}"
    row = {"sent": 0, "expected": {}, "root": None, "operator": "", "error": text}
    # who is interrupted raises that, and not what the others hear
    stays = () if isinstance(error, Exception) else (MismatchError,)
    with suppress(*stays):
        _compare(context, {"operation": label, "algorithm": "", **row})


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Let everyone see every row; raise the same error everywhere if they differ."""
    label = row["operation"]
    messages = _Rows(context.comm, row)
    with context.uninterrupted(label, "checked mode"):
        try:
            if not until(messages.are_complete, context.limit, context.channel.check):
                assert context.limit.seconds is not None
                raise messages.stalled(context.limit.seconds)
        except BaseException:
            context.orphans.append(messages)
            raise
    rows = messages.rows
    wrong = [
        f"{context.who(i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    wrong = wrong or _differences(context, rows, "operation")
    wrong = wrong or _differences(context, rows, "algorithm")
    wrong = wrong or _roots(context, rows)
    wrong = wrong or _operators(context, rows)
    wrong = wrong or _sizes(context, rows)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        first = rows[0]["operation"]
        raise MismatchError(f"isthmus {first}: {'; '.join(wrong[:3])}{more}")


def _differences(context: Context, rows: list[dict[str, Any]], what: str) -> list[str]:
    """Ranks whose value differs from that of the first, in words."""
    first = rows[0][what]
    return [
        f"{context.who(i)} calls {what} {row[what]!r}, {context.who(0)} {first!r}"
        for i, row in enumerate(rows)
        if row[what] != first
    ]


def _roots(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Ranks that name another root than the first that names one, in words."""
    named = [(i, row["root"]) for i, row in enumerate(rows) if row["root"] is not None]
    return [
        f"{context.who(i)} calls with root {context.who(root)}, "
        f"{context.who(named[0][0])} with {context.who(named[0][1])}"
        for i, root in named
        if root != named[0][1]
    ]


def _operators(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Ranks that combine by another operator than the first that names one."""
    named = [(i, row["operator"]) for i, row in enumerate(rows) if row["operator"]]
    return [
        f"{context.who(i)} combines by {operator}, "
        f"{context.who(named[0][0])} by {named[0][1]}"
        for i, operator in named
        if operator != named[0][1]
    ]


def _sizes(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Messages whose sender and receiver do not agree on their size, in words."""
    wrong = []
    for i, row in enumerate(rows):
        for j, expected in row["expected"].items():
            sent = rows[j]["sent"]
            if isinstance(sent, dict):
                sent = sent.get(i, 0)
            if sent != expected:
                wrong.append(
                    f"{context.who(j)} sends {sent} bytes, "
                    f"{context.who(i)} expects {expected}"
                )
    return wrong
