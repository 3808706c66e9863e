"""Results as text for programs: the layout of the OSU benchmarks, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from .job import BenchCase, BenchJob
from .outcome import Line, Outcome


def title(case: BenchCase) -> str:
    """The operation of a case and its groups, in words."""
    p, q = len(case.a), len(case.b)
    groups = f"between {p} and {q}" if q else f"inside {p}"
    return f"{case.op.capitalize()} {groups} processes"


def osu(lines: Sequence[Line], head: Sequence[str]) -> str:
    """The layout of the OSU benchmarks: the size, then µs for each contender.

    There is a table for each operation and kind; sizes are averages over the ranks.
    """
    text = [f"# isthmus bench: {line}" for line in head]
    for (words, kind), rows in groupby(lines, lambda x: (title(x.case), x.case.kind)):
        text += ["", f"# {words}, {kind}" if kind else f"# {words}"]
        text += _osu_table(list(rows))
    return "\n".join([*text, ""])


def _osu_table(lines: Sequence[Line]) -> Iterator[str]:
    """The head of an OSU table, and a row for each size."""
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


def _columns(line: Line) -> dict[str, Any]:
    """The columns of a line in the CSV and JSON files."""
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
        "regret": line.regret,
        "limit": line.limit,
        "multiple": line.multiple,
        "taken": line.taken,
    }


def as_csv(lines: Sequence[Line], about: Mapping[str, Any]) -> str:
    """A row for each contender of each case; `about` are columns equal in all rows."""
    text = io.StringIO()
    rows = [{**_columns(line), **about} for line in lines]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(
    environment: Mapping[str, Any],
    jobs: Sequence[BenchJob],
    outcomes: Sequence[Outcome],
    lines: Sequence[Line],
) -> str:
    """The whole measurement: environment, jobs, results, and each single time."""
    measurement = {
        "environment": environment,
        "jobs": [asdict(job) for job in jobs],
        "results": [_columns(line) for line in lines],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return json.dumps(measurement, indent=1, ensure_ascii=False) + "\n"
