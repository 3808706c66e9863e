"""Draw the picture of the README from the files that `isthmus bench --csv` wrote.

python docs/results/gain.py
"""

from __future__ import annotations

import csv
from pathlib import Path

from matplotlib.figure import Figure

HERE = Path(__file__).parent
LIBRARIES = {"mpich": "MPICH 5.0.2", "openmpi": "Open MPI 5.0.11"}
#: operation, bytes of a block or a vector as the file has them, the file
ROWS = [
    *(
        (op, n, "four_a_host")
        for op, n in (
            ("allgather", 96_000),
            ("bcast", 983_040),
            ("reduce", 983_040),
            ("allreduce", 983_040),
            ("reduce_scatter_block", 983_040),
            ("alltoall", 192_000),
        )
    ),
    *((op, 1 << 20, "one_a_host") for op in ("allgather", "allgatherv", "bcast")),
]
NATIVE, OURS, INK = "#b9b9b9", "#e6550d", "#222222"
WHERE = {"four_a_host": "4 ranks a host", "one_a_host": "1 rank a host"}


def multiples(library: str, op: str, nbytes: int, name: str) -> dict[str, list[float]]:
    """Of both contenders: time, low and high end of its interval, over the limit."""
    with (HERE / f"{library}-{name}.csv").open(encoding="utf-8") as file:
        found = {
            row["contender"]: [
                float(row[x]) / float(row["limit"]) for x in ("seconds", "low", "high")
            ]
            for row in csv.DictReader(file)
            if row["operation"] == op
            and abs(int(row["bytes"]) / nbytes - 1) < 0.02
            and row["limit"]
        }
    assert {"native", "auto"} <= found.keys(), (library, op, nbytes, name)
    return found


def figure() -> Figure:
    """A panel for each library: times as multiples of what the links allow."""
    picture = Figure(figsize=(9.6, 5.0), layout="constrained")
    panels = picture.subplots(1, 2, sharey=True)
    for axes, (library, title) in zip(panels, LIBRARIES.items(), strict=True):
        for y, row in enumerate(ROWS):
            found = multiples(library, *row)
            for name, colour, up in (("native", NATIVE, -0.2), ("auto", OURS, 0.2)):
                mid, low, high = found[name]
                label = {"native": "the library's own call", "auto": "isthmus"}[name]
                axes.barh(
                    y + up, mid, 0.38, color=colour, label=label if not y else None
                )
                axes.plot([low, high], [y + up] * 2, color=INK, lw=1.2)
            gain = found["native"][0] / found["auto"][0]
            words = f"{gain:.1f}×"
            right = found["native"][2] + 0.3
            axes.text(right, y - 0.2, words, va="center", fontsize=9, weight="bold")
        axes.axvline(1, color=INK, ls="--", lw=1, label="limit of the links")
        axes.set_title(title, loc="left", fontsize=11, weight="bold")
        axes.set_xlabel("time / limit")
        axes.set_xlim(0, 22)
        axes.spines[["top", "right"]].set_visible(False)
    names = [f"{op.capitalize()}, {WHERE[name]}" for op, _, name in ROWS]
    panels[0].set_yticks(range(len(ROWS)), names, fontsize=9)
    panels[0].invert_yaxis()
    panels[1].legend(loc="lower right", frameon=False, fontsize=9)
    picture.suptitle(
        "Between groups of 16 and 16 processes, on a shaped network of namespaces on one "
        "machine\n(1 rank a host: 32 hosts, 500 Mbit/s; 4 ranks a host: 8 hosts, "
        "200 Mbit/s); lines: 95 % intervals",
        fontsize=9,
        x=0.01,
        ha="left",
    )
    return picture


if __name__ == "__main__":
    figure().savefig(HERE.parent / "pictures" / "gain.png", dpi=130)
