"""The alpha-beta model with hosts of their own speed: single port, full duplex, every
pair connected. A message takes what the slower of its two ends takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..schedules.hosts import Hosts
from ..schedules.schedule import Schedule
from .alphabeta import simulated
from .messages import Messages
from .timeline import Timeline


@dataclass(frozen=True)
class Unequal:
    """Hosts with start-up times and times per byte, one for each rank; `gamma` is the
    time per byte reduced, `unit` the bytes of an element."""

    hosts: Hosts
    gamma: float = 0.0
    unit: int = 1

    def duration(self, m: Messages) -> np.ndarray:
        """How long each message takes."""
        return self.hosts.times(m.source, m.target, self.unit * m.size)

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        if len(self.hosts.alphas) < schedule.n:
            raise ValueError(f"the machine has fewer hosts than {schedule.n} ranks")
        return simulated(self, schedule, record)
