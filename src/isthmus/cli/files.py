"""Files that a command writes: tried before the work begins.

Also before MPI is started: a rank that ends then ends the others with it. A name says
what kind of file it is, so one that says another is refused; a folder that is not there
is a slip of the pen more often than a wish, so only commands whose output is a folder
make one, and say so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..launch.mpiexec import own_rank

#: matplotlib writes more kinds, which nobody asked for
PICTURES = (".png", ".svg", ".pdf")


def check_file(path: Path | None, kinds: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, or whose name says another kind.

    A name without an ending says nothing, so it may be of any kind but a picture. Only
    the process that will write it tries.
    """
    if path is None:
        return
    if kinds and path.suffix not in ("", *kinds):
        raise ValueError(f"{path}: must be a {' or '.join(kinds)} file")
    if own_rank():
        return
    folder = path.parent
    if not folder.is_dir() and not folder.exists():
        raise ValueError(f"{path}: there is no folder {folder}")
    new = not path.exists()
    with path.open("ab"):
        pass
    if new:
        path.unlink()


def check_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be written, or not as a file of this kind."""
    if path is None:
        return
    import matplotlib  # noqa: F401  its lack is told before the work begins

    if path.suffix not in PICTURES:
        raise ValueError(f"{path}: not a kind of picture; .png, .svg and .pdf are")
    check_file(path)


def check_folder(path: Path) -> None:
    """Refuse a folder that cannot be made, or in which no file can be written."""
    if own_rank():
        return
    if path.is_dir():
        check_file(path / ".isthmus-writes-here")
        return
    if not path.exists() and not path.parent.exists():
        raise ValueError(f"{path}: there is no folder {path.parent}")
    path.mkdir()
    path.rmdir()


def make_folder(path: Path) -> None:
    """Make the folder of a report where it is not there, and say so."""
    if not path.is_dir():
        path.mkdir()
        print(f"new folder {path}", file=sys.stderr)


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the kind of file follows from its name."""
    picture.savefig(path, dpi=140)
    return path
