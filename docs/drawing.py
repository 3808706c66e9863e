"""A directive for pictures of schedules, each with the command that makes it.

```{draw} inter_allgather segmented --p 4 --q 2
:alt: what there is to see
```

Pictures that no command makes: `python docs/drawing.py` draws them into `pictures`.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import isthmus
from isthmus.cli.app import run
from isthmus.draw import nodes as clusters, schedule

FOLDER = "_build/pictures"
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


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("draw", Draw)
    return {"parallel_read_safe": True}


def pictures(folder: Path) -> None:
    """The pictures of the page on unequal blocks."""
    counts, size = [5, 2, 0, 4], 2
    made = isthmus.schedule("allgatherv", f"blocked_ring(size={size})", counts=counts)
    clusters.figure(counts, size).savefig(folder / "irregular.png", dpi=110)
    schedule.figure(made).savefig(folder / "blocked_ring.png", dpi=100)


if __name__ == "__main__":
    pictures(Path(__file__).parent / "pictures")
