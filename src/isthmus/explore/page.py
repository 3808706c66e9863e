"""The page: a single file of HTML with style, scripts and data.

A single file, so that a page can be sent by mail, and opened without a server.
"""

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
from .run import MAX_PAGE_RANKS, MAX_RANKS_IN_DETAIL, detail, head
from .times import times

#: the scripts, each before the scripts that import it
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
#: the name of the default machine
DEFAULT_MACHINE_NAME = "2 µs, 12 GB/s"
#: the length above which the data of a page are compressed
MAX_UNCOMPRESSED_CHARACTERS = 100_000
#: the most messages that a browser shows without delay
MAX_PAGE_MESSAGES = 600_000

_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.MULTILINE)


def _file(name: str) -> str:
    return resources.files("isthmus.explore").joinpath(name).read_text("utf-8")


def _script(name: str) -> str:
    """A script as a function call; later scripts see the exports as constants.

    Modules of a page cannot import each other without files, so that imports are cut
    out; the function keeps names that are not exported from clashing.
    """
    text = _IMPORT.sub("", _file(f"web/{name}.js"))
    names = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", text)
    if not names:
        return body
    return f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n"


def _has_no_times(schedule: Schedule) -> bool:
    """Whether a schedule calls the MPI library, and so takes an unknown time."""
    if schedule.node_memory:  # such algorithms never call the library
        return False
    rounds = (r for _, program in schedule.group_programs() for r in program)
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
            machine = placed(model, schedule)
            timeline = machine.simulate(schedule, record=True)
            least = limit(schedule.contract, schedule.n, machine).seconds
            yield times(name, timeline, steps, least)
    for name, timeline in recorded.items():
        if timeline.n != schedule.n:
            raise ValueError(
                f"{name}: a run of {timeline.n} ranks, not of {schedule.n}"
            )
        yield times(name, timeline, steps)


def _run(
    schedule: Schedule,
    machines: Mapping[str, Model],
    recorded: Mapping[str, Timeline],
) -> dict[str, Any]:
    """The data of a schedule and its timelines."""
    if schedule.n > MAX_PAGE_RANKS:
        raise ValueError(
            f"{schedule.n} ranks: a page shows {MAX_PAGE_RANKS} at the most"
        )
    page_run = head(schedule)
    steps = None
    if schedule.n <= MAX_RANKS_IN_DETAIL:
        page_run |= detail(schedule)
        steps = page_run["steps"]
    elif _has_no_times(schedule):
        raise ValueError("the stage 'library' shows no messages: choose another stage")
    page_run["timelines"] = list(_timelines(schedule, machines, recorded, steps))
    most_messages = max((len(x["source"]) for x in page_run["timelines"]), default=0)
    if most_messages > MAX_PAGE_MESSAGES:
        raise ValueError(
            f"{most_messages} messages: a page shows {MAX_PAGE_MESSAGES} at the most"
        )
    return page_run


def data(
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> dict[str, Any]:
    """The data of a page; recorded runs belong to the first schedule."""
    if not schedules:
        raise ValueError("there is no schedule to explore")
    if any(len(x.groups) > 2 for x in schedules):
        raise ValueError("the explorer shows one group or two: draw shows more")
    models = machines or {DEFAULT_MACHINE_NAME: MACHINE}
    runs = [
        _run(schedule, models, (recorded or {}) if k == 0 else {})
        for k, schedule in enumerate(schedules)
    ]
    return {"runs": runs}


def _embedded(page_data: dict[str, Any]) -> str:
    """The HTML element with the data, compressed if long."""
    text = json.dumps(page_data, separators=(",", ":"), ensure_ascii=False, default=int)
    if len(text) <= MAX_UNCOMPRESSED_CHARACTERS:
        safe = text.replace("<", "\\u003c")
        return f'<script type="application/json" id="data">{safe}</script>'
    packed = b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="text/plain" id="data" data-packed>{packed}</script>'


def html(
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> str:
    """The text of the page."""
    page_data = data(schedules, machines, recorded)
    names = ", ".join(dict.fromkeys(x.algorithm for x in schedules))
    parts = {
        "title": f"{schedules[0].collective}: {names}",
        "licence": _file("d3/LICENSE"),
        "style": _file("web/page.css"),
        "data": _embedded(page_data),
        "d3": _file("d3/d3.js"),
        "scripts": "\n".join(map(_script, SCRIPTS)),
    }
    page = _file("web/page.html")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def write(
    path: str | Path,
    schedules: Sequence[Schedule],
    machines: Mapping[str, Model] | None = None,
    recorded: Mapping[str, Timeline] | None = None,
) -> Path:
    """Write the page, and return its path."""
    text, file = html(schedules, machines, recorded), Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
