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


def _sizes(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Messages whose sender and receiver do not agree on their size."""
    found = []
    for i, row in enumerate(rows):
        for j, expected in row["expected"].items():
            sent = rows[j]["sent"]
            if sent != expected:
                found.append(
                    f"{context.who(j)} sends {sent} bytes, "
                    f"{context.who(i)} expects {expected}"
                )
    return found


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Let everyone see every row; raise the same error everywhere if they differ."""
    rows = context.comm.allgather(row)
    found = [
        f"{context.who(i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    found = found or _differences(context, rows, "operation")
    found = found or _differences(context, rows, "algorithm")
    found = found or _sizes(context, rows)
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        first = rows[0]["operation"]
        raise MismatchError(f"isthmus {first}: {'; '.join(found[:3])}{more}")


def agree(
    context: Context, op: str, algorithm: str, sent: int, expected: dict[int, int]
) -> None:
    """Compare a call that is right by itself with those of the other ranks."""
    _compare(
        context,
        {
            "operation": op,
            "algorithm": algorithm,
            "sent": sent,
            "expected": expected,
            "error": "",
        },
    )


def share(context: Context, op: str, error: Exception) -> None:
    """Tell the other ranks that this one's arguments are wrong."""
    text = f"{type(error).__name__}: {error}"
    row = {"operation": op, "algorithm": "", "sent": 0, "expected": {}, "error": text}
    _compare(context, row)
