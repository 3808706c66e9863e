"""Directives for pictures and explorers of schedules, each with the command that makes it.

```{draw} inter_allgather segmented --p 4 --q 2
:alt: what there is to see
```

```{explore} inter_allgather segmented --p 4 --q 2
:step: 2
```

Pictures that no command makes: `python docs/drawing.py` draws them into `pictures`.
"""

from __future__ import annotations

import contextlib
import io
import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import draw_irregular
import isthmus
from isthmus.cli.app import run
from isthmus.cost.hierarchy import Hierarchy, Level, Memory
from isthmus.draw import schedule
from isthmus.draw.gantt import gantts

FOLDER = "_build/pictures"
#: of what is built
EXPLORERS = "_explorers"
#: pixels of the page for a point of the picture
SCALE = 0.95


class Draw(SphinxDirective):
    """Runs `isthmus draw` and shows what it drew."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """The picture, and below it the command."""
        words = self.arguments[0].split()
        name = re.sub(r"[^\w]+", "-", "-".join(words)).strip("-")
        path = Path(self.env.srcdir, FOLDER, f"{name}.svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            status = run(["draw", *words, "-o", str(path)])
        if status:
            raise self.error(f"isthmus draw {' '.join(words)} returned {status}")
        points = re.search(r'width="([\d.]+)pt"', path.read_text(encoding="utf-8"))
        assert points is not None
        width = f"{round(SCALE * float(points[1]))}px"
        uri = f"/{FOLDER}/{name}.svg"
        image = nodes.image(uri=uri, alt=self.options["alt"], width=width)
        command = nodes.literal(text=f"isthmus draw {self.arguments[0]}")
        caption = nodes.caption("", "", command)
        return [nodes.figure("", image, caption, classes=["drawing"])]


class Explore(SphinxDirective):
    """Runs `isthmus explore` and shows the page in a frame."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {  # noqa: RUF012
        "step": directives.nonnegative_int,
        "height": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """The frame, and below it the command."""
        words = self.arguments[0].split()
        name = re.sub(r"[^\w]+", "-", "-".join(words)).strip("-")
        path = Path(self.env.app.outdir, EXPLORERS, f"{name}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            status = run(["explore", *words, "-o", str(path)])
        if status:
            raise self.error(f"isthmus explore {' '.join(words)} returned {status}")
        up = "../" * self.env.docname.count("/")
        address = f"{up}{EXPLORERS}/{name}.html#step={self.options.get('step', 1)}"
        title = escape(f"{words[0]}, {words[1]}: an explorer")
        frame = (
            f'<figure class="explorer"><iframe src="{escape(address)}" loading="lazy" '
            f'title="{title}" height="{self.options.get("height", 560)}"></iframe>'
            f"<figcaption><code>isthmus explore {escape(self.arguments[0])}</code> "
            f'<a href="{escape(address)}">open by itself</a></figcaption></figure>'
        )
        return [nodes.raw("", frame, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("draw", Draw)
    app.add_directive("explore", Explore)
    return {"parallel_read_safe": True}


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
    machine = Hierarchy(levels, placement=tuple(where), memory=memory)
    sizes = {"p": 6, "q": 6, "ka": 32 << 10, "kb": 32 << 10}
    lines = {}
    for name in ("segmented", "node_aware"):
        made = isthmus.schedule("inter_allgather", name, **sizes, nodes=where)
        lines[f"inter_allgather, {name}"] = made.simulate(machine, record=True)
    gantts(lines, (6, 6), where).savefig(folder / "nodes.png", dpi=110)


if __name__ == "__main__":
    for draw in (irregular, on_nodes):
        draw(Path(__file__).parent / "pictures")
