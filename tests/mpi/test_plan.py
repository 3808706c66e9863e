"""What one rank needs for an exchange between thousands, and what it gives back."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import SHAPES, pair, same, values
from isthmus.choose.recipe import Equal, Placement, Sizes, between, inside, listed
from isthmus.distributions import counts
from isthmus.mpi.engine.plan import Binding, Plan, bind
from isthmus.mpi.memory.memory import scratch_view
from isthmus.mpi.waiting.waiting import Limit
from isthmus.schedules.ir import Pieces, Recv, Round, Send, Span
from sampling import LONG
from support import agree, once

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


class Nowhere:
    """A communicator of any size whose messages go nowhere."""

    def Recv_init(self, spec, rank, tag):
        return MPI.COMM_SELF.Recv_init(spec, MPI.PROC_NULL, tag)

    def Send_init(self, spec, rank, tag):
        return MPI.COMM_SELF.Send_init(spec, MPI.PROC_NULL, tag)


@once
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
    send, recv = np.empty(each, "u1"), np.empty(q * each, "u1")
    views = {"send": scratch_view(send), "recv": scratch_view(recv)}
    at = Binding(views, dict.fromkeys(("send", "recv"), 64))
    between.cache_clear()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    start = time.perf_counter()
    found = between(name, Sizes(Equal(p, each), Equal(q, each)), 4000)
    plan = Plan(bind(found.rounds, at, Nowhere(), None, 0), Limit())
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    requests = [r for stage in plan.stages for r in stage.wait]
    assert len(requests) == 2 * messages
    assert peak - before < 20_000 + 6_000 * messages
    print(f"{name} {p}+{q}: {seconds * 1e3:.1f} ms, {(peak - before) >> 10} KiB")
    plan.free()
    assert not plan.stages


def test_a_call_that_failed_in_the_middle_is_not_followed_by_another(comm):
    """A message longer than its buffer: what is under way could be taken for that of
    the next call, which is refused; so is the plan that failed."""
    groups = pair(comm, SHAPES[comm.size][0][0])
    inter = groups.ours
    send, recv = values(comm.rank, 4), np.empty(4)
    inter.Allgather(send, recv, algorithm="direct")
    context = inter._context()
    (kept,) = context.cached_calls.values()
    (plan,) = kept.plans.values()

    def fail():
        raise MPI.Exception(MPI.ERR_TRUNCATE)

    plan.calls.insert(0, fail)
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


@once
@pytest.mark.parametrize(("name", "kind"), [*LARGE, *MORE * LONG])
def test_a_plan_among_ten_thousand_ranks(comm, name, kind):
    """Unequal counts: what one rank builds grows with its messages, in arrays."""
    p, r = 10_000, 17
    sizes = counts(kind, p, 64 * p)
    nodes = tuple(i // 16 for i in range(p))
    room = np.empty(64 * p, "u1")
    at = Binding({"recv": scratch_view(room)}, {"recv": 1, "tmp": 1})
    inside.cache_clear()
    start = time.perf_counter()
    found = inside(name, listed(sizes), r, 24_000.0, Placement(nodes))
    plan = Plan(bind(found.rounds, at, Nowhere(), None, 0), Limit())
    seconds = time.perf_counter() - start
    received = sum(
        int(c.data.size.sum())
        if isinstance(c.data, Pieces)
        else sum(s.size for s in c.data)
        for x in found.rounds
        for c in x.comm
        if isinstance(c, Recv)
    )
    assert received * found.units["recv"] == sum(sizes) - sizes[r]
    print(f"{name}, {kind}: {len(found.rounds)} rounds, {seconds * 1e3:.0f} ms")
    plan.free()


def test_messages_to_one_rank_in_a_round_stay_in_their_order(comm):
    """Short ones too, which may leave at once, while longer ones have requests."""
    sizes, me = (8, 4000, 8, 1000), comm.rank
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    spans = [(Span("data", at, n),) for at, n in zip(starts, sizes, strict=True)]
    data = np.repeat(np.arange(1, 5, dtype="u1"), sizes) if me == 0 else None
    array = np.zeros(sum(sizes), "u1") if data is None else data
    ends = [Recv(0, x) if me else Send(1, x) for x in spans]
    at = Binding({"data": scratch_view(array)}, {"data": 1})
    plan = Plan(bind([Round(tuple(ends))], at, comm, comm, 0, inline=256), Limit())
    for call in plan.calls:
        call()
    agree(comm, same(array, np.repeat(np.arange(1, 5, dtype="u1"), sizes)))
    plan.free()


class Listening:
    """A communicator that notes what is sent."""

    def __init__(self, comm):
        self.comm, self.sent = comm, []

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def Allgather(self, send, recv):
        self.sent.append(send)
        self.comm.Allgather(send, recv)


def test_ranks_send_in_place_all_or_none(comm):
    """As MPI demands, whatever the type of what one of them sends."""
    ours = isthmus.Intracomm(comm.Dup())
    context = ours._context()
    context.comm = listening = Listening(context.comm)
    gaps = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
    send, recv = np.arange(6.0) + 10 * comm.rank, np.empty(6)
    spec = [send, 1, gaps] if comm.rank == 0 else [send[::2].copy(), 3, MPI.DOUBLE]
    ours.Allgather(spec, [recv, 3, MPI.DOUBLE], algorithm="library")
    agree(comm, recv.tolist() == [0, 2, 4, 10, 12, 14], f"{recv}")
    agree(comm, len(listening.sent) == 1 and listening.sent[0] is not MPI.IN_PLACE)
    context.comm = listening.comm
    gaps.Free()
    ours.Free()
