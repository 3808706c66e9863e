"""Pictures of the explorer in a browser: `python docs/photograph.py` (needs Chromium)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import isthmus
from isthmus import redistribution_schedule as redistribution
from isthmus.redistribution.order import WHOLE_MESSAGE_BYTES

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from browser import Browser  # noqa: E402

SIZES = {"p": 6, "q": 2, "ka": 6000, "kb": 6000}
NODES = {"p": 6, "m": 12000, "nodes": [0, 0, 0, 1, 1, 1]}
#: name, schedules, what is shown of them, height
VIEWS = (
    (
        "explorer-beside",
        [
            isthmus.schedule("inter_allgather", name, **SIZES)
            for name in ("segmented", "root_gathering")
        ],
        "beside=root_gathering&step=3",
        960,
    ),
    (
        "explorer-nodes",
        [isthmus.schedule("allreduce", "node_aware", **NODES)],
        "step=4",
        740,
    ),
    (
        "explorer-redistribution",
        [
            redistribution(
                isthmus.Layout.blocks((2400, 1800), (4, 2)),
                isthmus.Layout.blocks((2400, 1800), (3, 3)),
                least=WHOLE_MESSAGE_BYTES,
            )
        ],
        "step=4",
        960,
    ),
)


def photograph(browser: Browser, folder: Path) -> None:
    """Every view in light and in dark colours."""
    for name, (first, *others), view, height in VIEWS:
        path = first.explore(folder / f"{name}.html", *others)
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
