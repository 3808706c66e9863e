"""Draws the pictures of chains: `python docs/chains.py`."""

from __future__ import annotations

from pathlib import Path

from isthmus.draw.chain import bins_figure, scan_figure
from isthmus.draw.linking import hash_figure, radix_figure
from isthmus.draw.sorting import bitonic_figure, cheng_figure, tree_figure
from isthmus.draw.table import table_figure

FOLDER = Path(__file__).parent / "pictures"
FIGURES = {
    "scan": scan_figure,
    "bins": bins_figure,
    "bitonic": bitonic_figure,
    "tree": tree_figure,
    "table": table_figure,
    "cheng": cheng_figure,
    "radix": radix_figure,
    "hash": hash_figure,
}

for name, figure in FIGURES.items():
    figure().savefig(FOLDER / f"{name}.png", dpi=140)
