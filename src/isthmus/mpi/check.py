"""The checked mode: all ranks of both groups compare their arguments first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .context import Context


class MismatchError(ValueError):
    """The ranks of an operation do not agree on their arguments."""


def _who(context: Context, number: int) -> str:
    p = context.p
    return f"group A rank {number}" if number < p else f"group B rank {number - p}"


def _differences(context: Context, rows: list[dict[str, Any]], what: str) -> list[str]:
    """Ranks whose value differs from that of the first, in words."""
    first = rows[0][what]
    return [
        f"{_who(context, i)} calls {what} {row[what]!r}, {_who(context, 0)} {first!r}"
        for i, row in enumerate(rows)
        if row[what] != first
    ]


def _sizes(context: Context, rows: list[dict[str, Any]]) -> list[str]:
    """Messages whose sender and receiver do not agree on their size."""
    found = []
    for i, row in enumerate(rows):
        base = context.p if i < context.p else 0
        for j, expected in enumerate(row["expected"]):
            sent = rows[base + j]["sent"]
            if sent != expected:
                found.append(
                    f"{_who(context, base + j)} sends {sent} bytes, "
                    f"{_who(context, i)} expects {expected}"
                )
    return found


def _compare(context: Context, row: dict[str, Any]) -> None:
    """Let everyone see every row; raise the same error everywhere if they differ."""
    rows = context.merged.allgather(row)
    found = [
        f"{_who(context, i)}: {x['error']}" for i, x in enumerate(rows) if x["error"]
    ]
    found = found or _differences(context, rows, "operation")
    found = found or _differences(context, rows, "algorithm")
    found = found or _sizes(context, rows)
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        first = rows[0]["operation"]
        raise MismatchError(f"isthmus {first}: {'; '.join(found[:3])}{more}")


def agree(
    context: Context, op: str, algorithm: str, sent: int, expected: tuple[int, ...]
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
    row = {"operation": op, "algorithm": "", "sent": 0, "expected": (), "error": text}
    _compare(context, row)
