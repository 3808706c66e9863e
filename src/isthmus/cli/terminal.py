"""What a person sees while something takes its time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console

from ..bench.launch import own_rank


def busy(console: Console, words: str) -> AbstractContextManager[Any]:
    """A turning sign; none in a process that measures, since it would take its time."""
    if own_rank() is not None:
        return nullcontext()
    return console.status(words, refresh_per_second=4)
