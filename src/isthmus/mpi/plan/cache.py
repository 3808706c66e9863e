"""The memory of a communicator between calls: plans by values, and scratch memory.

Both caches are bounded in number and bytes whenever an entry is added: no call leaves
more than the bound behind.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .plan import Plan

#: plans of one communicator, and their bytes
MOST_PLANS = 256
MOST_PLAN_BYTES = 8 << 20
#: bytes of idle scratch memory of one communicator
MOST_SCRATCH_BYTES = 32 << 20
#: shorter memory is not cached: the interpreter allocates it as fast
LEAST_SCRATCH_BYTES = 1 << 12


class Plans(OrderedDict[Hashable, "Plan"]):
    """A cache of plans by the values of calls, which evicts the least recently used.

    The cache has a lock, since the progress thread looks plans up too.
    """

    def __init__(
        self, most_plans: int = MOST_PLANS, most_bytes: int = MOST_PLAN_BYTES
    ) -> None:
        super().__init__()
        self._most_plans, self._most_bytes, self.nbytes = most_plans, most_bytes, 0
        self._lock = threading.Lock()

    def find(self, values: Hashable, compile_plan: Callable[[], Plan]) -> Plan:
        """The plan for the values of a call, compiled if the cache has none."""
        try:
            plan = self[values]
            self.move_to_end(values)
        except KeyError:  # also if another thread evicts the plan in between
            self.keep(values, plan := compile_plan())
        return plan

    def keep(self, values: Hashable, plan: Plan) -> None:
        """Add a plan, and evict the least recently used plans beyond the bounds."""
        with self._lock:
            replaced = self.pop(values, None)
            if replaced is not None:
                self.nbytes -= replaced.nbytes
            self[values] = plan
            self.nbytes += plan.nbytes
            while len(self) > 1 and (
                len(self) > self._most_plans or self.nbytes > self._most_bytes
            ):
                _, evicted = self.popitem(last=False)
                self.nbytes -= evicted.nbytes

    def clear(self) -> None:
        """Remove all plans of the communicator."""
        with self._lock:
            super().clear()
            self.nbytes = 0

    def forget(self, is_meant: Callable[[Any], bool]) -> None:
        """Remove the plans whose values satisfy a condition: of a freed redistribution
        or remapping."""
        with self._lock:
            for values in list(filter(is_meant, self)):
                self.nbytes -= self.pop(values).nbytes

    def plans(self) -> list[Plan]:
        """All plans, the last used at the end."""
        with self._lock:
            return list(self.values())

    def last(self) -> Plan | None:
        """The plan used last, if any."""
        with self._lock:
            return next(reversed(self.values()), None)


class Scratch:
    """Memory for "tmp", lent to one operation at a time, in sizes of powers of two."""

    def __init__(self, most_bytes: int = MOST_SCRATCH_BYTES) -> None:
        self._free: dict[int, list[memoryview]] = {}
        self._most_bytes, self.nbytes = most_bytes, 0
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> memoryview:
        """Memory of at least `nbytes` bytes, of any content."""
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
        """Free all memory not lent."""
        with self._lock:
            self._free.clear()
            self.nbytes = 0

    def give_back(self, memory: memoryview) -> None:
        """Take memory back from an operation whose messages are all complete."""
        if memory.nbytes < LEAST_SCRATCH_BYTES:
            return
        with self._lock:
            if self.nbytes + memory.nbytes <= self._most_bytes:
                self.nbytes += memory.nbytes
                self._free.setdefault(memory.nbytes, []).append(memory)
