"""The checked mode: all ranks compare their arguments first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..waiting.waiting import wait
from .progress import driver

if TYPE_CHECKING:
    from .context import Context


class MismatchError(ValueError):
    """The ranks of an operation do not agree on their arguments."""


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


def _sizes(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Messages whose sender and receiver do not agree on their size."""
    found = []
    for i, row in enumerate(rows):
        for j, expected in row["expected"].items():
            sent = rows[j]["sent"]
            if isinstance(sent, dict):
                sent = sent.get(i, 0)
            if sent != expected:
                found.append(
                    f"{context.who(j)} sends {sent} bytes, "
                    f"{context.who(i)} expects {expected}"
                )
    return found


def _operators(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Ranks that combine by another operator than the first that names one."""
    named = [(i, row["operator"]) for i, row in enumerate(rows) if row["operator"]]
    return [
        f"{context.who(i)} combines by {operator}, "
        f"{context.who(named[0][0])} by {named[0][1]}"
        for i, operator in named
        if operator != named[0][1]
    ]


class _Rows:
    """The rows of all ranks, each in a message of its own: so it is known who does not
    come."""

    spins = 0

    def __init__(self, comm: MPI.Intracomm, row: dict[str, Any]) -> None:
        self.comm, me = comm, comm.Get_rank()
        self.rows: list[Any] = [None] * comm.Get_size()
        self.rows[me] = row
        self.left = [r for r in range(len(self.rows)) if r != me]
        # of the tag of blocking calls: others may be under way
        self.sends = [comm.isend(row, r, 0) for r in self.left]

    def test(self) -> bool:
        """Take what has come; whether that is all."""
        for r in [r for r in self.left if self.comm.Iprobe(r, 0)]:
            self.rows[r] = self.comm.recv(None, r, 0)
            self.left.remove(r)
        return not self.left and bool(MPI.Request.Testall(self.sends))

    def progress(self) -> None:
        """A test lets MPI go on."""

    def missing(self) -> list[int]:
        """Who has not come."""
        return self.left

    def has(self) -> str:
        """What is there already."""
        return f"the arguments of {len(self.rows) - len(self.left)} of {len(self.rows)}"


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Let everyone see every row; raise the same error everywhere if they differ."""
    found_all = _Rows(context.comm, row)
    with context.uninterrupted(row["operation"], "checked mode"):
        try:
            wait(found_all, context.limit)
        except BaseException:
            driver.failed.append(found_all)
            raise
    rows = found_all.rows
    found = [
        f"{context.who(i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    found = found or _differences(context, rows, "operation")
    found = found or _differences(context, rows, "algorithm")
    found = found or _roots(context, rows)
    found = found or _operators(context, rows)
    found = found or _sizes(context, rows)
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        first = rows[0]["operation"]
        raise MismatchError(f"isthmus {first}: {'; '.join(found[:3])}{more}")


def agree(
    context: Context,
    op: str,
    algorithm: str,
    sent: int | dict[int, int],
    expected: dict[int, int],
    root: int | None = None,
    operator: str = "",
) -> None:
    """Compare a call that is right by itself with those of the other ranks: the bytes
    sent, to everyone or to each, and expected from each, the root's number, and what
    combines them."""
    _compare(
        context,
        {
            "operation": op,
            "algorithm": algorithm,
            "sent": sent,
            "expected": expected,
            "root": root,
            "operator": operator,
            "error": "",
        },
    )


def share(context: Context, op: str, error: BaseException) -> None:
    """Tell the other ranks that this one's arguments are wrong; all raise that, but
    for one that is interrupted."""
    text = f"{type(error).__name__}: {error}"
    nothing = {"algorithm": "", "sent": 0, "expected": {}, "root": None, "operator": ""}
    try:
        _compare(context, {"operation": op, **nothing, "error": text})
    except MismatchError:
        if isinstance(error, Exception):
            raise
