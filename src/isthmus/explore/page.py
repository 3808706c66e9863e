"""The page: one file of HTML with its style, its scripts and its data."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ..cost.limit import limit
from ..cost.placement import MACHINE, placed
from ..cost.timeline import Timeline
from ..schedules.ir import Library
from ..schedules.schedule import Model, Schedule
from .run import DETAIL, MOST, detail, head
from .times import times

#: the scripts, those that others use first
SCRIPTS = (
    "format",
    "colours",
    "memory",
    "way",
    "place",
    "link",
    "ranks",
    "grid",
    "matrix",
    "timeline",
    "links",
    "panel",
    "player",
    "main",
)
#: the name of the machine where none is named
USUAL = "2 µs, 12 GB/s"
#: longer data are compressed
PLAIN = 100_000
#: so many messages a browser still shows at ease
MESSAGES = 600_000

_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.MULTILINE)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _script(name: str) -> str:
    """A script without imports and exports: what it exports, the next ones see."""
    text = _IMPORT.sub("", _file(f"web/{name}.js"))
    names = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", text)
    if not names:
        return body
    return f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n"


def _has_no_times(schedule: Schedule) -> bool:
    """Whether the MPI library's own call is in it, whose time nobody knows."""
    if schedule.node_memory:  # which no library shares
        return False
    rounds = (r for _, program in schedule.lanes() for r in program)
    return any(isinstance(c, Library) for r in rounds for c in r.comm)


def _timelines(
    schedule: Schedule,
    machines: Mapping[str, Model],
    recorded: Mapping[str, Timeline],
    steps: list[dict[str, Any]] | None,
) -> Iterator[dict[str, Any]]:
    """The times of a schedule on every machine, and of recorded runs."""
    if not _has_no_times(schedule):
        for name, model in machines.items():
            on = placed(model, schedule)
            line = on.simulate(schedule, record=True)
            least = limit(schedule.contract, schedule.n, on).seconds
            yield times(name, line, steps, least)
    for name, line in recorded.items():
        if line.n != schedule.n:
            raise ValueError(f"{name}: a run of {line.n} ranks, not of {schedule.n}")
        yield times(name, line, steps)


def _run(
    schedule: Schedule,
    machines: Mapping[str, Model],
    recorded: Mapping[str, Timeline],
) -> dict[str, Any]:
    """A schedule with its times."""
    if schedule.n > MOST:
        raise ValueError(f"{schedule.n} ranks: a page shows {MOST} at the most")
    found = head(schedule)
    steps = None
    if schedule.n <= DETAIL:
        found |= detail(schedule)
        steps = found["steps"]
    elif _has_no_times(schedule):
        raise ValueError("the stage 'library' shows no messages: choose another stage")
    found["timelines"] = list(_timelines(schedule, machines, recorded, steps))
    count = max((len(x["source"]) for x in found["timelines"]), default=0)
    if count > MESSAGES:
        raise ValueError(f"{count} messages: a page shows {MESSAGES} at the most")
    return found


def data(
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> dict[str, Any]:
    """All that the page shows. Recorded runs are those of the first schedule."""
    if not schedules:
        raise ValueError("there is no schedule to explore")
    if any(len(x.groups) > 2 for x in schedules):
        raise ValueError("the explorer shows one group or two: draw shows more")
    models = machines or {USUAL: MACHINE}
    runs = [
        _run(schedule, models, (recorded or {}) if k == 0 else {})
        for k, schedule in enumerate(schedules)
    ]
    return {"runs": runs}


def _embedded(found: dict[str, Any]) -> str:
    """The data as an element of the page."""
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False, default=int)
    if len(text) <= PLAIN:
        safe = text.replace("<", "\\u003c")
        return f'<script type="application/json" id="data">{safe}</script>'
    packed = b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="text/plain" id="data" data-packed>{packed}</script>'


def html(
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> str:
    """The page as text."""
    found = data(schedules, machines, recorded)
    names = ", ".join(dict.fromkeys(x.algorithm for x in schedules))
    parts = {
        "title": f"{schedules[0].collective}: {names}",
        "licence": _file("d3/LICENSE"),
        "style": _file("web/page.css"),
        "data": _embedded(found),
        "d3": _file("d3/d3.js"),
        "scripts": "\n".join(map(_script, SCRIPTS)),
    }
    page = _file("web/page.html")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)


def write(
    path: str | Path,
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> Path:
    """Write the page; where it is."""
    text, where = html(schedules, machines, recorded), Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text, encoding="utf-8")
    return where
