"""Results as text for programs: the layout of the OSU benchmarks, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from .job import Case, Job
from .outcome import Line, Outcome


def where(case: Case) -> str:
    """The operation and its groups, in words."""
    p, q = len(case.a), len(case.b)
    groups = f"between {p} and {q}" if q else f"inside {p}"
    return f"{case.op.capitalize()} {groups} processes"


def osu(lines: Sequence[Line], head: Sequence[str]) -> str:
    """As the OSU benchmarks print: the size, then a column for each contender, in µs.

    A block for each operation and kind; sizes are averages over the ranks.
    """
    text = [f"# isthmus bench: {line}" for line in head]
    for (title, kind), block in groupby(lines, lambda x: (where(x.case), x.case.kind)):
        text += ["", f"# {title}, {kind}" if kind else f"# {title}"]
        text += _block(list(block))
    return "\n".join([*text, ""])


def _block(lines: Sequence[Line]) -> Iterator[str]:
    """A head and a row for each size."""
    names = list(dict.fromkeys(line.contender for line in lines))
    widths = [max(len(name) + 6, 19) for name in names]
    heads = (f"{f'{n} (us)':>{w}}" for n, w in zip(names, widths, strict=True))
    yield "# Size    " + "".join(heads)
    for case, row in groupby(lines, lambda line: line.case):
        times = {line.contender: f"{line.seconds * 1e6:.2f}" for line in row}
        cells = (
            f"{times.get(n, '-'):>{w}}" for n, w in zip(names, widths, strict=True)
        )
        yield f"{case.each:<10}" + "".join(cells)


def _record(line: Line) -> dict[str, Any]:
    """A line as columns."""
    return {
        "operation": line.case.op,
        "p": len(line.case.a),
        "q": len(line.case.b),
        "kind": line.case.kind,
        "bytes": line.case.each,
        "contender": line.contender,
        "launches": line.launches,
        "repetitions": line.repetitions,
        "calls": line.calls,
        "seconds": line.seconds,
        "low": line.interval.low,
        "high": line.interval.high,
        "ratio": line.ratio,
        "ratio_low": line.ratio_interval.low,
        "ratio_high": line.ratio_interval.high,
        "limit": line.limit,
        "multiple": line.multiple,
        "taken": line.taken,
    }


def as_csv(lines: Sequence[Line], about: Mapping[str, Any]) -> str:
    """A row for each contender of each case, with what holds for all of them."""
    text = io.StringIO()
    rows = [{**_record(line), **about} for line in lines]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(
    environment: Mapping[str, Any],
    jobs: Sequence[Job],
    outcomes: Sequence[Outcome],
    lines: Sequence[Line],
) -> str:
    """Everything there is to know about the measurement, every single time too."""
    about = {
        "environment": environment,
        "jobs": [asdict(job) for job in jobs],
        "results": [_record(line) for line in lines],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return json.dumps(about, indent=1, ensure_ascii=False) + "\n"
