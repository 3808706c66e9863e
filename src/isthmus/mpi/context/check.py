"""The checked mode: all ranks compare their arguments first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Let everyone see every row; raise the same error everywhere if they differ."""
    with context.uninterrupted():
        rows = context.comm.allgather(row)
    found = [
        f"{context.who(i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    found = found or _differences(context, rows, "operation")
    found = found or _differences(context, rows, "algorithm")
    found = found or _roots(context, rows)
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
) -> None:
    """Compare a call that is right by itself with those of the other ranks: the bytes
    sent, to everyone or to each, and expected from each, and the root's number."""
    _compare(
        context,
        {
            "operation": op,
            "algorithm": algorithm,
            "sent": sent,
            "expected": expected,
            "root": root,
            "error": "",
        },
    )


def share(context: Context, op: str, error: BaseException) -> None:
    """Tell the other ranks that this one's arguments are wrong; all raise that, but
    for one that is interrupted."""
    text = f"{type(error).__name__}: {error}"
    nothing = {"algorithm": "", "sent": 0, "expected": {}, "root": None}
    try:
        _compare(context, {"operation": op, **nothing, "error": text})
    except MismatchError:
        if isinstance(error, Exception):
            raise
