"""Worker processes, which leave interrupts to the main process."""

from __future__ import annotations

import signal

from isthmus.workers import pool

MASK = signal.pthread_sigmask, (signal.SIG_BLOCK, ())


def test_workers_leave_interrupts_to_this_process_also_those_that_start_later():
    with pool(1, tasks_each=1) as workers:
        masks = [workers.apply(*MASK) for _ in range(2)]
    assert [signal.SIGINT in mask for mask in masks] == [True, True]
    function, arguments = MASK
    assert signal.SIGINT not in function(*arguments)
