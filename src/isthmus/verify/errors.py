"""What can be wrong with a schedule."""

from __future__ import annotations


class ScheduleError(Exception):
    """A schedule does what no schedule may do."""


class Deadlock(ScheduleError):
    """Ranks wait for each other for ever."""


class Overlap(ScheduleError):
    """Within a round an element is written twice, or written and read."""


class BadMessage(ScheduleError):
    """A message's two ends differ, or it lies outside its buffer."""


class BadOrder(ScheduleError):
    """A reduction combines contributions that are not neighbours in rank order."""


class CountedTwice(ScheduleError):
    """A reduction in any order takes a contribution that it has already."""


class Race(ScheduleError):
    """Between two meetings a rank touches what another rank of its node writes."""


class Unwritten(ScheduleError):
    """A rank sends, copies or combines an element that nobody wrote."""
