"""Collectives that somebody adds outside of isthmus: a record, and its algorithms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import pair
from isthmus.collectives.collective import (
    BETWEEN,
    BLOCK,
    INSIDE,
    VECTOR,
    Collective,
    of_groups,
)
from isthmus.collectives.records import COLLECTIVES, add
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.schedules.layout import Even, Side
from isthmus.schedules.registry import algorithm
from isthmus.schedules.schedule import SizedCollective
from isthmus.verify.contracts import Contract, combined
from isthmus.verify.marks import blank, marks
from support import FORMS, agree

pytestmark = pytest.mark.mpi(5)


def _prefix(algorithm, stage, p, m):
    """Rank r ends with the vectors of ranks 0 to r, combined in this order."""

    def promise():
        mark = marks(0, 0).dtype
        return Contract(
            before=lambda r: {"send": marks(r, m), "recv": blank(m)},
            after=lambda r: {"recv": combined(range(r + 1), m, mark)},
        )

    return SizedCollective(promise, lambda r: algorithm.program(p, r, m), (range(p),))


def _opposite(algorithm, stage, p, q, ka, kb):
    """Rank i gets the block of rank i of the other group, modulo its size."""
    sizes, each = (p, q), (ka, kb)

    def promise():
        def parts(r):
            i = int(r >= p)
            x, base = r - i * p, (1 - i) * p
            return each[i], each[1 - i], base + x % sizes[1 - i]

        return Contract(
            before=lambda r: {
                "send": marks(r, parts(r)[0]),
                "recv": blank(parts(r)[1]),
            },
            after=lambda r: {"recv": marks(parts(r)[2], parts(r)[1])},
        )

    sides = Side(0, Even(p, ka)), Side(p, Even(q, kb))

    def program(i, x):
        return algorithm.program(x, sides[i], sides[1 - i], each[1 - i])

    return of_groups(sides, promise, program)


@pytest.fixture(scope="module", autouse=True)
def _added() -> Iterator[None]:
    """The records and algorithms, as a program of a user has them."""
    add(
        Collective(
            name="prefix",
            operations=("Prefix",),
            groups=INSIDE,
            gives=VECTOR,
            gets=VECTOR,
            combines=True,
            make=_prefix,
            example={"p": 5, "m": 6},
            cases=lambda rng, p: [{"p": p, "m": m} for m in (5, 1, 0)],
        )
    )
    add(
        Collective(
            name="inter_opposite",
            operations=("Opposite",),
            groups=BETWEEN,
            gives=BLOCK,
            gets=BLOCK,
            make=_opposite,
            example={"p": 3, "q": 2, "ka": 4, "kb": 4},
            cases=lambda rng, p, q: [{"p": p, "q": q, "ka": 3, "kb": 5}],
        )
    )

    @algorithm(
        "prefix", paper="tests", cost=lambda p, m, alpha, beta: p * (alpha + m * beta)
    )
    def in_a_line(p, r, m):
        """The sum so far goes from rank to rank."""
        send, recv, tmp = (Span(x, 0, m) for x in ("send", "recv", "tmp"))
        yield Round(then=(Copy(send, recv),))
        for t in range(1, p):
            come, go = Recv(t - 1, (tmp,), r == t), Send(t, (recv,), r == t - 1)
            yield Round((come, go), (Reduce(tmp, recv, r == t),))

    @algorithm(
        "inter_opposite",
        paper="tests",
        cost=lambda p, q, ka, kb, alpha, beta: alpha + max(p, q) * max(ka, kb) * beta,
    )
    def direct(r, here, there, k):
        """Everyone of the other group who wants this block gets it at once."""
        sends = []
        for t in range(-(-there.n // here.n)):
            j = r + t * here.n
            sends.append(Send(there.base + j, here.own(r), j < there.n))
        yield Round((Recv(there.base + r % there.n, (Span("recv", 0, k),)), *sends))

    yield
    for name, operation in (("prefix", "Prefix"), ("inter_opposite", "Opposite")):
        assert COLLECTIVES[name].operations == (operation,)


def _calls(ours, form, *args, **how):
    if form == "blocking":
        ours.Run(*args, **how)
    elif form == "nonblocking":
        ours.Irun(*args, **how).Wait()
    else:
        request = ours.Run_init(*args, **how)
        for _ in range(2):
            request.Start()
            request.Wait()


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_inside_a_group_in_rank_order(comm, form):
    for n in (1, 2, comm.size):
        isthmus.schedule("prefix", "in_a_line", p=n, m=4).verify()
    ours, right = isthmus.Intracomm(comm.Dup()), True
    first = MPI.Op.Create(lambda x, y, _: None)  # y stays: not commutative
    for name in ("auto", "in_a_line"):
        for k in (1, 7, 1000):
            mine = np.arange(k) + 10.0 * comm.rank
            got = np.empty(k)
            _calls(ours, form, "Prefix", mine, got, algorithm=name)
            before = range(comm.rank + 1)
            right &= bool((got == sum(np.arange(k) + 10.0 * r for r in before)).all())
            _calls(ours, form, "Prefix", mine, got, MPI.MAX, algorithm=name)
            right &= bool((got == mine).all())
            _calls(ours, form, "Prefix", mine, got, first, algorithm=name)
            right &= bool((got == mine).all())
    first.Free()
    agree(comm, right)
    ours.Free()


@pytest.mark.parametrize("form", FORMS)
def test_an_exchange_between_two_groups(comm, form):
    isthmus.schedule("inter_opposite", "direct", p=2, q=3, ka=2, kb=4).verify()
    groups = pair(comm, 2)
    other, right = groups.there, True
    x = comm.rank if comm.rank < 2 else comm.rank - 2
    for name in ("auto", "direct"):
        for k in (1, 9):
            mine, got = np.full(k, comm.rank), np.empty(k, int)
            _calls(groups.ours, form, "Opposite", mine, got, algorithm=name)
            right &= bool((got == other[x % len(other)]).all())
    agree(comm, right)
    groups.free()


def test_what_no_record_makes_is_refused(comm):
    ours = isthmus.Intracomm(comm.Dup())
    with pytest.raises(ValueError, match="no collective"):
        ours.Run("Nonsense", np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        ours.Run("Prefix", np.zeros(1), np.zeros(1), algorithm="x")
    got = np.empty(1)
    ours.Run("Prefix", np.ones(1), got)  # no trace is left
    agree(comm, got[0] == comm.rank + 1)
    ours.Free()
