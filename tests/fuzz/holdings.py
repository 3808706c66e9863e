"""What a process holds, as far as the system tells: it must not grow with the calls."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import tempfile
import threading
from pathlib import Path

from mpi4py import MPI

from .series import IS_OPEN_MPI
from .spellings import forget_freed_buffers

#: numbers that may grow so much: an MPI library may map some more memory; what was
#: freed of a communicator is given back by the next call that forms a group
GROWTH = {
    "KiB": 16384,
    "allocated KiB": 8192,
    "objects": 100_000,
    "mappings": 64,
    "communicators": 8,
    # those that wait for calls with a limit are kept
    "threads": 4,
    "descriptors": 2,
}
#: bytes that Open MPI keeps of every persistent collective of its own, per episode
OPEN_MPI_BYTES = 16384


def holdings() -> dict[str, int]:
    """What this process has now.

    Memory that was freed is given back to the system first: the C library keeps some of
    it for each thread, 10 to 30 MiB more or less from one episode to the next, where
    what is allocated stays at 11 to 17 MiB (5 ranks, MPICH, 100 episodes).
    """
    forget_freed_buffers()
    gc.collect()
    _give_back()
    found = {
        "threads": threading.active_count(),
        "communicators": _communicators(),
        "allocated KiB": _allocated(),
        "objects": sys.getallocatedblocks(),
    }
    own = Path("/proc/self")
    if own.exists():
        lines = dict(x.split(":", 1) for x in (own / "status").read_text().splitlines())
        found["KiB"] = int(lines["VmRSS"].split()[0])
        found["descriptors"] = len(list((own / "fd").iterdir()))
        found["mappings"] = len((own / "maps").read_text().splitlines())
    return found


def grown(before: dict[str, int], after: dict[str, int], episodes: int) -> str:
    """What grew by more than it may in so many episodes, in words."""
    more = episodes * OPEN_MPI_BYTES // 1024
    may = {**GROWTH, "KiB": GROWTH["KiB"] + more}
    may["allocated KiB"] += more
    wrong = [
        f"{name} grew from {before[name]} to {after[name]}"
        for name in before
        if after[name] > before[name] + may.get(name, 0)
    ]
    return ", ".join(wrong)


def _communicators() -> int:
    """The number of communicators of this process, or more by a fixed number.

    MPICH refuses to make more than 2,048, so that those it still makes count the rest;
    the number of a handle would not, as it says how many there were at once. Open MPI
    refuses at no small number, and gives the lowest free number.
    """
    most = 64 if IS_OPEN_MPI else 2048
    duplicates: list[MPI.Intracomm] = []
    try:
        while len(duplicates) < most:
            duplicates.append(MPI.COMM_SELF.Dup())
    except MPI.Exception:
        pass
    if IS_OPEN_MPI:
        held = max(comm.py2f() for comm in duplicates)
    else:
        held = most - len(duplicates)
    for comm in duplicates:
        comm.Free()
    return held


def _give_back() -> None:
    """Give free memory back to the system, where the C library can."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _allocated() -> int:
    """KiB that C code of this process has allocated and not freed; 0 where the C
    library does not tell."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_info"):
        return 0
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        report = file.read().decode()
    # after those of every arena, the sums of all
    free = re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"', report)
    has = re.findall(r'<system type="current" size="(\d+)"', report)
    return (int(has[-1]) - sum(map(int, free[-2:]))) // 1024
