"""The commands together, and the exit status and message of each error."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from .. import __version__
from .commands import CommandGroup

app = typer.Typer(
    name="isthmus",
    cls=CommandGroup,
    help="Fast collectives between groups of MPI processes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text: the same with every version of typer
)


def _version(is_asked: bool) -> None:
    if is_asked:
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
            metavar="FILE",
            help="a Python file with algorithms of your own; may be repeated",
        ),
    ] = None,
) -> None:
    if import_:
        from ..schedules import plugins
        from ..settings import IMPORT, plugins as named

        paths = [os.path.abspath(path) for path in import_]
        plugins.load(paths)
        # Otherwise the processes that a command starts would not know the algorithms.
        os.environ[IMPORT] = os.pathsep.join([*named(), *paths])


def run(arguments: list[str]) -> int:
    """The exit status of a command: 0, 1 if a check failed, 2 if misused."""
    try:
        status = app(arguments, prog_name="isthmus", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        _say_notes(False)
        return _failure(error)
    _say_notes(True)
    return status if isinstance(status, int) else 0


def _say_notes(has_succeeded: bool) -> None:
    """Print the notes of a command.

    Only commands with our options can have notes; the module of options is not imported
    for others.
    """
    options = sys.modules.get(f"{__package__}.options")
    if options is not None:
        options.say_notes(has_succeeded)


def _complain(message: str, status: int) -> int:
    """Print a message of error; of several ranks under an mpiexec, on rank 0 alone."""
    from ..launch.mpiexec import own_rank

    if not own_rank():
        print(f"isthmus: {message}", file=sys.stderr)
    return status


def _failure(error: BaseException) -> int:
    """The exit status of a command that raised an error, with a line for its user."""
    from ..launch.mpiexec import LaunchError

    if isinstance(error, typer.Abort | KeyboardInterrupt):
        return _complain("stopped", 130)
    if isinstance(error, LaunchError):
        return _complain(str(error), 1)
    if isinstance(error, ValueError):
        return _complain(str(error), 2)
    if isinstance(error, OSError):
        path_prefix = f"{error.filename}: " if error.filename is not None else ""
        return _complain(f"{path_prefix}{error.strerror or error}", 2)
    if isinstance(error, ModuleNotFoundError) and error.name == "matplotlib":
        return _complain('pictures need: pip install "isthmus[plot]"', 2)
    # Errors of typer and click for bad input have a message for people; the version
    # decides in which of the two packages their class is.
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        raise error
    message = format_message()
    if not message or type(error).__name__ == "NoArgsIsHelpError":
        print(message, end="\n" if message else "")
        return 0
    return _complain(message, 2)
