"""A pytest plugin: the lines of the runtime that each test executes, and its time.

Named in PYTEST_PLUGINS, it is in the pytest that a person starts, where it leaves out
what runs on other numbers of ranks, and in that of every rank, which appends a line of
JSON for each test to a file of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from launcher.batch import size_of
from launcher.ranks import JOB

#: the folder that the lines are written to; the sources they are of; numbers of ranks
LINES, SOURCES, RANKS = "ISTHMUS_LINES", "ISTHMUS_LINES_OF", "ISTHMUS_LINES_RANKS"


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if JOB in os.environ:
        return
    sizes = {int(n) for n in os.environ[RANKS].split(",")}
    others = [item for item in items if size_of(item) not in sizes]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if size_of(item) in sizes]


class _Lines:
    """The lines that are executed, in all threads."""

    def __init__(self, sources: str) -> None:
        self._prefix = sources.rstrip("/") + "/"
        self.executed: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        """See all frames from now on that begin."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._prefix):
            return None
        lines = self.executed.setdefault(code, set())

        def line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def take(self) -> dict[str, list[int]]:
        """The lines of each file that were executed since they were taken last."""
        executed, self.executed = self.executed, {}
        files: dict[str, set[int]] = {}
        for code, lines in list(executed.items()):
            name = code.co_filename.removeprefix(self._prefix)
            files.setdefault(name, set()).update(lines)
        return {name: sorted(lines) for name, lines in files.items()}


class _Rank:
    """The plugin of a rank."""

    def __init__(self, folder: str, sources: str) -> None:
        self.path = Path(folder, f"{os.getpid()}.jsonl")
        self.lines = _Lines(sources)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.lines.start()
        self.lines.take()
        begin = time.monotonic()
        result = yield
        seconds = time.monotonic() - begin
        line = {
            "test": item.nodeid,
            "seconds": round(seconds, 3),
            "lines": self.lines.take(),
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return result


def pytest_configure(config: pytest.Config) -> None:
    if JOB in os.environ:
        rank = _Rank(os.environ[LINES], os.environ[SOURCES])
        config.pluginmanager.register(rank, "isthmus-lines")
