"""The report of a lab: all named sets on one MPI library, as a page with pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..reproduce.output import table
from ..units import show_time
from .outcome import Line, is_native
from .record import Record
from .sets import PAPERS

WORDS = {
    "kang2019": "Settings 1 to 8 of Kang, Träff et al. 2019: Allgather and Allgatherv "
    "between two groups, 32 processes in all.",
    "traff2008": "The six distributions of Träff et al. 2008: Allgatherv inside one "
    "group of 16 processes.",
    "silva1999": "All collectives between two groups of 16 processes, which Silva and "
    "Silva 1999 were the first to implement.",
}
COLUMNS = ("", "", "time", "95 %", "times faster", "95 %", "of the limit")


def _cells(line: Line) -> list[str]:
    """A line as a row of the page."""
    low, high = (show_time(x) for x in line.interval)
    ratio = [f"**{line.ratio:.2f}**", "{:.2f}–{:.2f}".format(*line.ratio_interval)]
    return [
        line.case.label if is_native(line) else "",
        line.contender,
        show_time(line.seconds),
        f"{low}–{high}",
        *(["", ""] if is_native(line) else ratio),
        "" if line.multiple is None else f"{line.multiple:.2f}",
    ]


def _about(environment: dict[str, Any]) -> Iterator[str]:
    """The environment in Markdown."""
    for name, value in environment.items():
        if isinstance(value, dict):
            value = ", ".join(f"`{k}={v}`" for k, v in value.items())
        elif isinstance(value, list):
            alike = len(value) > 1 and len(set(value)) == 1
            value = ", ".join(f"{x:g}" for x in (value[:1] if alike else value))
            value += " each" * alike
        if value not in ("", None):
            yield f"- {name}: {value}"


def page(records: Mapping[str, Record], name: str) -> str:
    """The whole page; its pictures lie beside it."""
    first = next(iter(records.values()))
    text = ["---", "orphan: true", "---", "", f"# On the lab: {first.software.library}"]
    text += ["", "Measured by `isthmus lab report`; how: [](../results.md).", ""]
    text += [f"On a {first.place.words}."]
    if first.place.warning:
        text += ["", f"**{first.place.warning}.**"]
    for title, record in records.items():
        text += ["", f"## {title}", "", WORDS[title], ""]
        text += [
            f"![{title}]({name}-{title}.png)",
            "",
            table("llrrrrr", COLUMNS, map(_cells, record.lines)),
        ]
    text += ["", "## The environment", "", *_about(first.whole_environment())]
    return "\n".join([*text, ""])


def short(library: str) -> str:
    """The name of a library without its version, for files."""
    return re.sub(r"\s+(v?\d.*)?", "", library.lower())


def write(folder: Path, records: Mapping[str, Record]) -> Path:
    """The page, and for each set a picture, a table and every single time."""
    folder.mkdir(parents=True, exist_ok=True)
    name = short(next(iter(records.values())).software.library)
    for title in (t for t in PAPERS if t in records):
        record, stem = records[title], f"{name}-{title}"
        record.figure(title).savefig(folder / f"{stem}.png", dpi=120)
        (folder / f"{stem}.csv").write_text(record.csv(), encoding="utf-8")
        (folder / f"{stem}.json").write_text(record.json(), encoding="utf-8")
    path = folder / f"{name}.md"
    path.write_text(page(records, name), encoding="utf-8")
    return path
