"""What one rank needs for an exchange between thousands, and what it gives back."""

from __future__ import annotations

import time
import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import SHAPES, pair, same, values
from isthmus.collectives.known import listed, unit_of
from isthmus.collectives.placement import Placement
from isthmus.collectives.records import COLLECTIVES
from isthmus.distributions import counts
from isthmus.mpi.buffers.selection import HOST_PACKER, is_parallel, select
from isthmus.mpi.context.intra import IntraContext
from isthmus.mpi.plan.compile import Compiler, NodeRanks
from isthmus.mpi.plan.layouts import Layouts, joined, layout
from isthmus.mpi.plan.operation import Operation
from isthmus.mpi.plan.plan import Plan
from isthmus.mpi.plan.steps import (
    FURTHER,
    RECV,
    SEND,
    TMP,
    ArrayAt,
    Compute,
    Run,
    StartReceive,
    StartSend,
    StartTypedReceive,
    StartTypedSend,
)
from isthmus.mpi.plan.touches import reads, writes
from isthmus.schedules.ir import Pieces, Recv, Round, Send, Span
from isthmus.schedules.program import buffer_size
from sampling import LONG
from support import agree

pytestmark = pytest.mark.mpi(2)
#: algorithms and distributions for ten thousand ranks
LARGE = [
    ("circulant", "spike"),
    ("blocked_ring", "linear"),
    ("node_ring", "spike"),
    ("bruck", "linear"),
]
MORE = [
    ("circulant", "linear"),
    ("blocked_ring", "spike"),
    ("node_ring", "linear"),
    ("bruck", "spike"),
]


def compiled(rounds, units, sizes):
    """The plan of some rounds, for logical buffers of so many bytes."""
    numbers = {"send": SEND, "recv": RECV, "data": SEND}
    places = {name: layout(n, numbers[name]) for name, n in sizes.items()}
    scratch = buffer_size(rounds, "tmp") * units.get("tmp", 1)
    places["tmp"] = layout(scratch, TMP)
    compiler = Compiler(Layouts(places, units), NodeRanks(), scratch=scratch)
    compiler.rounds(rounds)
    return Plan((), "", tuple(compiler.steps), compiler.slots, compiler.scratch)


def messages_of(plan):
    kinds = StartReceive, StartTypedReceive, StartSend, StartTypedSend
    return [step for step in plan.steps if isinstance(step, kinds)]


@pytest.mark.mpi(1)
@pytest.mark.parametrize(
    ("name", "p", "q", "messages"),
    [
        ("segmented+bruck", 4096, 4096, 13),
        ("balanced+bruck", 4096, 4096, 13),
        ("segmented+recursive_doubling", 4096, 512, 13),
        pytest.param("segmented+ring", 4096, 4096, 4096, marks=pytest.mark.long),
    ],
)
def test_a_plan_costs_what_its_own_steps_cost(comm, name, p, q, messages):
    """Between 4096 and 4096 ranks: no table of all ranks, for a regular exchange."""
    each = 512
    units = dict.fromkeys(("send", "recv", "tmp"), 64)

    def plan_of(p, q, rank):
        sizes = {"p": p, "q": q, "ka": each // 64, "kb": each // 64}
        schedule = COLLECTIVES["inter_allgather"].schedule(name, sizes, unit=64)
        return compiled(schedule.rank(rank), units, {"send": each, "recv": q * each})

    plan_of(4, 4, 1)  # imports what it needs
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    start = time.perf_counter()
    plan = plan_of(p, q, 4000)
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(messages_of(plan)) == 2 * messages
    assert peak - before < 20_000 + 6_000 * messages
    print(f"{name} {p}+{q}: {seconds * 1e3:.1f} ms, {(peak - before) >> 10} KiB")


def test_runs_are_joined_where_they_are_neighbours_in_one_buffer(comm):
    """What lies in two buffers is two runs, also where one ends as the other begins."""
    runs = [Run(SEND, 0, 8), Run(SEND, 8, 16), Run(RECV, 16, 24), Run(RECV, 24, 24)]
    assert joined(runs) == [Run(SEND, 0, 16), Run(RECV, 16, 24)]
    assert joined([Run(RECV, 24, 32), Run(RECV, 16, 24)]) == [
        Run(RECV, 24, 32),
        Run(RECV, 16, 24),
    ]


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ([(0, 8), (16, 4), (40, 12)], [(4, 12), (20, 12)]),
        ([(0, 4), (8, 4), (16, 4)], [(60, 8), (3, 4)]),
        ([(7, 2), (1, 5)], [(0, 1), (2, 1), (4, 1), (6, 1), (9, 2), (20, 1)]),
        ([(0, 4), (8, 4)], [(28, 4), (20, 4)]),
    ],
)
def test_bytes_are_moved_to_runs_of_other_sizes(comm, read, written):
    source, target = np.arange(80, dtype="u1"), np.full(80, 255, "u1")
    wanted, at = target.copy(), [i for x, n in read for i in range(x, x + n)]
    to = [i for x, n in written for i in range(x, x + n)]
    wanted[to] = source[at]
    both = [select(*np.array(x, np.int64).T) for x in (read, written)]
    HOST_PACKER.move(source.data, both[0], target.data, both[1])
    assert same(target, wanted)
    assert len(HOST_PACKER.room(13)) >= 13  # where they lie in between
    assert is_parallel(*both) == (written[0] == (28, 4))  # and copied at once


@pytest.mark.parametrize("order", [1, -1])
def test_the_bytes_that_a_function_reads_and_writes(comm, order):
    """All that lies between the first and the last element, in any order of axes."""
    room = np.zeros((4, 5, 6), "f4")
    array = room[1:4:2, ::order, 5:0:-2]
    start = array.__array_interface__["data"][0] - room.ctypes.data
    place = ArrayAt(RECV, start, array.shape, array.strides, array.dtype)
    step = Compute(np.negative, (place,), (place,))
    array[:] = 1
    at = np.flatnonzero(room) * room.itemsize
    wanted = [Run(RECV, int(at[0]), int(at[-1]) + room.itemsize)]
    assert writes(step, 1) == wanted and reads(step, 1) == wanted


def test_a_call_that_failed_in_the_middle_is_not_followed_by_another(comm):
    """What is under way could be taken for that of the next call, which is refused."""
    groups = pair(comm, SHAPES[comm.size][0][0])
    inter = groups.ours
    send, recv = values(comm.rank, 4), np.empty(4)
    inter.Allgather(send, recv, algorithm="direct")
    channel = inter._context().channel

    def fail(*_):
        raise MPI.Exception(MPI.ERR_TRUNCATE)

    channel.irecv = fail
    with pytest.raises(MPI.Exception):
        inter.Allgather(send, recv, algorithm="direct")
    with pytest.raises(RuntimeError, match="free the communicator"):
        inter.Allgather(send, recv, algorithm="direct")
    agree(comm, True)
    groups.free()


@pytest.mark.parametrize("name", ["auto", "direct"])
def test_a_plan_keeps_no_buffer_alive(comm, name):
    groups = pair(comm, SHAPES[comm.size][0][0])
    send = bytearray(values(comm.rank, 4).tobytes())
    recv = bytearray(32)
    groups.ours.Allgather([send, MPI.DOUBLE], [recv, MPI.DOUBLE], algorithm=name)
    send.extend(b"more")  # a BufferError if anyone still held it
    recv.extend(b"more")
    array = np.zeros(4)
    groups.ours.Allgather(values(comm.rank, 4), array, algorithm=name)
    array.resize(8)  # a ValueError if anyone still referred to it
    groups.free()


@pytest.mark.mpi(1)
@pytest.mark.parametrize(("name", "kind"), [*LARGE, *MORE * LONG])
def test_a_plan_among_ten_thousand_ranks(comm, name, kind):
    """Unequal counts: what one rank builds grows with its messages, in arrays."""
    p, r = 10_000, 17
    sizes = counts(kind, p, 64 * p)
    placement = Placement(tuple(i // 16 for i in range(p)), startup_bytes=24_000.0)
    start = time.perf_counter()
    group = listed(sizes)
    unit = unit_of(group.bits)
    blocks = {"counts": group.blocks(unit)}
    made = COLLECTIVES["allgatherv"].schedule(name, blocks, placement, unit)
    rounds, units = made.rank(r), dict.fromkeys(("recv", "tmp"), unit)
    plan = compiled(rounds, units, {"recv": 64 * p})
    seconds = time.perf_counter() - start
    assert len(messages_of(plan)) <= 2 * sum(len(x.comm) for x in rounds)
    received = sum(
        int(c.data.size.sum())
        if isinstance(c.data, Pieces)
        else sum(s.size for s in c.data)
        for x in rounds
        for c in x.comm
        if isinstance(c, Recv)
    )
    assert received * unit == sum(sizes) - sizes[r]
    print(f"{name}, {kind}: {len(rounds)} rounds, {seconds * 1e3:.0f} ms")


class AnyCall:
    """What an operation needs of a call."""

    name, packer, operators = "test", HOST_PACKER, ()


def test_messages_to_one_rank_in_a_round_stay_in_their_order(comm):
    """Short ones too, between longer ones."""
    sizes, me = (8, 4000, 8, 1000), comm.rank
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    spans = [(Span("data", at, n),) for at, n in zip(starts, sizes, strict=True)]
    data = np.repeat(np.arange(1, 5, dtype="u1"), sizes) if me == 0 else None
    array = np.zeros(sum(sizes), "u1") if data is None else data
    ends = [Recv(0, x) if me else Send(1, x) for x in spans]
    plan = compiled([Round(tuple(ends))], {"data": 1}, {"data": sum(sizes)})
    ours = isthmus.Intracomm(comm.Dup())
    buffers = [memoryview(array), *[None] * (FURTHER - 1)]
    Operation(ours._context().channel, plan, AnyCall(), buffers).wait()
    agree(comm, same(array, np.repeat(np.arange(1, 5, dtype="u1"), sizes)))
    ours.Free()


class Listening(MPI.Intracomm):
    """mpi4py's class, which notes what is sent."""

    sent: ClassVar[list] = []

    def Allgather(self, send, recv):
        Listening.sent.append(send)
        MPI.Intracomm.Allgather(self, send, recv)


def test_ranks_send_in_place_all_or_none(comm, monkeypatch):
    """As MPI demands, whatever the type of what one of them sends."""
    monkeypatch.setattr(IntraContext, "native_class", Listening)
    monkeypatch.setattr(Listening, "sent", [])
    ours = isthmus.Intracomm(comm.Dup())
    gaps = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
    send, recv = np.arange(6.0) + 10 * comm.rank, np.empty(6)
    spec = [send, 1, gaps] if comm.rank == 0 else [send[::2].copy(), 3, MPI.DOUBLE]
    ours.Allgather(spec, [recv, 3, MPI.DOUBLE], algorithm="library")
    agree(comm, recv.tolist() == [0, 2, 4, 10, 12, 14], f"{recv}")
    sent = Listening.sent
    agree(comm, len(sent) == 1 and sent[0] is not MPI.IN_PLACE, f"{sent}")
    gaps.Free()
    ours.Free()


def test_an_operation_that_could_not_begin_is_over(comm):
    """Of a persistent call that MPI alone has started: whoever tests or waits for it
    hears why."""
    ours = isthmus.Intracomm(comm.Dup())
    error = MemoryError("nothing left")
    operation = Operation.failed(ours._context().channel, error)
    assert operation.advance()
    with pytest.raises(MemoryError, match="nothing left"):
        operation.wait()
    ours.Free()
