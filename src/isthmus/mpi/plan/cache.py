"""What is kept between calls: plans by values, and scratch memory.

Both are bounded, in number and in bytes, at the moment when something is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .plan import Plan

#: plans of one communicator, and the bytes that they take
MOST_PLANS = 256
MOST_PLAN_BYTES = 8 << 20
#: bytes of scratch memory of one communicator that no call uses
MOST_SCRATCH_BYTES = 32 << 20
#: shorter memory is not kept: the interpreter has it at hand
LEAST_SCRATCH_BYTES = 1 << 12


class Plans(OrderedDict[Hashable, "Plan"]):
    """Plans by the values of calls, in the order in which they were used last; those
    used least recently go first.

    Calls look plans up where they are advanced, which may be in the progress thread.
    """

    def __init__(
        self, most: int = MOST_PLANS, most_bytes: int = MOST_PLAN_BYTES
    ) -> None:
        super().__init__()
        self._most, self._most_bytes, self.nbytes = most, most_bytes, 0
        self._lock = threading.Lock()

    def find(self, values: Hashable, compiled: Callable[[], Plan]) -> Plan:
        """The plan for values, compiled if there is none."""
        try:
            plan = self[values]
            self.move_to_end(values)
        except KeyError:  # also if another thread evicts it in between
            self.keep(values, plan := compiled())
        return plan

    def keep(self, values: Hashable, plan: Plan) -> None:
        """Keep a plan, and give up those used least recently if that is too much."""
        with self._lock:
            replaced = self.pop(values, None)
            if replaced is not None:
                self.nbytes -= replaced.nbytes
            self[values] = plan
            self.nbytes += plan.nbytes
            while len(self) > 1 and (
                len(self) > self._most or self.nbytes > self._most_bytes
            ):
                _, evicted = self.popitem(last=False)
                self.nbytes -= evicted.nbytes

    def clear(self) -> None:
        """Give all plans up."""
        with self._lock:
            super().clear()
            self.nbytes = 0

    def forget(self, is_meant: Callable[[Any], bool]) -> None:
        """Give the plans of some values up."""
        with self._lock:
            for values in [x for x in self if is_meant(x)]:
                self.nbytes -= self.pop(values).nbytes

    def plans(self) -> list[Plan]:
        """All plans, those used last at the end."""
        with self._lock:
            return list(self.values())

    def last(self) -> Plan | None:
        """The plan that was used last."""
        with self._lock:
            return next(reversed(self.values()), None)


class Scratch:
    """Memory for "tmp", lent to one operation at a time, in powers of two."""

    def __init__(self, most_bytes: int = MOST_SCRATCH_BYTES) -> None:
        self._free: dict[int, list[memoryview]] = {}
        self._most_bytes, self.nbytes = most_bytes, 0
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> memoryview:
        """At least so many bytes, of any content."""
        if nbytes < LEAST_SCRATCH_BYTES:
            return memoryview(bytearray(nbytes))
        size = 1 << (nbytes - 1).bit_length()
        with self._lock:
            memories = self._free.get(size)
            if memories:
                self.nbytes -= size
                return memories.pop()
        return np.empty(size, np.uint8).data

    def clear(self) -> None:
        """Give all memory up that nobody has."""
        with self._lock:
            self._free.clear()
            self.nbytes = 0

    def give_back(self, memory: memoryview) -> None:
        """Take memory back from an operation that is over, and every message from or
        to it with it."""
        if memory.nbytes < LEAST_SCRATCH_BYTES:
            return
        with self._lock:
            if self.nbytes + memory.nbytes <= self._most_bytes:
                self.nbytes += memory.nbytes
                self._free.setdefault(memory.nbytes, []).append(memory)
