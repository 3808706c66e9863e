"""The commands together, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from ..lab.mpiexec import LaunchError, own_rank
from ..schedules import plugins
from ..settings import IMPORT, plugins as named
from . import (
    bench,
    bound,
    check,
    demo,
    draw,
    explore,
    lab,
    listing,
    predict,
    record,
    reproduce,
    trace,
    tune,
)
from .examples import epilog

app = typer.Typer(
    name="isthmus",
    help="Fast collectives between groups of MPI processes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text: the same with every version of typer
)


def _version(asked: bool) -> None:
    if asked:
        print(f"isthmus {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="print the version"
        ),
    ] = False,
    import_: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            help="a Python file with algorithms of your own; may be repeated",
        ),
    ] = None,
) -> None:
    if import_:
        found = [os.path.abspath(path) for path in import_]
        plugins.load(found)
        # for the processes that a command starts
        os.environ[IMPORT] = os.pathsep.join([*named(), *found])


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "bench": bench.bench,
    "check": check.check,
    "bound": bound.bound,
    "list": listing.list_,
    "draw": draw.draw,
    "explore": explore.explore,
    "predict": predict.predict,
    "trace": trace.trace,
    "record": record.record,
    "tune": tune.tune,
    "reproduce": reproduce.reproduce,
}
for name, function in COMMANDS.items():
    app.command(name, epilog=epilog(name))(function)
app.add_typer(lab.lab)


def _complain(message: str, status: int) -> int:
    """Say what is wrong, once, whoever started how many of us."""
    if not own_rank():
        print(f"isthmus: {message}", file=sys.stderr)
    return status


def run(arguments: list[str]) -> int:
    """The exit status of a command: 0, 1 if it found something wrong, 2 if misused."""
    try:
        status = app(arguments, prog_name="isthmus", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return _complain("stopped", 130)
    except LaunchError as error:
        return _complain(str(error), 1)
    except ValueError as error:
        return _complain(str(error), 2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _complain(f"{where}{error.strerror or error}", 2)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        return _complain('pictures need: pip install "isthmus[plot]"', 2)
    except Exception as error:
        # What typer and click raise for bad input has a message for people; which of
        # the two defines it depends on the version.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if not message or type(error).__name__ == "NoArgsIsHelpError":
            print(message, end="\n" if message else "")
            return 0
        return _complain(message, 2)
    return status if isinstance(status, int) else 0
