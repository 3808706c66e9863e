"""How far algorithms are from the lower bounds of small cases: the tables of
docs/algorithms.md, by the programs of `isthmus bound`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from isthmus.bound.distances import Bounds, bounds, rows

#: for each collective its cases: what a column is called, and the sizes
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "inter_allgatherv": {
        "3 + 3, equal": {"a": [2] * 3, "b": [2] * 3},
        "5 + 5, equal": {"a": [1] * 5, "b": [1] * 5},
        "4 + 2, equal": {"a": [1] * 4, "b": [1] * 2},
        "4 + 2, equal totals": {"a": [1] * 4, "b": [2] * 2},
        "3 + 3, a giant": {"a": [6, 0, 0], "b": [2] * 3},
        "5 + 5, a giant": {"a": [5, 0, 0, 0, 0], "b": [1] * 5},
        "3 + 3, two giants": {"a": [6, 0, 0], "b": [0, 6, 0]},
        "3 + 3, one way": {"a": [2] * 3, "b": [0] * 3},
    },
    "inter_reduce_scatter": {
        "3 + 3, equal": {"a": [2] * 3, "b": [2] * 3},
        "4 + 2, equal": {"a": [1] * 4, "b": [2] * 2},
        "3 + 3, a giant": {"a": [6, 0, 0], "b": [2] * 3},
        "5 + 5, a giant": {"a": [5, 0, 0, 0, 0], "b": [1] * 5},
        "3 + 3, two giants": {"a": [6, 0, 0], "b": [0, 6, 0]},
    },
    "inter_bcast": {
        "1 + 3": {"q": 3, "m": 3},
        "1 + 4": {"q": 4, "m": 3},
        "1 + 5": {"q": 5, "m": 3},
    },
    "inter_alltoallv": {
        "3 + 3, equal": {"ab": [[1] * 3] * 3, "ba": [[1] * 3] * 3},
        "4 + 2, equal": {"ab": [[1] * 2] * 4, "ba": [[1] * 4] * 2},
        "3 + 3, a giant": {
            "ab": [[4, 0, 0], [0, 1, 1], [0, 1, 1]],
            "ba": [[1] * 3] * 3,
        },
    },
}


def _number(least: float | None) -> str:
    return "?" if least is None else f"{least:.2f}".rstrip("0").rstrip(".")


def _bound(found: Bounds) -> str:
    more = "" if found.startups.exact else "≥ "
    return f"{_number(found.transfer)}, {more}{found.startups.steps}"


def table(collective: str, seconds: float) -> str:
    """A row for each algorithm, a column for each case."""
    cells: dict[str, dict[str, str]] = {}
    heads = {}
    best: dict[str, float] = {}
    for case, sizes in CASES[collective].items():
        known = list(rows(collective, sizes))
        found = bounds(collective, sizes, known, seconds=seconds)
        heads[case] = _bound(found)
        least = found.transfer or 1.0
        for row in known:
            far = row.transfer / least
            cells.setdefault(row.name, {})[case] = f"{far:.2f}, {row.startups:.0f}"
            best[row.name] = best.get(row.name, 0.0) + far
        print(f"{collective}, {case}: {heads[case]}", file=sys.stderr)
    lines = [f"| `{collective}` | " + " | ".join(heads) + " |"]
    lines.append("|---" * (1 + len(heads)) + "|")
    lines.append("| bound | " + " | ".join(heads.values()) + " |")
    for name in sorted(cells, key=lambda name: best[name]):
        row = (cells[name].get(case, "–") for case in heads)
        lines.append(f"| `{name}` | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, and keep them."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    text = "\n".join(table(collective, seconds) for collective in CASES)
    print(text, end="")
    (Path(__file__).parent / "results" / "distances.txt").write_text(text)


if __name__ == "__main__":
    main()
