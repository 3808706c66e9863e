"""How collectives between groups are called: objects, types, roles, wrong calls."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

from between import MUTUAL, OPERATIONS, REDUCING, ROOTED, Kit, call, in_order
from groups import pair, pairs, same
from isthmus.choose.tried import TrialTimes
from isthmus.collectives.records import record_of, trial_operations
from isthmus.mpi import forms
from isthmus.mpi.context import inter as context_inter
from isthmus.mpi.costs import trial
from support import FORMS, agree, done

pytestmark = pytest.mark.mpi(2, 5)


def roles(groups, root):
    """What a rank gives as the root, which is a number of either group."""
    if root in groups.there:
        return root - groups.there.start
    return MPI.ROOT if root == groups.world.rank else MPI.PROC_NULL


def thing(i, j=0):
    """An object that is large enough to go beside its pickle."""
    return {"from": i, "to": j, "field": np.arange(3000.0) + i - j, "text": "x" * i}


def like(x, y):
    return (
        x["from"] == y["from"] and x["to"] == y["to"] and same(x["field"], y["field"])
    )


def test_objects_from_a_root(comm):
    for groups in pairs(comm):
        inter, me = groups.ours, comm.rank
        for root in (0, comm.size - 1):
            role = roles(groups, root)
            leaf = role >= 0
            got = inter.bcast(thing(root) if role == MPI.ROOT else None, role)
            agree(comm, like(got, thing(root)) if leaf else got is None, "bcast")
            parts = None
            if role == MPI.ROOT:
                parts = [thing(root, j) for j in groups.there]
            got = inter.scatter(parts, role)
            agree(comm, like(got, thing(root, me)) if leaf else got is None, "scatter")


def test_objects_to_a_root_and_to_all(comm):
    for groups in pairs(comm):
        inter, me = groups.ours, comm.rank
        for root in (0, comm.size - 1):
            role = roles(groups, root)
            got = inter.gather(thing(me), role)
            if role == MPI.ROOT:
                ok = all(
                    like(x, thing(i)) for x, i in zip(got, groups.there, strict=True)
                )
            else:
                ok = got is None
            agree(comm, ok, "gather")
            total = inter.reduce([me], MPI.SUM, role)
            wanted = list(groups.there) if role == MPI.ROOT else None
            agree(comm, total == wanted, f"reduce {total}")
        got = inter.alltoall([thing(me, j) for j in groups.there])
        pairs_of = zip(got, groups.there, strict=True)
        agree(comm, all(like(x, thing(i, me)) for x, i in pairs_of), "alltoall")
        agree(comm, inter.allreduce([me]) == list(groups.there), "allreduce")
        inter.barrier()


def test_a_wrong_number_of_objects(comm):
    for groups in pairs(comm):
        with pytest.raises(ValueError, match="objects, one for each receiver"):
            groups.ours.alltoall([1] * (len(groups.there) + 1))


def spread(x):
    """An array with every second place in use."""
    room = np.full(2 * len(x) + 1, -1, x.dtype)
    room[: 2 * len(x) : 2] = x
    return room


def sum_of_spread():
    """A sum of elements that have gaps, which no operator of MPI's own can do."""

    def add(inbuf, inoutbuf, datatype):
        x, y = np.frombuffer(inbuf, "i8"), np.frombuffer(inoutbuf, "i8")
        y[::2] += x[::2]

    return MPI.Op.Create(add, commute=True)


def with_gaps(case, op, groups, kind, by):
    """The arguments with gaps in every buffer, and the buffer that receives."""
    args, out = list(case.args), None
    for i, x in enumerate(args[:2]):
        array, *counts = x if isinstance(x, list) else [x]
        if isinstance(array, np.ndarray):
            is_block = op == "Reduce_scatter_block" and i == 0
            n = len(array) // (groups.ours.size if is_block else 1)
            args[i] = [spread(array), counts[0] if counts else n, kind]
            out = args[i][0] if array is case.out else out
    return [by if isinstance(x, MPI.Op) else x for x in args], out


@pytest.mark.parametrize("op", REDUCING)
def test_sums_of_types_with_gaps(comm, op):
    """Gaps in what is sent and in what is received, and what lies in them stays."""
    by, kind = sum_of_spread(), MPI.INT64_T.Create_resized(0, 16).Commit()
    for groups in pairs(comm, turn=OPERATIONS.index(op)):
        for root in (0, comm.size - 1):
            case = call(Kit(groups), op, "long", root)
            args, out = with_gaps(case, op, groups, kind, by)
            for form in ("blocking", "nonblocking"):
                if form == "blocking":
                    getattr(groups.ours, op)(*args)
                else:
                    getattr(groups.ours, f"I{op.lower()}")(*args).Wait()
                ok = out is None or (
                    same(out[: 2 * len(case.out) : 2], case.wanted)
                    and (out[1::2] == -1).all()
                )
                agree(comm, ok, f"{form} {op}: {out} is not {case.wanted}")
                if out is not None:
                    out[:] = -1
    kind.Free()
    by.Free()


def wrong_calls(n):
    """(error, part of its text, call) that are wrong on every rank."""
    x, room, ints = np.zeros(4), np.zeros(4 * n), np.zeros(4, "i4")
    none = [x, []], [room, []]
    return [
        (ValueError, "root 99: the other group", lambda i: i.Bcast(x, 99)),
        (ValueError, "the other group has", lambda i: i.Bcast(x, i.remote_size)),
        (ValueError, "root 99: the other group", lambda i: i.Ireduce(x, None, root=99)),
        (ValueError, "root -7", lambda i: i.Gather_init(x, None, -7)),
        (ValueError, "IN_PLACE", lambda i: i.Allreduce(MPI.IN_PLACE, x)),
        (ValueError, "IN_PLACE", lambda i: i.Reduce(MPI.IN_PLACE, None, root=0)),
        (ValueError, "IN_PLACE", lambda i: i.Alltoall(MPI.IN_PLACE, room)),
        (ValueError, "IN_PLACE", lambda i: i.Ialltoallw(MPI.IN_PLACE, [room, []])),
        (ValueError, "BAND is not defined", lambda i: i.Allreduce(x, +x, MPI.BAND)),
        (
            ValueError,
            "MAXLOC is not defined",
            lambda i: i.Reduce(x, None, MPI.MAXLOC, 0),
        ),
        (ValueError, "does not combine", lambda i: i.Allreduce(x, +x, MPI.OP_NULL)),
        (TypeError, "is no operator", lambda i: i.Allreduce(x, +x, max)),
        (ValueError, "4 elements are sent, 3", lambda i: i.Allreduce(x, np.zeros(3))),
        (
            ValueError,
            "types of what is sent",
            lambda i: i.Allreduce(x, ints),
        ),
        (ValueError, "overlap", lambda i: i.Allreduce(x, x)),
        (ValueError, "the counts are", lambda i: i.Reduce_scatter(x, np.zeros(1), [9])),
        (
            ValueError,
            "elements are sent, and 3",
            lambda i: i.Reduce_scatter_block(np.zeros(4 * i.size), x[:3] + 1),
        ),
        (ValueError, "no algorithm 'best'", lambda i: i.Bcast(x, 0, algorithm="best")),
        (ValueError, "no algorithm 'best'", lambda i: i.Ibarrier(algorithm="best")),
        (
            ValueError,
            "expecting .* datatypes",
            lambda i: i.Alltoallw(*none),
        ),
        (ValueError, "needs bytes", lambda i: i.Bcast([x, 9, MPI.DOUBLE], 0)),
    ]


@pytest.mark.parametrize("op", ["Bcast", "Reduce", "Gather", "Scatterv"])
def test_a_wrong_name_is_an_error_for_those_who_have_no_part_too(comm, op):
    for groups in pairs(comm):
        case = call(Kit(groups), op, "equal", 0)
        try:
            getattr(groups.ours, op)(*case.args, algorithm="best")
            said = "nothing was raised"
        except ValueError as caught:
            said = "" if "no algorithm 'best'" in str(caught) else repr(caught)
        agree(comm, not said, said)


def test_wrong_calls_are_refused_and_the_next_works(comm):
    for groups in pairs(comm):
        for error, text, wrong in wrong_calls(len(groups.there)):
            if "the counts are" in text and groups.local.size != 1:
                text = "expecting . counts"
            try:
                wrong(groups.ours)
                said = "nothing was raised"
            except error as caught:
                said = "" if _has(text, str(caught)) else f"{caught!r} without {text!r}"
            agree(comm, not said, said)
            case = call(Kit(groups), "Allreduce", "equal")
            groups.ours.Allreduce(*case.args)
            agree(comm, not case.fault, case.fault)


def _has(pattern, text):
    return re.search(pattern, text) is not None


def test_counts_that_do_not_fit_are_told_to_everyone(comm):
    """In Reduce_scatter what one group receives must be what the other does."""
    for groups in pairs(comm):
        low = comm.rank < groups.p
        counts = [2 if low else 3] * groups.local.size
        send, recv = np.zeros(sum(counts)), np.zeros(counts[0])
        if sum(counts) == (3 if low else 2) * len(groups.there):
            continue
        with pytest.raises(ValueError, match="elements, and group"):
            groups.ours.Reduce_scatter(send, recv, counts)


@pytest.mark.mpi(5)
def test_a_plan_is_kept_for_what_others_receive(comm):
    """The last of the larger group passes the same in every call; the places of what it
    receives are told by the others, and they move."""
    groups = next(pairs(comm, {5: [(3, 2)]}))
    inter, me = groups.ours, groups.local.rank
    send, room = np.arange(12.0) * (comm.rank + 1), np.empty(12)
    sums = np.arange(12.0) * sum(i + 1 for i in groups.there)
    context = inter._context()
    for turn in range(6):
        counts = [[4, 6, 2], [6, 4, 2]][turn % 2] if comm.rank < 3 else [5, 7]
        start, recv = sum(counts[:me]), room[: counts[me]]
        recv[:] = 0
        inter.Reduce_scatter(send, recv, algorithm="direct")
        agree(comm, same(recv, sums[start : start + counts[me]]), f"turn {turn}")
    kept = context.plans.plans()
    asked = [plan for plan in kept if plan.asks]
    own = len(
        {counts[me] for counts in ([4, 6, 2], [6, 4, 2])} if comm.rank < 3 else [1]
    )
    agree(comm, len(kept) == own + 2 and len(asked) == own, f"{len(kept)} plans kept")
    groups.free()


@pytest.mark.parametrize("op", ROOTED)
def test_different_roots_are_told_to_everyone(comm, monkeypatch, op):
    """Two ranks of one group name different roots in the other."""
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    for groups in pairs(comm):
        if groups.p < 2 or comm.size - groups.p < 2:
            continue
        role = roles(groups, 0)
        if comm.rank == comm.size - 1:
            role = 1
        buffers = [np.zeros(4 * len(groups.there)), np.zeros(4 * len(groups.there))]
        args = {"Bcast": buffers[:1], "Reduce": [*buffers, MPI.SUM]}.get(op, buffers)
        with pytest.raises(ValueError, match="with root"):
            getattr(groups.ours, op)(*args, role)


@pytest.mark.parametrize("op", REDUCING)
def test_an_order_that_must_be_kept(comm, op):
    """What combines in any order is refused for an operator that is not commutative."""
    by = in_order()
    for groups in pairs(comm):
        case = call(Kit(groups, op=by), op, "equal", comm.size - 1)
        name = "circulant" if op == "Reduce" else "bruck"
        if op in ROOTED and case.args[-1] == MPI.PROC_NULL:
            getattr(groups.ours, op)(*case.args, algorithm=name)
            continue
        with pytest.raises(ValueError, match="not commutative"):
            getattr(groups.ours, op)(*case.args, algorithm=name)
    by.Free()


def as_if(monkeypatch, **seconds):
    """As if trials had found these times, for calls of any size."""

    def ended(c, collective):
        yield from ()
        return found

    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    monkeypatch.setattr(context_inter, "WARM_UP_CALLS", 1)
    found = TrialTimes((8,), {name: (t,) for name, t in seconds.items()}, {})
    monkeypatch.setattr(trial, "trial", ended)


@pytest.mark.parametrize("op", sorted({*ROOTED, *MUTUAL} - {"Reduce_scatter"}))
def test_a_call_that_is_left_to_the_library(comm, monkeypatch, op):
    """It is known again, and does not stand in the way of others."""
    as_if(monkeypatch, flat=2.0, node_aware=3.0, native=1.0)
    for groups in pairs(comm):
        context = groups.ours._context()
        cases = [call(Kit(groups), op, how, comm.size - 1) for how in ("long", "equal")]
        if op == "Reduce_scatter_block" and 2 * groups.p != comm.size:
            continue  # mpi4py compares what is sent with the wrong group's size
        for case in [*cases, cases[1], *cases]:
            getattr(groups.ours, op)(*case.args)
            agree(comm, not case.fault, case.fault)
            case.clear()
        left = [x for x in context.plans.plans() if x.native is not None]
        if record_of(op, 2).tried_as:  # others are left where they are short
            wanted = 1 if op == "Barrier" else 2
            agree(comm, len(left) == wanted, f"{len(left)} calls left")
        ours = call(Kit(groups), op, "long", comm.size - 1)
        names = {"Reduce": "binomial", "Allreduce": "ordered", "Bcast": "binomial"}
        name = names.get(op, "native")
        getattr(groups.ours, op)(*ours.args, algorithm=name)
        agree(comm, not ours.fault, ours.fault)


@pytest.mark.parametrize("best", ["flat", "node_aware", "native"])
def test_every_choice_says_why(comm, monkeypatch, caplog, best):
    """And what is chosen is done, in all forms."""
    caplog.set_level(logging.DEBUG, "isthmus")
    as_if(monkeypatch, **({"flat": 2.0, "node_aware": 2.0, "native": 2.0} | {best: 1}))
    for groups in pairs(comm):
        send, recv = np.full(4, float(comm.rank)), np.zeros(4)
        done(groups.ours, "Allreduce", "blocking", send, recv)  # and all of the trial
        caplog.clear()
        for form in ("blocking", "nonblocking", "persistent"):
            recv[:] = -1
            done(groups.ours, "Allreduce", form, send, recv)
            agree(comm, bool((recv == sum(groups.there)).all()), form)
        said = [x.getMessage() for x in caplog.records]
        name = r"\w+" if best == "flat" else best
        chosen = [
            x
            for x in said
            if re.match(rf"inter_allreduce: {name}, for 32 bytes, as", x)
        ]
        # the library's own call is none that goes on beside the caller
        agree(comm, len(chosen) == (1 if best == "native" else 3), f"{said}")


def test_what_is_tried_is_there(comm, monkeypatch):
    """After some calls of each operation, also of those who have no part in it, and
    whatever they pass or keep; what was chosen before is forgotten."""
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    monkeypatch.setattr(context_inter, "WARM_UP_CALLS", 4)
    monkeypatch.setattr(trial, "MANY_CALLS", (2, 2))
    monkeypatch.setattr(trial, "TRIAL_BYTES_ON_NODE", (8, 1 << 16))
    for groups in pairs(comm):
        context = groups.ours._context()
        for turn, how in enumerate(("equal", "long", "equal", "zeros", "equal")):
            for op in OPERATIONS:
                case = call(Kit(groups), op, how, 0)
                getattr(groups.ours, op)(*case.args)
                agree(comm, not case.fault, case.fault)
                if comm.rank == turn % comm.size:
                    context.plans.clear()
        times = context.times
        for op in trial_operations().values():
            case = call(Kit(groups), op, "equal", 0)
            while context.warm_up(op) is not None:
                getattr(groups.ours, op)(*case.args)
                agree(comm, not case.fault, case.fault)
                case.clear()
        assert {*times} == {*trial_operations()}
        for found in times.values():
            assert {"flat", "node_aware"} <= {*found.seconds}
            assert all(t > 0 for row in found.seconds.values() for t in row)
        assert comm.allgather(times) == [times] * comm.size


def complete(ours, collective):
    """All steps of a trial, one after the other."""
    context = ours._context()
    steps = trial.trial(context, collective)
    with suppress(StopIteration):
        next(steps)
        while True:
            steps.send(partial(forms.run, ours, context))


def noted(run, names):
    """The function that makes a blocking call, with a note of each algorithm."""

    def run_and_note(comm, context, call):
        names.append(call.algorithm)
        run(comm, context, call)

    return run_and_note


def test_a_call_makes_one_step_of_a_trial(comm, monkeypatch):
    """No call waits for much more than the calls that are timed together."""
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    monkeypatch.setattr(context_inter, "WARM_UP_CALLS", 1)
    for groups in pairs(comm):
        names, ours = [], groups.ours
        monkeypatch.setattr(forms, "run", noted(forms.run, names))
        n, there, longest, steps = 8, len(groups.there), 0, 0
        x, y = np.full(n, comm.rank), np.empty((there, n), int)
        while ours._context().warm_up("Allgather") is not None:
            names.clear()
            ours.Allgather(x, y)
            agree(comm, (y == np.array(groups.there)[:, None]).all(), str(y))
            longest, steps = max(longest, len(names) - 1), steps + 1
        most = max(
            calls for calls, _ in (trial.MANY_CALLS, trial.FEW_CALLS, trial.ONE_CALL)
        )
        agree(comm, longest <= most and steps > 10, f"{longest} calls, {steps} steps")


def test_the_candidates_of_a_trial_are_different_algorithms(comm, monkeypatch):
    """What is tried as the one without node memory is not the node-aware one."""
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    for groups in pairs(comm):
        names, ours = [], groups.ours
        list(ours._context().measure())
        with monkeypatch.context() as patch:
            patch.setattr(forms, "run", noted(lambda *_: None, names))
            for collective, op in trial_operations().items():
                names.clear()
                complete(ours, collective)
                first = names[: len(trial.candidates(ours._context(), collective))]
                different = len({*first}) == len(first)
                agree(comm, different, f"{op} {first}")


def test_what_takes_long_is_tried_a_few_times_only(comm, monkeypatch):
    for groups in pairs(comm):
        names, ours = [], groups.ours
        list(ours._context().measure())
        with monkeypatch.context() as patch:
            slow = noted(lambda *_: time.sleep(trial.TRIAL_SECONDS / 10), names)
            patch.setattr(forms, "run", slow)
            complete(ours, "inter_allgather")
        agree(comm, max(Counter(names).values()) <= 5 * 2, f"{names}")


def within(case, room, at):
    """An argument's array, in a place of a larger one."""
    array, counts, *types = case if isinstance(case, list) else [case, [len(case)]]
    room[at : at + len(array)] = array
    if types:
        displs, kinds = types
        return [room, counts, [x + 8 * at for x in displs], kinds]
    displs = (np.cumsum([0, *counts[:-1]]) + at).tolist()
    return [room, (counts, displs), MPI.INT64_T]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", ["Alltoallv", "Alltoallw"])
def test_what_is_sent_and_received_in_one_array(comm, op, form):
    """At one address, but not in one place."""
    for groups in pairs(comm, turn=FORMS.index(form)):
        for kind in ("zeros", "long", "empty"):
            case = call(Kit(groups), op, kind)
            (sent, *_), n = case.args[0], len(case.wanted)
            room = np.zeros(len(sent) + n + 1, "i8")
            args = [within(x, room, i * len(sent)) for i, x in enumerate(case.args)]
            room[len(sent) :] = -1
            done(groups.ours, op, form, *args)
            agree(comm, same(room[len(sent) : -1], case.wanted), f"{op} {kind}")


@pytest.mark.parametrize("form", FORMS)
def test_a_gathering_in_one_array(comm, form):
    for groups in pairs(comm):
        n = len(groups.there)
        room = np.full(1 + n, comm.rank)
        recv = [room, ([1] * n, list(range(1, n + 1))), MPI.INT64_T]
        done(groups.ours, "Allgatherv", form, [room, 1, MPI.INT64_T], recv)
        agree(comm, room[1:].tolist() == list(groups.there), f"{room}")


def test_the_environment_names_an_algorithm(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_ALLREDUCE", "nonsense")
    for groups in pairs(comm):
        with pytest.raises(ValueError, match="no algorithm 'nonsense'"):
            groups.ours.Allreduce(np.zeros(4), np.zeros(4))
    monkeypatch.setenv("ISTHMUS_ALLREDUCE", "ordered")
    for groups in pairs(comm):
        case = call(Kit(groups), "Allreduce", "long")
        groups.ours.Allreduce(*case.args)
        agree(comm, not case.fault, case.fault)


def test_allgatherv_takes_what_the_environment_names_for_allgather(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_ALLGATHER", "two_step")
    for groups in pairs(comm):
        n = len(groups.there)
        for op in ("Allgather", "Allgatherv"):
            recv = np.empty(5 * n)
            getattr(groups.ours, op)(np.full(5, float(comm.rank)), recv)
            taken = groups.ours._last_algorithm()
            agree(comm, same(recv, np.repeat(groups.there, 5).astype("f8")), op)
            agree(comm, taken == "two_step", taken)


def test_a_view_of_a_freed_communicator_raises(comm):
    groups = pair(comm, 1)
    send, recv = np.zeros(1), np.empty(len(groups.there))
    ours = groups.ours
    ours.Allgather(send, recv)
    ours.Free()
    with pytest.raises(MPI.Exception):
        ours.Allgather(send, recv)
    groups.local.Free()
