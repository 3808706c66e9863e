"""The checked mode: before each call, all ranks compare their calls.

Each rank sends a description of the call to all ranks in separate messages, because a
collective of MPI would not name the missing ranks. An error in the arguments of a rank
is raised on all ranks. The messages have a tag of their own, so that ranks compare even
if they call different operations or forms.
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

#: the tag of descriptions; the tags of calls begin at 1
_CHECKED_TAG = 0


class _Exchange:
    """An exchange of rows, a message from each rank to each rank."""

    def __init__(self, comm: MPI.Intracomm, row: dict[str, Any]) -> None:
        self._comm, own = comm, comm.Get_rank()
        self.rows: list[Any] = [None] * comm.Get_size()
        self.rows[own] = row
        self._missing = [r for r in range(len(self.rows)) if r != own]
        self._sends = [comm.isend(row, r, _CHECKED_TAG) for r in self._missing]

    def are_complete(self) -> bool:
        """Receive the rows that have arrived, and tell whether all have."""
        for r in [r for r in self._missing if self._comm.Iprobe(r, _CHECKED_TAG)]:
            self.rows[r] = self._comm.recv(None, r, _CHECKED_TAG)
            self._missing.remove(r)
        return not self._missing and bool(MPI.Request.Testall(self._sends))

    def stalled(self, seconds: float) -> Stalled:
        """The error that names the ranks whose rows are missing after a time."""
        n = len(self.rows)
        has = f"the arguments of {n - len(self._missing)} of {n}"
        return Stalled(seconds, self._missing, has)


def agree(context: Context, call: Call) -> None:
    """Compare a call with the calls of all ranks, and raise the differences.

    The method and the algorithm are compared first, since to read the arguments may
    measure messages, which needs all ranks in equal calls. Then follow the root, the
    operator, and the bytes sent to each rank and expected from each rank.
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
    """Compare the name and the algorithm of a call, and no arguments."""
    no_arguments = {
        "sent": 0,
        "expected": {},
        "root": None,
        "operator": "",
        "error": "",
    }
    _compare(context, {"operation": label, "algorithm": algorithm, **no_arguments})


def share(context: Context, label: str, error: BaseException) -> None:
    """Raise an error in the arguments of this rank on all ranks."""
    text = f"{type(error).__name__}: {error}"
    row = {"sent": 0, "expected": {}, "root": None, "operator": "", "error": text}
    # an interrupted rank raises the interruption, not the error of the other ranks
    suppressed = () if isinstance(error, Exception) else (MismatchError,)
    with suppress(*suppressed):
        _compare(context, {"operation": label, "algorithm": "", **row})


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Exchange rows, and raise an error on all ranks if rows differ."""
    label = row["operation"]
    exchange = _Exchange(context.comm, row)
    with context.uninterrupted(label, "checked mode"):
        try:
            if not until(exchange.are_complete, context.limit, context.channel.check):
                assert context.limit.seconds is not None
                raise exchange.stalled(context.limit.seconds)
        except BaseException:
            context.orphans.append(exchange)
            raise
    rows = exchange.rows
    wrong = [
        f"{context.who(i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    wrong = wrong or _differences(context, rows, "operation")
    wrong = wrong or _differences(context, rows, "algorithm")
    wrong = wrong or _roots(context, rows)
    wrong = wrong or _operators(context, rows)
    wrong = wrong or _sizes(context, rows)
    if wrong:
        rest = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        first = rows[0]["operation"]
        raise MismatchError(f"isthmus {first}: {'; '.join(wrong[:3])}{rest}")


def _differences(context: Context, rows: list[dict[str, Any]], field: str) -> list[str]:
    """The ranks whose value of a field differs from the first rank's, in words."""
    first = rows[0][field]
    return [
        f"{context.who(i)} calls {field} {row[field]!r}, {context.who(0)} {first!r}"
        for i, row in enumerate(rows)
        if row[field] != first
    ]


def _roots(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """The ranks whose root differs from the first root named, in words."""
    named = [(i, row["root"]) for i, row in enumerate(rows) if row["root"] is not None]
    return [
        f"{context.who(i)} calls with root {context.who(root)}, "
        f"{context.who(named[0][0])} with {context.who(named[0][1])}"
        for i, root in named
        if root != named[0][1]
    ]


def _operators(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """The ranks whose operator differs from the first operator named, in words."""
    named = [(i, row["operator"]) for i, row in enumerate(rows) if row["operator"]]
    return [
        f"{context.who(i)} combines by {operator}, "
        f"{context.who(named[0][0])} by {named[0][1]}"
        for i, operator in named
        if operator != named[0][1]
    ]


def _sizes(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """The messages whose sender and receiver differ in the size, in words."""
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
