"""What is printed of an error of isthmus that a program does not catch.

Python prints how the program was started, the program's own lines, and where in
isthmus the error was raised: forty lines, from each of the ranks that have it, which
mix. Errors that isthmus raises on purpose say who, what and why, so one line of each
rank will do, written at once: the rank, the program's lines that led there, the error.

    rank 3: coupled.py:41, exchange.py:12: isthmus.MismatchError: isthmus Allgather: …

An error raised on purpose stands at a `raise` in isthmus. What fails in any other way,
in the program or in isthmus, is printed as ever; so is everything in a program of one
process, and where the program has an `excepthook` of its own.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from pathlib import Path
from types import TracebackType

OURS = str(Path(__file__).parents[2])
#: files of `python -m mpi4py`, which stand before those of the program
STARTING = ("<frozen runpy>", "/runpy.py", "/mpi4py/__main__.py", "/mpi4py/run.py")


def install() -> None:
    """Print uncaught errors so, unless the program has a way of its own."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print


def line(error: BaseException) -> str | None:
    """An error that isthmus raised on purpose, in one line; None of any other."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or error.__cause__ is not None or not _is_on_purpose(frames[-1]):
        return None
    files = [(x.filename, x.lineno) for x in frames if not x.filename.startswith(OURS)]
    places = ", ".join(f"{x}:{n}" for x, n in files if not x.endswith(STARTING))
    name = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"{places}: {name}"


def _is_on_purpose(frame: traceback.FrameSummary) -> bool:
    source = linecache.getline(frame.filename, frame.lineno or 0)
    return frame.filename.startswith(OURS) and source.lstrip().startswith("raise ")


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
