"""The picture of a schedule as SVG text, for notebooks."""

from __future__ import annotations

from io import StringIO

from ..schedules.ir import Recv, Send
from ..schedules.schedule import Schedule

#: the most ranks in a picture that a notebook shows, and elements over all steps
MAX_SVG_RANKS, MAX_SVG_ELEMENTS = 64, 1 << 22


def _is_small(schedule: Schedule) -> bool:
    """Whether the picture is drawn quickly, judged by the rounds of rank 0.

    A notebook shows pictures without a request, so the check must be quick itself: the
    rounds of a single rank, not of all.
    """
    if schedule.n > MAX_SVG_RANKS:
        return False
    rounds = schedule.rank(0)
    ends = [c for r in rounds for c in r.comm if isinstance(c, Send | Recv)]
    received = sum(int(s.size) for c in ends for s in c.data)
    return schedule.n * (len(rounds) + 1) * (received + 1) <= MAX_SVG_ELEMENTS


def svg(schedule: Schedule) -> str | None:
    """The picture as SVG; None if too large, or without matplotlib.

    Ids and date are fixed, so that equal schedules have equal text.
    """
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError:
        return None
    from .schedule import figure

    if not _is_small(schedule):
        return None
    text = StringIO()
    with rc_context({"svg.hashsalt": "isthmus", "svg.fonttype": "none"}):
        figure(schedule).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
