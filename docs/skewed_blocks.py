"""Which Allgatherv between two groups wins, for one large block beside equal ones: the
table of docs/ideas.md, in multiples of the larger total, in the alpha-beta model."""

from __future__ import annotations

from pathlib import Path

import isthmus
from isthmus.cost.machine import AlphaBeta

RANKS = 16
#: bytes that pass in the time of a start-up
STARTUP = 1 << 14
TOTALS_MIB = 1, 4, 16, 64, 256
#: the share of all data of A that the large block has, and what B has of that total
CASES = {
    "all": (1.0, 1.0),
    "half": (0.5, 1.0),
    "quarter": (0.25, 1.0),
    "equal": (1 / RANKS, 1.0),
    "all, B a tenth": (1.0, 0.1),
}
#: elements are of so many bytes: sizes stay exact, and the simulation short
UNIT = 1 << 10
WAYS = ("balanced+ring", "balanced+bruck", "pipelined(parts=4)", "merged+circulant")
PIECES = f"(startup={STARTUP // UNIT})"


def counts(total: int, share: float) -> list[int]:
    """One block of that share of the total, and equal ones."""
    large = round(total * share)
    rest = (total - large) // (RANKS - 1)
    return [total - rest * (RANKS - 1), *[rest] * (RANKS - 1)]


def times(a: list[int], b: list[int]) -> dict[str, float]:
    """The time of each algorithm in elements."""
    model = AlphaBeta(STARTUP / UNIT, 1.0)

    def time(collective: str, name: str, **sizes: object) -> float:
        return isthmus.schedule(collective, name, **sizes).simulate(model).time

    def option(name: str) -> str:
        return name.replace("circulant", "circulant" + PIECES)

    found = {w: time("inter_allgatherv", option(w), a=a, b=b) for w in WAYS}
    best = min(found["balanced+ring"], found.pop("balanced+bruck"))
    return {
        "balanced": best,
        "pipelined": found["pipelined(parts=4)"],
        "merged+circulant": found["merged+circulant"],
        "ring": time("multi_allgatherv", "ring" + PIECES, groups=[a, b]),
        "moving_entry": time("inter_allgatherv", "moving_entry" + PIECES, a=a, b=b),
    }


def main() -> None:
    """Print the table, and keep it."""
    lines = []
    for mib in TOTALS_MIB:
        m = (mib << 20) // UNIT
        for word, (share, other) in CASES.items():
            b = round(other * m) // RANKS
            found = times(counts(m, share), [b] * RANKS)
            if not lines:
                lines.append("| M | large block | " + " | ".join(found) + " |")
                lines.append("|---" * (2 + len(found)) + "|")
            best = min(found.values())
            cells = (
                f"**{t / m:.2f}**" if t <= 1.005 * best else f"{t / m:.2f}"
                for t in found.values()
            )
            lines.append(f"| {mib} MiB | {word} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (Path(__file__).parent / "results" / "skewed_blocks.txt").write_text(text)


if __name__ == "__main__":
    main()
