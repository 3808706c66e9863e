"""Files that a command writes, tried before the work begins.

The trial comes before the start of MPI too, since a rank that ends later ends all
others. A suffix says the kind of a file, so that a wrong suffix is refused. A missing
folder is a slip of the pen more often than a wish: only commands whose output is a
folder create that folder, and tell the user.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..launch.mpiexec import own_rank

#: the kinds in documents; matplotlib could write others too
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_file(path: Path | None, kinds: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, or whose suffix is of another kind.

    A name without a suffix may be of any kind but a picture. Of several ranks, only the
    first tries, because only the first will write.
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
    """Refuse a picture that cannot be written, or a suffix of no picture."""
    if path is None:
        return
    import matplotlib  # noqa: F401  a missing package is reported before the work

    if path.suffix not in PICTURE_SUFFIXES:
        raise ValueError(f"{path}: not a kind of picture; .png, .svg and .pdf are")
    check_file(path)


def check_folder(path: Path) -> None:
    """Refuse a folder that cannot be created, or in which no file can be written."""
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
    """Create a missing folder for a report, and tell the user."""
    if not path.is_dir():
        path.mkdir()
        print(f"new folder {path}", file=sys.stderr)


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the suffix of its name decides on the kind of file."""
    picture.savefig(path, dpi=140)
    return path
