"""Files that a command writes: tried before the work begins.

Also before MPI is started: a rank that ends then ends the others with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..lab.mpiexec import own_rank


def check_file(path: Path | None) -> None:
    """Refuse a file that cannot be written, in the one process that will write it."""
    if path is None or own_rank():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("ab"):
        pass
    if new:
        path.unlink()


def check_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be written, or not as a file of this kind."""
    if path is None:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    kind = path.suffix.removeprefix(".")
    if kind and kind not in FigureCanvasBase.filetypes:
        raise ValueError(f"{path}: not a kind of picture; .png, .svg and .pdf are")
    check_file(path)


def check_folder(path: Path) -> None:
    """Refuse a folder in which no file can be written."""
    check_file(path / ".isthmus-writes-here")


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the kind of file follows from its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=140)
    return path
