"""What a person reads: the reports of the ranks, and of launches that broke."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Line: TypeAlias = dict[str, Any]  # what a rank wrote, as ranks.py composes it

TAIL = 8000  # characters shown of what each rank printed

# Lines of a traceback that lie below the test itself and say nothing about it.
BELOW = re.compile(
    r'^ *File "[^"]*(/_pytest/|/pytest/|/pluggy/|/mpi4py/|<frozen runpy>).*\n'
    r'|^ *File "[^"]*/ranks.py", line \d+ in pytest_runtest_protocol\n',
    re.MULTILINE,
)


def names(ranks: list[int], size: int) -> str:
    """Ranks in words, as in "rank 1 of 3"."""
    if len(ranks) == size:
        return f"all {size} ranks" if size > 1 else "the only rank"
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} of {size}"


@dataclass(frozen=True)
class Fault:
    """Why a launch ended inside a test; pytest takes it as a failure's description."""

    message: str
    details: str

    @property
    def reprcrash(self) -> Fault:
        """Where pytest looks for the message of its summary."""
        return self

    def toterminal(self, terminal: Any) -> None:
        """Write the message, and below it what the ranks left behind."""
        terminal.line(self.message, red=True, bold=True)
        terminal.line(self.details)

    def __str__(self) -> str:
        return f"{self.message}\n{self.details}"


def remains(folder: Path, test: str = "") -> str:
    """What each rank printed since the test began, and what mpiexec said."""
    parts = []
    for path in sorted(folder.glob("rank-*"), key=lambda p: int(p.name[5:])):
        text = path.read_text(encoding="utf-8", errors="replace")
        parts.append((path.name.replace("-", " "), text.rpartition(f"@ {test}\n")[2]))
    said = (folder / "launcher").read_text(encoding="utf-8", errors="replace")
    parts.append(("mpiexec", said))
    shown = [(who, BELOW.sub("", text).strip()[-TAIL:]) for who, text in parts]
    return "\n".join(f"--- {who}\n{text}" for who, text in shown if text)


def unwritten(item: pytest.Item, outcome: Any, why: Any, **more: Any) -> Any:
    """A report that no rank wrote."""
    words: Any = dict.fromkeys(item.keywords, 1)
    more = {"when": "call"} | more
    return pytest.TestReport(item.nodeid, item.location, words, outcome, why, **more)


def revive(config: pytest.Config, data: dict[str, Any]) -> pytest.TestReport:
    """A report that came as JSON, where the place of a skip is no longer a tuple."""
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(
        config=config, data=data
    )
    place: Any = report.longrepr
    if isinstance(place, list):
        report.longrepr = tuple(place)
    return report


def name_ranks(report: pytest.TestReport, line: Line, size: int) -> None:
    """Say in a failed report on which ranks it failed, and how on each."""
    who = names([rank for rank, _ in line["failed"]], size)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = f"[{who}] {crash.message}"
    else:
        report.longrepr = f"[{who}] {report.longrepr}"
    each = "\n".join(f"rank {rank}: {text}" for rank, text in line["failed"])
    report.sections.append((f"failed on {who}", each))
    if line["output"]:
        report.sections.append(
            (f"output of rank {line['failed'][0][0]}", line["output"])
        )
