"""The command line: `isthmus`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; bad input gives a line of error and exit status 2."""
    try:
        from .app import run
    except KeyboardInterrupt:
        print("isthmus: stopped", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        print('the command line needs: pip install "isthmus[cli]"', file=sys.stderr)
        sys.exit(2)
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
