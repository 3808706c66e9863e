"""Collectives of all kinds in any order, form and number at once, in two threads."""

from __future__ import annotations

import pytest

from fuzz import Run, use_devices
from isthmus.mpi.buffers.devices import staged
from sampling import LONG


@pytest.mark.mpi(3, *[5] * LONG, timeout=240)
def test_random_calls(comm):
    """Nothing hangs, and no call gets the data of another."""
    run = Run(comm)
    for seed in range(1, 9 if LONG else 2):
        found = run.once(seed, 150 if LONG else 50)
        assert not found, found[0]
    run.free()


@pytest.mark.mpi(3, *[5] * LONG, timeout=240)
def test_random_calls_on_a_device(comm, monkeypatch):
    """The same with arrays on a device that copies at any time, on some ranks."""
    use_devices(monkeypatch.setattr, monkeypatch.setitem)
    run = Run(comm, devices=True)
    for seed in range(1, 9 if LONG else 2):
        found = run.once(seed, 150 if LONG else 30)
        assert not found, found[0]
    run.free()
    monkeypatch.undo()
    staged.device_of.cache_clear()
