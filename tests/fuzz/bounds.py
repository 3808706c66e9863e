"""Memory that calls may keep, and time that a way to say a buffer may cost."""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from . import places
from .series import FaultError, Options, Series
from .spellings import Buffer, draw, plain
from .transfers import transfer

if TYPE_CHECKING:
    from .modes import Stage

#: MiB that calls of large arrays in turn may keep, and that persistent calls of some
#: hundred bytes may share with other ranks, before and after they are freed
KEPT_MIB, SHARED_MIB, FREED_MIB = 64, 16, 2
#: a call may take so many times as long as with plain arrays, and so many seconds more
TIMES, MORE_SECONDS = 3.0, 20e-6
#: calls before time is taken, calls in a measurement, and measurements, of which the
#: least counts
WARM_CALLS, CALLS, MEASUREMENTS = 20, 20, 4
#: where calls take longer, ranks share cores with so much else that nothing is measured
BUSY_SECONDS = 1e-3


def resident_mib() -> float:
    """Memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE_BYTES / 2**20


def shared_mib() -> float:
    """Memory that this process shares with others, as far as it is mapped."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ .{3}s ", line) and "/dev/dri" not in line:
            low, high = line.split()[0].split("-")
            total += int(high, 16) - int(low, 16)
    return total / 2**20


#: bytes of a page
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def memory(stage: Stage) -> None:
    """What is kept for calls is bounded in bytes, and persistent calls give it back."""
    if not Path("/proc/self/statm").exists():
        return
    place = places.draw(stage.rng, stage.world, "bbi")
    if stage.rng.random() < 0.5:
        _rotate(stage, place)
    else:
        _persistent(stage, place)
    place.free()


def _rotate(stage: Stage, place: Any) -> None:
    """Large arrays in turn, each a few times."""
    n = int(stage.rng.integers(200_000, 1_000_000))
    rotation = int(stage.rng.integers(8, 20))
    names = [None, "bruck", "ring", "recursive_doubling"]
    algorithm = names[int(stage.rng.integers(len(names)))]
    pairs = [(np.ones(n), np.ones(n)) for _ in range(rotation)]
    how = {} if algorithm is None else {"algorithm": algorithm}
    try:
        place.comm.Allreduce(*pairs[0], **how)
    except ValueError:  # there is no such algorithm here
        how = {}
        place.comm.Allreduce(*pairs[0])
    before = resident_mib()
    for _ in range(2):
        for x, y in pairs:
            place.comm.Allreduce(x, y, **how)
    grown = resident_mib() - before
    total = rotation * n * 8 >> 20
    if grown > KEPT_MIB:
        raise FaultError(
            f"memory: {grown:.0f} MiB are kept after Allreduce by {algorithm} on "
            f"{place.name} of {rotation} arrays in turn, {total} MiB in all"
        )


def _persistent(stage: Stage, place: Any) -> None:
    """Many small persistent calls at once, freed together."""
    number = int(stage.rng.integers(6, 14))
    x, y = np.ones(100), np.zeros(100)
    place.comm.Allreduce(x, y)
    before = shared_mib()
    try:
        made = [place.comm.Allreduce_init(x, y) for _ in range(number)]
    except RuntimeError as error:
        if not stage.is_refusal(error):
            raise
        return
    taken = shared_mib() - before
    for request in made:
        request.Free()
    place.everyone.Barrier()
    left = shared_mib() - before
    del made
    gc.collect()
    if taken > SHARED_MIB or left > FREED_MIB:
        raise FaultError(
            f"memory: {number} persistent calls of 800 bytes on {place.name} share "
            f"{taken:.0f} MiB, and {left:.0f} MiB after Free()"
        )


def speed(stage: Stage) -> None:
    """Whatever way a buffer is said, a call costs about what it costs with arrays."""
    place = places.draw(stage.rng, stage.world, "bbi")
    operations = ("Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv")
    options = Options(stage.level, operations=operations, forms=("blocking",))
    series = Series(place, stage.rng, stage.alone, options)
    series.algorithm = None
    plain = {**vars(series.drawn), "size": "equal", "in_place": False, "dtype": "f8"}
    if series.drawn.operator.is_predefined:
        plain["operator"] = MPI.SUM
    series.drawn = type(series.drawn)(**plain)
    stage.now[threading.get_ident()] = series
    for attempt in range(3):
        arrays = _seconds(stage, place, series, is_plain=True)
        seconds = _seconds(stage, place, series, is_plain=False)
        if seconds <= TIMES * arrays + MORE_SECONDS or arrays > BUSY_SECONDS:
            break
        if attempt == 2:
            said = ", ".join(map(str, series.sayings.values()))
            raise FaultError(
                f"speed: {series} takes {seconds * 1e6:.0f} µs said as {said} on one "
                f"of the ranks, {arrays * 1e6:.0f} µs with arrays"
            )
    place.free()


def _seconds(stage: Stage, place: Any, series: Series, *, is_plain: bool) -> float:
    """Seconds that a call takes, the slowest rank's least of some measurements."""
    mine, dtype = transfer(place.group, series.drawn, 0), np.dtype("f8")
    specs: list[Any] = []
    keep: list[Buffer] = []
    for name, side in (("send", mine.send), ("recv", mine.recv)):
        assert side is not None
        saying = series.sayings.get(name)
        if saying is None or saying.typed in ("pairs", "gaps") or saying.gap:
            rng = stage.alone
            combined = {"is_combined": True, "on_device": False}
            saying = draw(rng, side.shape, is_sent=name == "send", **combined)
            saying = type(saying)(**{**vars(saying), "gap": 0, "is_backwards": False})
            series.sayings[name] = saying
        if is_plain:
            saying = plain(side.shape)
        buffer = Buffer(saying, side, dtype, name == "send")
        keep.append(buffer)
        specs.append(buffer.spec)
    args, method = (*specs, *mine.rest), getattr(place.comm, series.drawn.op)
    for _ in range(WARM_CALLS):
        method(*args)
    least = float("inf")
    for _ in range(MEASUREMENTS):
        place.everyone.Barrier()
        begin = time.perf_counter()
        for _ in range(CALLS):
            method(*args)
        least = min(least, time.perf_counter() - begin)
    return float(place.everyone.allreduce(least, MPI.MAX)) / CALLS
