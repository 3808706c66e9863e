"""The report of a lab: the sets of the papers on one MPI library, as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..reproduce.output import table
from ..units import show_time
from .outcome import Line, is_native
from .record import Record
from .sets import PAPER_SETS

INTRODUCTIONS = {
    "kang2019": "Settings 1 to 8 of Kang, Träff et al. 2019: Allgather and Allgatherv "
    "between two groups, 32 processes in all.",
    "traff2008": "The six distributions of Träff et al. 2008: Allgatherv inside one "
    "group of 16 processes.",
    "silva1999": "All collectives between two groups of 16 processes, which Silva and "
    "Silva 1999 were the first to implement.",
}
REPORT_COLUMNS = ("", "", "time", "95 %", "times faster", "95 %", "of the limit")


def _cells(line: Line) -> list[str]:
    """The cells of a line in the table of the page."""
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
    """The environment as a list in Markdown."""
    for name, value in environment.items():
        if isinstance(value, dict):
            value = ", ".join(f"`{k}={v}`" for k, v in value.items())
        elif isinstance(value, list):
            all_equal = len(value) > 1 and len(set(value)) == 1
            value = ", ".join(f"{x:g}" for x in (value[:1] if all_equal else value))
            value += " each" * all_equal
        if value not in ("", None):
            yield f"- {name}: {value}"


def page(records: Mapping[str, Record], name: str) -> str:
    """The text of the page; its pictures lie in the folder of the page."""
    first = next(iter(records.values()))
    text = ["---", "orphan: true", "---", "", f"# On the lab: {first.software.library}"]
    text += ["", "Measured by `isthmus lab report`; how: [](../results.md).", ""]
    text += [f"On a {first.place.words}."]
    if first.place.warning:
        text += ["", f"**{first.place.warning}.**"]
    for title, record in records.items():
        text += ["", f"## {title}", "", INTRODUCTIONS[title], ""]
        text += [
            f"![{title}]({name}-{title}.png)",
            "",
            table("llrrrrr", REPORT_COLUMNS, map(_cells, record.lines)),
        ]
    text += ["", "## The environment", "", *_about(first.whole_environment())]
    return "\n".join([*text, ""])


def short(library: str) -> str:
    """The name of a library without its version, for names of files."""
    return re.sub(r"\s+(v?\d.*)?", "", library.lower())


def write(folder: Path, records: Mapping[str, Record]) -> Path:
    """Write the page, and for each set a picture, a CSV and a JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = short(next(iter(records.values())).software.library)
    for title in (t for t in PAPER_SETS if t in records):
        record, stem = records[title], f"{name}-{title}"
        record.figure(title).savefig(folder / f"{stem}.png", dpi=120)
        (folder / f"{stem}.csv").write_text(record.csv(), encoding="utf-8")
        (folder / f"{stem}.json").write_text(record.json(), encoding="utf-8")
    path = folder / f"{name}.md"
    path.write_text(page(records, name), encoding="utf-8")
    return path
