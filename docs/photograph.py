"""Pictures of the explorer in a browser: `python docs/photograph.py` (needs Chromium)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import isthmus

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from browser import Browser  # noqa: E402

SIZES = {"p": 6, "q": 2, "ka": 6000, "kb": 6000}
#: name, schedule, what is shown of it, height
VIEWS = (
    (
        "explorer",
        isthmus.schedule("inter_allgather", "segmented", **SIZES),
        "step=1",
        640,
    ),
    (
        "explorer-nodes",
        isthmus.schedule("allreduce", "node_aware", p=6, m=12000, nodes=[0] * 3 + [1] * 3),
        "step=4",
        720,
    ),
)


def photograph(browser: Browser, folder: Path) -> None:
    """Every view in light and in dark colours."""
    for name, schedule, view, height in VIEWS:
        path = schedule.explore(folder / f"{name}.html")
        for theme, end in (("light", ""), ("dark", "-dark")):
            page = browser.open(path, f"{view}&theme={theme}")
            page.size(1360, height)
            page.wait("document.body?.classList.contains('ready')")
            page.wait("new Promise(done => setTimeout(() => done(true), 300))")
            page.picture(DOCS / "pictures" / f"{name}{end}.png")
            page.close()


if __name__ == "__main__":
    with Browser() as opened, tempfile.TemporaryDirectory() as made:
        photograph(opened, Path(made))
