"""The errors in schedules that verification finds."""

from __future__ import annotations


class ScheduleError(Exception):
    """A schedule breaks a rule of the intermediate form or its contract."""


class Deadlock(ScheduleError):
    """Ranks wait for each other forever."""


class Overlap(ScheduleError):
    """An element is written twice in a round, or written and read."""


class BadMessage(ScheduleError):
    """A message has ends of different sizes, or a span outside its buffer."""


class BadOrder(ScheduleError):
    """A reduction combines contributions that are not neighbours in rank order."""


class CountedTwice(ScheduleError):
    """A reduction in any order combines a contribution twice."""


class Race(ScheduleError):
    """A rank touches an element that another rank of the node writes between the same
    two meetings."""


class Unwritten(ScheduleError):
    """A rank sends, copies or combines an element without data."""
