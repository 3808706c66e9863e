"""The output for an error of isthmus that a program does not catch.

Python prints the start of the program, the program's own lines, and the lines of
isthmus: forty lines from each rank with the error, mixed with the lines of all ranks. A
single line of each rank is enough for errors raised on purpose, because the text of the
error names ranks and reasons. The line has the rank, the program's lines on the way,
and the error, and is written at once.

    rank 3: coupled.py:41, exchange.py:12: isthmus.MismatchError: isthmus Allgather: …

An error raised on purpose comes from a `raise` in isthmus. Python prints all further
errors as ever, and all errors in a program of a single process or with a private
`excepthook`.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from pathlib import Path
from types import TracebackType

#: the folder of the package
PACKAGE_FOLDER = str(Path(__file__).parents[2])
#: files of `python -m mpi4py`, in a traceback before those of the program
LAUNCHER_FILES = (
    "<frozen runpy>",
    "/runpy.py",
    "/mpi4py/__main__.py",
    "/mpi4py/run.py",
)


def install() -> None:
    """Print uncaught errors in one line, unless the program has an `excepthook`."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print


def line(error: BaseException) -> str | None:
    """The line for an error that isthmus raised on purpose, otherwise None."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or error.__cause__ is not None or not _is_on_purpose(frames[-1]):
        return None
    files = [
        (x.filename, x.lineno)
        for x in frames
        if not x.filename.startswith(PACKAGE_FOLDER)
    ]
    places = ", ".join(f"{x}:{n}" for x, n in files if not x.endswith(LAUNCHER_FILES))
    name = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"{places}: {name}"


def _is_on_purpose(frame: traceback.FrameSummary) -> bool:
    source = linecache.getline(frame.filename, frame.lineno or 0)
    return frame.filename.startswith(PACKAGE_FOLDER) and source.lstrip().startswith(
        "raise "
    )


def _print(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    from mpi4py import MPI

    is_alone = not MPI.Is_initialized() or MPI.Is_finalized() or MPI.COMM_WORLD.size < 2
    text = None if is_alone else line(error)
    if text is None:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.stderr.write(f"rank {MPI.COMM_WORLD.rank}: {text}\n")
