"""What all processes have done so far: rounds, messages, bytes and time, as arrays.

The same counts as the virtual machine's (`groups.vm`), without the messages.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
#: messages of one step, no two from or to the same process: from, to, bytes
Lane: TypeAlias = tuple[Array, Array, Any]


class Network:
    """The tallies of n processes, under an alpha-beta model."""

    def __init__(self, n: int, alpha: float = 1.0, beta: float = 0.0) -> None:
        self.n, self.alpha, self.beta = n, alpha, beta
        self.rounds = np.zeros(n, np.int64)
        self.messages = np.zeros(n, np.int64)
        self.bytes = np.zeros(n, np.int64)
        self.time = np.zeros(n)

    def step(self, *lanes: Lane) -> None:
        """One step of every process that these messages come from or go to."""
        active = np.zeros(self.n, bool)
        latest, begin = self.rounds.copy(), self.time.copy()
        sent, heard = np.zeros(self.n), np.zeros(self.n)
        for source, target, size in lanes:
            takes = self.alpha + self.beta * size
            sent[source] += takes
            heard[target] += takes
            self.messages[source] += 1
            self.bytes[source] += size
            for here, there in ((source, target), (target, source)):
                active[here] = True
                latest[here] = np.maximum(latest[here], self.rounds[there])
                begin[here] = np.maximum(begin[here], self.time[there])
        self.rounds = np.where(active, latest + 1, self.rounds)
        ends = begin + np.maximum(sent, heard)
        self.time = np.where(active, ends, self.time)

    def post(self, source: Array, target: Array, size: int) -> None:
        """Everyone posts one value and hears one; to oneself it is no message."""
        away = source != target
        self.step((source[away], target[away], size))
        self.rounds[source[~away]] += 1
