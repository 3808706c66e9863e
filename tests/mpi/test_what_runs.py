"""What runs is what is verified: plans do what the schedules say, byte by byte.

For every collective, algorithm and placement: a call is made, the plan that its
operation went by is evaluated on symbols, and so is the schedule of the record, made of
the sizes of all ranks and verified. Both must send the same bytes to the same ranks in
the same order, publish the same in the memory of nodes, and end with the same results.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import pair
from isthmus.collectives.collective import BETWEEN, INSIDE, SEVERAL
from isthmus.collectives.records import COLLECTIVES
from isthmus.facade import UserSchedule
from isthmus.mpi.plan.operation import Operation
from isthmus.mpi.plan.steps import NODE, RECV, SAID, SEND, TMP
from isthmus.schedules.program import buffer_size
from isthmus.schedules.registry import algorithms, resolve
from record_calls import arguments, in_units, part_of
from sampling import LONG
from support import agree
from symbols import evaluate_plan, evaluate_rounds, garbage, symbols

pytestmark = pytest.mark.mpi(5)
_SENT = 11
#: sizes that say how many ranks there are, or which, and not how much they send
COUNTED = {"p", "q", "root", "sizes"}
EQUAL = {"p": 3, "q": 2, "ka": 6, "kb": 6}
ON_MPI = [name for name, record in COLLECTIVES.items() if record.is_on_mpi]


class Operations:
    """Keeps the operations of a communicator, as a recorder would."""

    def __init__(self) -> None:
        self.made = []

    def operation(self, *args) -> Operation:
        self.made.append(Operation(*args))
        return self.made[-1]


def vertices(context, record, part) -> tuple[int, ...]:
    """The numbers of the ranks of a schedule: all, or a root and the other group."""
    if not (record.is_rooted and record.groups == BETWEEN):
        return tuple(range(context.size))
    if part.root == MPI.ROOT:
        return context.number, *context.senders
    return context.there_base, *context.group


def evaluations(context, made, part, plan, itemsize):
    """The rounds of this rank and its plan, each evaluated, with what they leave where
    results go."""
    record = COLLECTIVES[made.collective]
    ranks = vertices(context, record, part)
    v = ranks.index(context.number)
    n_send, n_recv = (sum(x) * itemsize for x in (part.send, part.recv))
    own, rounds, has_own = symbols(_SENT, n_send), made.rank(v), record.is_in_place
    first = {"send": own.copy(), "recv": garbage(n_recv)}
    if has_own and record.is_rooted:
        first["recv"] = own.copy() if part.send else garbage(n_recv)
    elif has_own:
        start = sum(part.recv[:v]) * itemsize
        first["recv"][start : start + n_send] = own
    for name in ("tmp", "node"):
        first[name] = garbage(buffer_size(rounds, name) * made.unit)
    said = evaluate_rounds(rounds, first, made.unit, ranks)
    buffers = {SEND: own.copy(), RECV: garbage(n_recv), TMP: garbage(plan.scratch)}
    buffers |= {NODE: garbage(plan.node), SAID: garbage(0)}
    done = evaluate_plan(plan, buffers, itemsize if record.combines else 1)
    is_root = has_own and record.is_rooted and part.send
    return said, done, first["recv"], buffers[SEND if is_root else RECV]


def difference(said, done, wanted, left, has_result) -> str:
    """What the plan does that the schedule does not say."""
    if said.sent != done.sent:
        return f"sends {len(said.sent)} messages, the plan {len(done.sent)}, or others"
    if said.received != done.received:
        return f"receives {said.received}, the plan {done.received}"
    if said.published != done.published:
        return "publishes other bytes in the memory of the node"
    if has_result and (wanted != left).any():
        return "ends with other bytes"
    return ""


def names_of(record, n: int, turn: int) -> list[str]:
    """The algorithms of a collective, some with an option that cuts."""
    names = []
    for entry in algorithms(record.name):
        if entry.name == "library" or (record.groups == INSIDE and not entry.needs(n)):
            continue
        cuts = [x for x in ("n", "parts", "radix", "window") if x in entry.options]
        some = f"({cuts[0]}=3)" if cuts and turn % 2 else ""
        names.append(entry.name + some)
        if entry.staged:
            names.append(f"{entry.name}+{('bruck', 'circulant', 'ring')[turn % 3]}")
    return names


def sizes_of(record, op, drawn, turn):
    """The sizes of a case, larger, and equal where the operation has no counts."""
    times = (1, 61, 700)[turn % 3]
    if "counts" in drawn and op != record.operations[0]:
        drawn = {**drawn, "counts": [4] * len(drawn["counts"])}
    if "groups" in drawn and op != record.operations[0]:
        drawn = {"groups": [[4] * len(x) for x in drawn["groups"]]}
    if "table" in drawn and op != record.operations[0]:
        drawn = {**drawn, "table": (4 * np.sign(drawn["table"])).tolist()}
    return {key: x if key in COUNTED else _scaled(x, times) for key, x in drawn.items()}


def _scaled(x, times):
    return [_scaled(y, times) for y in x] if isinstance(x, list) else x * times


def compare(ours, record, ranks, place, turn):
    """Calls of an operation with some sizes by all algorithms, by rank `place[1]` of
    group `place[0]`; what is wrong.

    First all calls, then what takes longer, of which ranks verify a share each: who
    waits for a rank in a call looks without end whether it has come.
    """
    context, op = ours._context(), record.operations[turn % len(record.operations)]
    rng = np.random.default_rng([turn, *ranks])  # the same on all ranks
    cases = record.cases(rng, *ranks)
    dtype, calls, wrong = np.dtype(("i8", "i4", "u1")[turn % 3]), [], []
    for k, name in enumerate(names_of(record, sum(ranks), turn)):
        sizes = sizes_of(record, op, cases[(k + turn) % len(cases)], turn)
        part = part_of(record, sizes, *place)
        send, recv = np.ones(sum(part.send), dtype), np.zeros(sum(part.recv), dtype)
        args = arguments(record, op, part, send, recv, MPI.SUM)
        context.observer = kept = Operations()
        getattr(ours, op)(*args, algorithm=name)
        context.observer = None
        if part.root != MPI.PROC_NULL:
            (operation,) = kept.made
            calls.append((name, sizes, part, operation.plan))
    for k, (name, sizes, part, plan) in enumerate(calls):
        units, unit = in_units(record, sizes, dtype.itemsize)
        is_part = record.is_rooted and record.groups == BETWEEN
        members = vertices(context, record, part)
        numbers = members if is_part else None
        placement = context._placement_for(resolve(record.name, name)[0], numbers)
        made = record.schedule(name, units, placement, unit)
        if members[k % len(members)] == context.number:
            UserSchedule.of(made).verify()
        ends = evaluations(context, made, part, plan, dtype.itemsize)
        if text := difference(*ends, bool(part.recv)):
            wrong.append(f"{op} by {name}, {sizes}, unit {unit}: {text}")
    return wrong


def of_groups(n):
    return [name for name in ON_MPI if COLLECTIVES[name].groups == n]


@pytest.mark.parametrize("per_node", [0, 1, 2])
@pytest.mark.parametrize("name", of_groups(BETWEEN))
def test_between_two_groups(comm, monkeypatch, name, per_node):
    monkeypatch.setenv("ISTHMUS_PER_NODE", str(per_node))
    monkeypatch.setenv("ISTHMUS_TRIAL", "0")
    record, wrong = COLLECTIVES[name], []
    for p in (1, 3, 4) if LONG else (3,):
        groups = pair(comm, p)
        c = groups.ours._context()
        ranks = (c.q,) if record.is_rooted else (c.p, c.q)
        for turn in range(3 * len(record.operations)):
            place = c.group_number, c.index
            wrong += compare(groups.ours, record, ranks, place, turn)
        groups.free()
    agree(comm, not wrong, "; ".join(wrong[:3]))


@pytest.mark.parametrize("per_node", [0, 1, 2])
@pytest.mark.parametrize("name", of_groups(INSIDE))
def test_inside_a_group(comm, monkeypatch, name, per_node):
    monkeypatch.setenv("ISTHMUS_PER_NODE", str(per_node))
    record, wrong = COLLECTIVES[name], []
    ours = isthmus.Intracomm(comm.Dup())
    for turn in range(3 * len(record.operations)):
        place = 0, comm.rank
        wrong += compare(ours, record, (comm.size,), place, turn)
    agree(comm, not wrong, "; ".join(wrong[:3]))
    ours.Free()


@pytest.mark.parametrize("name", of_groups(SEVERAL))
def test_among_several_groups(comm, name):
    record, wrong = COLLECTIVES[name], []
    coupling = isthmus.couple(comm, ["ocean", "ice", "air"][comm.rank % 3])
    c = coupling._context()
    for turn in range(3 * len(record.operations)):
        place = c.group_number, c.index
        wrong += compare(coupling, record, c.sizes, place, turn)
    agree(comm, not wrong, "; ".join(wrong[:3]))
    coupling.Free()


def test_a_plan_that_does_something_else_is_noticed(comm):
    """As the symbols of two evaluations differ where the data might not."""
    made = COLLECTIVES["inter_allgather"].schedule("direct", EQUAL)
    other = COLLECTIVES["inter_allgather"].schedule("balanced+ring", EQUAL)
    ends = []
    for schedule in (made, other):
        rounds = schedule.rank(0)
        buffers = {"send": symbols(_SENT, 6), "recv": garbage(12)}
        buffers |= {"tmp": garbage(buffer_size(rounds, "tmp")), "node": garbage(0)}
        ends.append((evaluate_rounds(rounds, buffers, 1, range(5)), buffers["recv"]))
    assert difference(ends[0][0], ends[1][0], ends[0][1], ends[1][1], True)
