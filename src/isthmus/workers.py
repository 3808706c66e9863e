"""Processes that work for this one and leave Ctrl-C to it.

All processes of a terminal hear Ctrl-C. Workers that end by it themselves print a
traceback each, and one that is still starting cannot have a handler yet. So workers
have SIGINT blocked from their first instruction: they are started where it is blocked,
by this thread and by the pool's own, which starts others later. This process ends them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.pool import Pool


@contextmanager
def pool(processes: int, tasks_each: int | None = None) -> Iterator[Pool]:
    """A pool of processes that start afresh, as threads must not be copied; each ends
    after so many tasks, where that is said."""
    resource_tracker.ensure_running()  # which unblocks SIGINT when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        workers = get_context("spawn").Pool(processes, maxtasksperchild=tasks_each)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with workers:
        yield workers
