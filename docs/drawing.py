"""Pictures of the pages that are drawn by a command or from Python.

`python docs/drawing.py` draws all of them into `docs/pictures`. They are in the
repository, as pages are also read there, where nothing draws. Below a picture that a
command drew the page says which one, and that is where this program finds it:

    ![what there is to see](pictures/drawn/allgather-direct-groups-3-2.svg)

    `isthmus draw allgather direct --groups 3,2`
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import draw_irregular
import isthmus
from isthmus.cli.app import run
from isthmus.cost.machine import Level, Machine, Memory
from isthmus.draw import schedule
from isthmus.draw.gantt import gantts
from isthmus.schedules.names import described

DOCS = Path(__file__).parent
DRAWN = re.compile(
    r"^!\[[^]\n]+\]\((?P<path>pictures/drawn/[^)\n]*)\)\n\n"
    r"`isthmus draw (?P<words>[^`]*)`$",
    re.MULTILINE,
)


def commands() -> Iterator[tuple[Path, list[str]]]:
    """The picture of each command in the pages, and the words of the command."""
    for page in sorted(DOCS.glob("*.md")):
        for match in DRAWN.finditer(page.read_text(encoding="utf-8")):
            yield DOCS / match["path"], shlex.split(match["words"])


def draw(words: list[str], path: Path) -> None:
    """The picture of a command, the same bytes whenever it is drawn."""
    from matplotlib import rc_context

    settings = {"svg.hashsalt": "isthmus"}
    with rc_context(settings), contextlib.redirect_stdout(io.StringIO()):
        status = run(["draw", *words, "-o", str(path)])
    if status:
        raise SystemExit(f"isthmus draw {' '.join(words)} returned {status}")
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<dc:date>.*?</dc:date>", "", text)
    path.write_text(re.sub(r" +$", "", text, flags=re.MULTILINE), encoding="utf-8")


def exchange(folder: Path) -> None:
    """The picture of the README: Algorithm 1 of Kang et al."""
    sizes = {"p": 6, "q": 2, "ka": 6, "kb": 6}
    made = isthmus.schedule("inter_allgather", "segmented", **sizes)
    schedule.figure(made).savefig(folder / "segmented.png", dpi=100)


def irregular(folder: Path) -> None:
    """The pictures of the page on unequal blocks."""
    counts, size = [5, 2, 0, 4], 2
    made = isthmus.schedule("allgatherv", f"blocked_ring(size={size})", counts=counts)
    draw_irregular.figure(counts, size).savefig(folder / "irregular.png", dpi=110)
    schedule.figure(made).savefig(folder / "blocked_ring.png", dpi=100)


def on_nodes(folder: Path) -> None:
    """The timelines of the page on nodes, on the machine that it describes."""
    where = [r % 3 for r in range(12)]
    levels = Level(4, 0.5e-6, 1 / 8e9), Level(None, 5e-6, 1 / 3e9)
    memory = Memory(1 / 10e9, 1 / 60e9, 1e-6)
    machine = Machine(levels, placement=tuple(where), memory=memory)
    sizes = {"p": 6, "q": 6, "ka": 32 << 10, "kb": 32 << 10}
    lines = {}
    for name in ("segmented", "node_aware"):
        made = isthmus.schedule("inter_allgather", name, **sizes, nodes=where)
        title = f"{described(made.collective)}, {name}"
        lines[title] = made.simulate(machine, record=True)
    gantts(lines, (6, 6), where).savefig(folder / "nodes.png", dpi=110)


if __name__ == "__main__":
    (DOCS / "pictures" / "drawn").mkdir(exist_ok=True)
    for path, words in commands():
        draw(words, path)
    for draw_pictures in (exchange, irregular, on_nodes):
        draw_pictures(DOCS / "pictures")
