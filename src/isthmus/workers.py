"""Worker processes that leave Ctrl-C to the process that started them.

All processes of a terminal hear Ctrl-C. A worker that ends by Ctrl-C prints a
traceback, and a worker still starting cannot have a handler yet. So workers have SIGINT
blocked from their first instruction: the thread that starts the pool blocks SIGINT, and
the pool's own thread, which starts further workers later, inherits the block. The
process with the pool ends all workers.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.pool import Pool


@contextmanager
def pool(processes: int, tasks_each: int | None = None) -> Iterator[Pool]:
    """A pool of workers, started afresh, since threads must not be copied; each worker
    ends after `tasks_each` tasks, or only with the pool."""
    resource_tracker.ensure_running()  # which unblocks SIGINT when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        workers = get_context("spawn").Pool(processes, maxtasksperchild=tasks_each)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with workers:
        yield workers
