"""Random calls on many communicators at once, every byte of them checked.

    python tests/fuzz.py 3600 4

runs for an hour on four ranks; with `without` after it, without persistent requests of
the MPI library's own, of which Open MPI keeps some memory; with `devices`, half of the
arrays lie on what stands in for a device. Two threads of every rank make calls at the
same time, each on communicators of its own: between groups, inside them and among
several, by all algorithms and by the MPI library, in all forms, with fresh arrays; some
with a limit. Calls that are under way are completed in any order. On the same
communicators there are messages of the user's own. Now and then groups are formed, used
and freed; a rank comes late; a call is refused.

All ranks draw the same numbers, so that all make the same calls; when to wait for a
call, and how, each draws alone. It ends at the first fault, and tells in the end what
each rank had after a tenth of the time, and of some thousand calls, and what it has.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from mpi4py import MPI

import between
import inside_calls as inside
import isthmus
import several
import standin
from between import Case, Kit, chain, data, in_order
from groups import pair
from isthmus.lab.mpiexec import own_rank
from isthmus.mpi.buffers.devices import arrays as device, overlap, staged
from isthmus.mpi.context import context
from launcher.mpirun import ENVIRONMENT, command, find_mpiexec
from support import FORMS
from things import equal, thing

#: so many calls may be under way at once
UNDER_WAY = 4
#: calls between two looks at the clock
CALLS = 200
#: cases that are told apart
CASES = 1 << 20
#: seconds: a communicator's limit, if it has one, and when nothing happens any more
LIMIT, HANGS = 300.0, 600
#: calls after which what is kept for them does not grow any more
WARM = 10_000
#: numbers of a rank that may grow so much: memory is not given back to the system at
#: once, and an MPI library may map some more of it
GROWTH = {
    "KiB": 16384,
    "allocated KiB": 8192,
    "objects": 100_000,
    "mappings": 64,
    # what was freed is given back by the next call that forms a group
    "contexts": 2,
    "communicators": 8,
    "descriptors": 2,
}
#: whether the MPI library makes persistent requests of its own
PERSISTENT = "without" not in sys.argv
#: whether arrays lie on a device
DEVICES = "devices" in sys.argv
#: after Ibcast, Ireduce or Reduce_init between groups where a rank has no part, other
#: requests of the MPI library on that communicator hang (MPICH 5.0.2, Open MPI 5.0.11)
ALONE = "Bcast", "Reduce"

Rng = np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """A call, the same on all ranks of its communicator but for the buffers."""

    op: str
    name: str
    kind: str
    case: Case | OnDevice


@dataclass(frozen=True)
class Place:
    """A communicator, and what draws calls on it."""

    name: str
    comm: Any
    draw: Callable[[Rng, int], Drawn]


@dataclass
class Tally:
    """What was done on this rank, and what was wrong."""

    calls: int = 0
    #: which cases there were, by a hash: a set of them would grow
    cases: bytearray = field(default_factory=lambda: bytearray(b"\0" * CASES))
    messages: int = 0
    groups: int = 0
    late: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    #: what it does now
    last: str = ""


@dataclass
class Started:
    """What goes on, and what it must give."""

    what: str
    requests: Sequence[MPI.Request]
    fault: Callable[[], str]

    def end(self, how: int) -> str:
        """Wait for it, in one of several ways; what is wrong."""
        if how == 0:
            for request in self.requests:
                request.Wait()
        elif how == 1:
            MPI.Request.Waitall(self.requests)
        else:
            for request in self.requests:
                while not request.Test():
                    time.sleep(0)
        for request in self.requests:
            if isinstance(request, MPI.Prequest):
                request.Free()
        fault = self.fault()
        return f"{self.what}: {fault}" if fault else ""


class OnDevice:
    """A case, with arrays of it on a device: each rank draws which, alone."""

    def __init__(self, case: Case, rng: Rng) -> None:
        self._case = case
        self._swapped = standin.Swapped(case.args, rng.random(2) < 0.5, standin.Plain)
        self.args = self._swapped.args

    @property
    def fault(self) -> str:
        """What is wrong with what came."""
        self._swapped.back()
        return self._case.fault


#: short messages are cut and copied as long ones are
SHORT_PIECES = (
    (context, "DEVICE_PIECE_BYTES", 1536),
    (overlap, "PIECE_BYTES", 1024),
    (overlap, "LEAST_FETCHED_BYTES", 512),
    (device, "present", lambda: True),
)


def use_devices(
    set_attribute: Callable[..., Any] = setattr,
    set_item: Callable[..., Any] = dict.__setitem__,
) -> None:
    """Have a device that copies beside the caller."""
    for what in SHORT_PIECES:
        set_attribute(*what)
    set_item(staged.KINDS, standin.KIND, standin.Quick)
    staged.device_of.cache_clear()


# -- what is drawn


def _between(groups: Any, ordered: MPI.Op, rng: Rng, turn: int) -> Drawn:
    op = str(rng.choice(between.OPERATIONS))
    in_turn = bool(rng.random() < 0.3) and op in between.REDUCING
    kit = Kit(groups, str(rng.choice(["i8", "f8", "u1", "i4"])), turn=turn % 100)
    if in_turn:
        kit = Kit(groups, op=ordered, combine=chain, turn=turn % 100)
    names = [*between.names(op, commutative=not in_turn), "native"]
    kind, root = str(rng.choice(list(between.KINDS))), rng.integers(groups.world.size)
    case = between.call(kit, op, kind, int(root))
    return Drawn(op, str(rng.choice(names)), f"{kind} {kit.dtype}", case)


def _inside(comm: Any, ordered: MPI.Op, rng: Rng, turn: int) -> Drawn:
    op = str(rng.choice([*inside.OPERATIONS, "Allgather", "Allgatherv", "Bcast"]))
    in_turn = bool(rng.random() < 0.3) and op in inside.SUMS
    in_place = bool(rng.random() < 0.3)
    kind, root = str(rng.choice(list(between.KINDS))), int(rng.integers(1 << 20))
    names = [*inside.names(op, not in_turn, comm.size), "native"]
    name = names[int(rng.integers(1 << 20)) % len(names)]  # sizes of groups may differ
    count, how = between.KINDS[kind], {"in_place": in_place, "turn": turn % 100}
    if op in inside.SUMS:
        by = (ordered, chain) if in_turn else (MPI.SUM, np.add)
        case, _ = inside.sums(comm, op, count, *by, **how)
    elif op in inside.EXCHANGES:
        case, _ = inside.exchanges(comm, op, count, **how)
    elif op == "Bcast":
        case = inside.bcast(comm, count, root % comm.size, turn % 100)
    else:
        case = inside.gathers(comm, op, count, turn % 100)
    return Drawn(op, name, f"{kind}{' in place' * in_place}", case)


def _several(world: MPI.Intracomm, shape: Sequence[int], rng: Rng, turn: int) -> Drawn:
    op = str(rng.choice(several.OPERATIONS))
    kind, name = (
        str(rng.choice(list(between.KINDS))),
        str(rng.choice(several.names(op))),
    )
    case = several.call(world, shape, op, between.KINDS[kind], turn % 100)
    return Drawn(op, name, kind, case)


# -- what is done with it


def _start(comm: Any, form: str, drawn: Drawn) -> MPI.Request | None:
    """Make a call, or start it and give its request."""
    op, args, how = drawn.op, drawn.case.args, {"algorithm": drawn.name}
    if form == "blocking":
        getattr(comm, op)(*args, **how)
        return None
    if op == "Bcast" and isinstance(comm, isthmus.Intracomm):
        how = {}  # mpi4py's own
    # Open MPI keeps the scratch memory of persistent sums of its own.
    own = drawn.name in ("native", "auto") and ("educe" in op or not PERSISTENT)
    if form == "nonblocking" or own:
        found: MPI.Request = getattr(comm, f"I{op.lower()}")(*args, **how)
        return found
    request: MPI.Prequest = getattr(comm, f"{op}_init")(*args, **how)
    request.Start()
    return request


def _mail(comm: Any, n: int, turn: int) -> Started:
    """A user's own messages, from each to each, in the background."""
    inter = isinstance(comm, MPI.Intercomm)
    others = range(comm.Get_remote_size() if inter else comm.Get_size())
    rooms = [np.full(n, -1) for _ in others]
    wanted = [data(i, n, turn=turn) for i in others]
    mine = data(comm.Get_rank(), n, turn=turn)
    requests = [comm.Irecv(rooms[i], i, turn) for i in others]
    requests += [comm.Isend(mine, i, turn) for i in others]

    def fault() -> str:
        return "" if equal(rooms, wanted) and len(mine) == n else "messages are wrong"

    return Started(f"messages of tag {turn}", requests, fault)


def _objects(comm: Any) -> str:
    """Python objects from all; what is wrong."""
    inter = isinstance(comm, MPI.Intercomm)
    n = comm.Get_remote_size() if inter else comm.Get_size()
    got = comm.allgather(thing(comm.Get_rank()))
    return "" if equal(got, [thing(i) for i in range(n)]) else "objects are wrong"


def _refused(comm: Any, form: str, drawn: Drawn) -> str:
    """A call that is refused on all ranks that have a part in it, and leaves no trace.
    MPI does not look at what others pass."""
    try:
        request = _start(comm, form, replace(drawn, name="no such thing"))
    except ValueError:
        return ""
    Started("", [request] if request else [], str).end(0)
    return "" if drawn.case.args[-1] == MPI.PROC_NULL else "it was not refused"


def _formed(world: MPI.Intracomm, ordered: MPI.Op, rng: Rng, turn: int) -> str:
    """Groups that are formed, used and freed; what is wrong."""
    n, r = world.size, world.rank
    shape = rng.integers(3, size=n).tolist()
    keys = rng.integers(3, size=n).tolist()
    if turn % 2:
        coupling = isthmus.couple(world, f"c{shape[r]}")
        drawn = _several(world, shape, rng, turn)
        _start(coupling, "blocking", drawn)
        coupling.Free()
        return drawn.case.fault
    group = isthmus.split(world, f"node {shape[r]}", keys[r])
    mine = [i for i in range(n) if shape[i] == shape[r]]
    mine.sort(key=keys.__getitem__)
    drawn = _inside(group.comm, ordered, rng, turn)
    _start(group.comm, "blocking", drawn)
    wrong = "" if group.allgather(r) == mine else "the group is wrong"
    group.free()
    return wrong or drawn.case.fault


def _end(started: Started, how: int, tally: Tally) -> None:
    tally.last = f"wait {how} for {started.what}"
    tally.faults += filter(None, [started.end(how)])


def sequence(
    places: Sequence[Place],
    seed: tuple[int, ...],
    calls: int,
    tally: Tally,
    forming: MPI.Intracomm | None = None,
    devices: bool = False,
) -> None:
    """So many calls, now and then on groups that are formed of a communicator; on
    arrays on devices too."""
    rng = np.random.default_rng(seed)
    alone = np.random.default_rng((*seed, MPI.COMM_WORLD.rank))
    ordered = in_order()
    going: list[Started] = []
    for turn in range(calls):
        place = places[rng.integers(len(places))]
        drawn, form = place.draw(rng, turn), str(rng.choice(FORMS))
        if devices:
            drawn = replace(drawn, case=OnDevice(drawn.case, alone))
        if drawn.name == "native" and drawn.op in ALONE and "between" in place.name:
            form = "blocking"
        where = f"seed {seed}, call {turn}, {place.name}"
        what = f"{where}: {form} {drawn.op} by {drawn.name}, {drawn.kind}"
        tally.calls += 1
        case = f"{place.name} {form} {drawn.op} {drawn.name} {drawn.kind}"
        tally.cases[crc32(case.encode()) % CASES] = 1
        tally.last = what
        request = _start(place.comm, form, drawn)
        one = Started(what, [request] if request else [], lambda x=drawn: x.case.fault)
        going.append(one)
        beside = rng.random()
        fault = ""
        if isinstance(place.comm, isthmus.Coupling):
            pass
        elif beside < 0.1:
            going.append(_mail(place.comm, int(rng.choice([0, 40, 20000])), turn))
            tally.messages += len(going[-1].requests)
        elif beside < 0.12:
            fault = _objects(place.comm)
        elif beside < 0.13:
            own = drawn.op == "Bcast" and isinstance(place.comm, isthmus.Intracomm)
            fault = _refused(place.comm, "blocking" if own else form, drawn)
            tally.refused += 1
        if forming is not None and beside > 0.99:
            fault = _formed(forming, ordered, rng, turn)
            tally.groups += 1
        if alone.random() < 0.02:
            time.sleep(alone.uniform(0, 0.01))
            tally.late += 1
        tally.faults += [f"{where}: {fault}"] * bool(fault)
        while len(going) > UNDER_WAY or (going and alone.random() < 0.4):
            ended = going.pop(alone.integers(len(going)))
            _end(ended, int(alone.integers(3)), tally)
    for one in going:
        _end(one, 0, tally)
    ordered.Free()


# -- a run


class Run:
    """Two threads on each rank, and the communicators of each."""

    def __init__(self, world: MPI.Intracomm, devices: bool = False) -> None:
        self.world, self.tallies, self.devices = world, (Tally(), Tally()), devices
        self.ordered = in_order()
        self.frees: list[Callable[[], Any]] = [self.ordered.Free]
        self.forming = world.Dup()
        self.frees.append(self.forming.Free)
        half = max(1, world.size // 2)
        self.places = self._of_thread(half, 0), self._of_thread(1, LIMIT)
        for place in (*self.places[0], *self.places[1]):
            place.comm._context()

    def _of_thread(self, p: int, limit: float) -> list[Place]:
        """Between two groups, twice; inside one and inside all; among several."""
        world = self.world.Dup()
        found = []
        for k, per_node in enumerate((0, 2)):
            groups = pair(world, p if k == 0 else world.size - p)
            groups.ours.timeout = limit or None
            os.environ["ISTHMUS_PER_NODE"] = str(per_node)
            groups.ours._context()
            draw = partial(_between, groups, self.ordered)
            found.append(Place(f"between {p}, {per_node} a node", groups.ours, draw))
            self.frees.append(groups.free)
        del os.environ["ISTHMUS_PER_NODE"]
        for name, comm in (
            ("group", isthmus.Intracomm(groups.local.Dup())),
            ("all", isthmus.Intracomm(world.Dup())),
        ):
            comm.timeout = limit or None
            draw = partial(_inside, comm, self.ordered)
            found.append(Place(f"inside {name}", comm, draw))
            self.frees.append(comm.Free)
        shape = [i % 3 for i in range(world.size)]
        coupling = isthmus.couple(world, f"c{shape[world.rank]}")
        draw = partial(_several, world, shape)
        found.append(Place("among several", coupling, draw))
        self.frees += [coupling.Free, world.Free]
        return found

    def once(self, number: int, calls: int = CALLS) -> list[str]:
        """A sequence in each thread; what was wrong on any rank."""
        one = threading.Thread(target=self._beside, args=(number, calls))
        one.start()
        how = calls, self.tallies[0], self.forming, self.devices
        sequence(self.places[0], (number, 0), *how)
        one.join()
        found = [x for tally in self.tallies for x in tally.faults[:3]]
        every = self.world.allgather([f"rank {self.world.rank}, {x}" for x in found])
        return [x for some in every for x in some]

    def hangs(self) -> None:
        """Say what this rank does, and end."""
        for tally in self.tallies:
            print(f"rank {self.world.rank} hangs: {tally.last}", flush=True)
        faulthandler.dump_traceback()
        time.sleep(5)  # for the others to say it too
        os._exit(1)

    def _beside(self, number: int, calls: int) -> None:
        try:
            how = calls, self.tallies[1], None, self.devices
            sequence(self.places[1], (number, 1), *how)
        except BaseException:
            traceback.print_exc()
            MPI.COMM_WORLD.Abort(1)

    def free(self) -> None:
        """Give everything back."""
        for free in self.frees:
            free()


def allocated() -> int:
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
        told = file.read().decode()
    # after those of every arena, the sums of all
    free = re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"', told)
    has = re.findall(r'<system type="current" size="(\d+)"', told)
    return (int(has[-1]) - sum(map(int, free[-2:]))) // 1024


def holdings() -> dict[str, int]:
    """What this process has now, as far as the system tells."""
    gc.collect()
    some = [MPI.COMM_SELF.Dup() for _ in range(64)]
    # MPICH has those from the ninth on in another table
    numbers = [x.py2f() & 0xFFFFFF for x in some]
    for comm in some:
        comm.Free()
    found = {
        "threads": threading.active_count(),
        "contexts": len(context._every),
        "communicators": max(numbers),
        "allocated KiB": allocated(),
        "objects": sys.getallocatedblocks(),
    }
    own = Path("/proc/self")
    if own.exists():
        lines = dict(x.split(":", 1) for x in (own / "status").read_text().splitlines())
        found["KiB"] = int(lines["VmRSS"].split()[0])
        found["descriptors"] = len(list((own / "fd").iterdir()))
        found["mappings"] = len((own / "maps").read_text().splitlines())
    return found


def timed(world: MPI.Intracomm, seconds: float) -> list[str]:
    """Run for so many seconds; what was wrong on all ranks."""
    sys.setswitchinterval(1e-4)  # threads that wait look often, and hold Python
    run = Run(world, DEVICES)
    begin, number, told = time.monotonic(), 0, 0.0
    first: dict[str, int] = {}
    faults: list[str] = []
    while not faults:
        took = world.bcast(time.monotonic() - begin)
        if not first and took > seconds / 10 and 2 * CALLS * number >= WARM:
            first = holdings()
        if took > seconds:
            break
        watch = threading.Timer(HANGS, run.hangs)
        watch.start()
        faults = run.once(number)
        watch.cancel()
        watch.join()
        number += 1
        if world.rank == 0 and (took - told > 60 or not number % 100):
            told = took
            calls = sum(x.calls for x in run.tallies)
            print(f"{took:.0f} s: {calls} calls, {holdings()}", flush=True)
    last = holdings()
    rows = world.allgather((first, last))
    tallies = run.tallies
    run.free()
    if world.rank == 0:
        for r, (before, after) in enumerate(rows):
            grown = ", ".join(f"{x} {before.get(x)} to {after[x]}" for x in after)
            print(f"rank {r}: {grown}")
        total = {
            "calls": sum(x.calls for x in tallies),
            "cases": sum(map(max, tallies[0].cases, tallies[1].cases)),
            "messages of the user's own": sum(x.messages for x in tallies),
            "groups formed": sum(x.groups for x in tallies),
            "late ranks": sum(x.late for x in tallies),
            "calls refused": sum(x.refused for x in tallies),
            "faults": len(faults),
        }
        print(", ".join(f"{n} {what}" for what, n in total.items()), flush=True)
    # Open MPI keeps 200 to 600 bytes of every persistent collective of its own.
    calls = sum(x.calls for x in tallies)
    growth = {**GROWTH, "KiB": GROWTH["KiB"] + calls // 16}
    growth["allocated KiB"] += calls // 64
    faults += [
        f"rank {r}: {x} grew from {before[x]} to {after[x]}"
        for r, (before, after) in enumerate(rows)
        for x in before
        if after[x] > before[x] + growth.get(x, 0)
    ]
    return faults


def main() -> None:
    """Run for so many seconds, or until something is wrong."""
    if DEVICES:
        use_devices()
    found = timed(MPI.COMM_WORLD, float(sys.argv[1]))
    if MPI.COMM_WORLD.rank == 0:
        print("\n".join(found) or "all right", flush=True)
    MPI.COMM_WORLD.Barrier()  # who exits with an error ends all
    sys.exit(bool(found))


def launched() -> int:
    """The same in several processes."""
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    argv = command(str(find_mpiexec()), ranks, *sys.argv)
    return subprocess.run(argv, env={**os.environ, **ENVIRONMENT}).returncode


if __name__ == "__main__":
    if own_rank() is None:
        sys.exit(launched())
    main()
