"""The picture of a schedule as SVG text, for notebooks."""

from __future__ import annotations

from io import StringIO

from ..schedules.ir import Recv, Send
from ..schedules.schedule import Schedule

#: ranks of a picture that a notebook shows unasked, and elements over all its steps
MAX_SVG_RANKS, MAX_SVG_ELEMENTS = 64, 1 << 22


def _small(schedule: Schedule) -> bool:
    """Whether the picture is drawn quickly, judged by the rounds of rank 0."""
    if schedule.n > MAX_SVG_RANKS:
        return False
    rounds = schedule.rank(0)
    ends = [c for r in rounds for c in r.comm if isinstance(c, Send | Recv)]
    received = sum(int(s.size) for c in ends for s in c.data)
    return schedule.n * (len(rounds) + 1) * (received + 1) <= MAX_SVG_ELEMENTS


def svg(schedule: Schedule) -> str | None:
    """The picture as SVG; None if it is too large or matplotlib is not installed."""
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError:
        return None
    from .schedule import figure

    if not _small(schedule):
        return None
    text = StringIO()
    with rc_context({"svg.hashsalt": "isthmus", "svg.fonttype": "none"}):
        figure(schedule).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
