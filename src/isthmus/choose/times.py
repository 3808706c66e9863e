"""The seconds of the candidates of a choice, by closed forms.

An algorithm claims its time in the alpha-beta model (`Algorithm.cost`). Three things of
a machine are in no claim, and are added here: further messages of a round take a gap
and not a start-up, ranks of a node share its port, and bytes whose partner changes take
longer. Only ratios of these times matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, sqrt
from typing import TypeAlias

import numpy as np

from ..algorithms.alltoallv import digits
from ..algorithms.moving_entry import EXTRA_ROUNDS
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.stages import stage_for
from ..collectives.collective import BLOCK, INSIDE, SEVERAL, VECTOR, Collective, Sizes
from ..collectives.known import Equal, Group, listed
from ..cost.machine import LibraryCalls, Machine
from ..schedules.hosts import Hosts
from ..schedules.registry import find
from . import estimate, unequal_hosts

Times: TypeAlias = dict[str, float]
TimesOf: TypeAlias = Callable[[Collective, Sizes, Machine, bool], Times]
#: the times of candidates inside a group, and that of the MPI library's own call
Contest: TypeAlias = tuple[Times, float]
ContestOf: TypeAlias = Callable[[Sizes, Machine, bool], Contest]

#: the MPI library's own call among the candidates
LIBRARY_NAME = "library"
#: the most peers of a direct exchange: with more, a block crosses a wire too often
MAX_DIRECT_PEERS = 16
#: the largest share of another's time that an algorithm may take to be chosen instead,
#: where both times are estimates
MARGIN = 0.85
#: the margin in shared memory if the library does not cut long blocks into pieces: its
#: loss on short blocks says little about long ones (measured with Open MPI)
MARGIN_OF_UNCUT_BLOCKS = 0.65
#: the longest blocks of an Alltoall that libraries send together
SHORT_ALLTOALL_BYTES = 256
#: the radices of Bruck's algorithm that are compared
RADICES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


def _claimed(
    machine: Machine, collective: str, name: str, *sizes: float, slowdown: float = 1.0
) -> float:
    """The seconds that an algorithm claims, if bytes take `slowdown` times as long."""
    cost = find(collective, name).cost
    return float(cost(*sizes, machine.alpha, slowdown * machine.beta))


def _round(machine: Machine, messages: int, nbytes: float = 0.0) -> float:
    """The seconds of a round with so many messages of a rank, of `nbytes` together."""
    return machine.alpha + (messages - 1) * machine.gap + nbytes * machine.beta


# -- between a root and another group


def _rooted_vector(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    # a reduction combines received data before they are sent on
    slowdown = 1.5 if record.combines else 1.0
    slowdowns = {"binomial": slowdown, "chain": slowdown}
    if is_ordered:
        slowdowns["reduce_scatter"] = slowdown
    else:
        # the partners change of the sends as well as of the receives
        slowdowns["circulant"] = slowdown * machine.changing**2
    p, m = sizes["q"] + 1, sizes["m"]
    return {
        name: _claimed(machine, record.name, name, p, m, slowdown=times)
        for name, times in slowdowns.items()
    }


def _rooted_blocks(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    q, nbytes = sizes["q"], sizes["q"] * sizes["k"]
    # blocks that wait in the tree are copied once more
    tree = log2(q + 1) * machine.alpha + 1.5 * nbytes * machine.beta
    return {"linear": _round(machine, q, nbytes), "binomial": tree}


# -- between groups


def _reduction(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    p, q = record.ranks(sizes) if "m" not in sizes else (sizes["p"], sizes["q"])
    vector = sum(sizes["a"]) if "a" in sizes else p * sizes.get("ka", 0)
    m = int(sizes.get("m", vector))
    cost = partial(_claimed, machine, record.name)
    shares = "ordered" if is_ordered else "bruck"
    in_shares = {shares: cost(shares, p, q, m, slowdown=machine.changing)}
    # among equals the first wins: direct copies nothing between two processes
    if record.gets == VECTOR:
        doubling = cost("doubling", p, q, m)
        return {"direct": cost("direct", p, q, m), **in_shares, "doubling": doubling}
    direct = cost("direct", p, q, m, slowdown=machine.changing)
    paced = {} if is_ordered else {"paced": cost("paced", p, q, m)}
    return {"direct": direct, **in_shares, **paced}


def _alltoall_between(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    p, q, k = sizes["p"], sizes["q"], max(sizes["ka"], sizes["kb"])
    most = max(p, q)
    changing = machine.changing if most > 1 else 1.0
    claims = {
        name: _claimed(machine, record.name, name, p, q, k, k)
        for name in ("paced", "bruck")
    }
    return {"rotated": _round(machine, most, changing * most * k), **claims}


def group_of(counts: Group | Sequence[int]) -> Group:
    """The group of a list of counts; what is known of a group is the group itself."""
    return counts if isinstance(counts, Group) else listed(counts)


def _allgather_between(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    """The direct exchange, shares that are exchanged and gathered, and for a giant
    block the ring whose entry moves."""
    if "a" in sizes:
        groups = group_of(sizes["a"]), group_of(sizes["b"])
    else:
        groups = Equal(sizes["p"], sizes["ka"]), Equal(sizes["q"], sizes["kb"])
    p, q = (group.n for group in groups)
    a, b = (group.total for group in groups)
    largest, most_bytes = max(group.largest for group in groups), max(a, b)
    few, many = sorted((p, q))
    times = {}
    if many <= MAX_DIRECT_PEERS:
        nbytes = machine.far * max(most_bytes, many * largest)
        times["direct"] = _round(machine, many, nbytes)
    parts = estimate.parts(p, q, a, b, machine)
    name = "balanced" if record.is_irregular or many % few else "segmented"
    if parts > 1:
        name = f"pipelined(parts={parts})"
    ring_bytes = estimate.ring_bytes(machine)
    rounds = max(
        n - 1 if stage_for(n, total, ring_bytes) == "ring" else log2(n)
        for n, total in ((p, b), (q, a))
    )
    moved = most_bytes + machine.sharing * largest
    times[name] = rounds * machine.alpha + _round(machine, ceil(many / few), moved)
    if record.is_irregular and machine.changing > 1:
        # for a giant block, in pieces of the best size; in shared memory no port rests
        # meanwhile
        data, extra = most_bytes * machine.beta, EXTRA_ROUNDS * many * machine.alpha
        ring = data + extra + 2 * sqrt(data * extra)
        times["moving_entry"] = ring / MARGIN
    return times


# -- among several groups


def _allgather_several(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool
) -> Times:
    # which no other choice needs
    from ..algorithms.multi_allgatherv import best_size, ring_rounds

    counts = [np.asarray(group, np.int64) for group in sizes["groups"]]
    if len(counts) == 1:
        return {"direct": 0.0}
    all_counts, g = np.concatenate(counts), len(counts)
    totals = [int(k.sum()) for k in counts]
    total, peers = sum(totals), [len(all_counts) - len(k) for k in counts]
    stages = [(len(k), total - m) for k, m in zip(counts, totals, strict=True)]
    shares = max((g - 1) * int(all_counts.max()), max(m / n for n, m in stages))
    moved = machine.far * (shares + max(m - m / n for n, m in stages))
    rounds = g - 1 + max(log2(n) for n, _ in stages)
    size = best_size(counts, machine.startup_bytes)
    times = {
        "merged+bruck": estimate.doubling(all_counts, machine),
        "merged+circulant": estimate.circulant(all_counts, machine),
        "balanced": rounds * machine.alpha + moved * machine.beta,
        "ring": ring_rounds(counts, size) * _round(machine, 1, size),
    }
    if len(all_counts) <= MAX_DIRECT_PEERS:
        sent = max(n * int(k.max()) for n, k in zip(peers, counts, strict=True))
        most = machine.far * max(sent, total - min(totals))
        times["direct"] = _round(machine, max(peers), most)
    return times


# -- inside a group, beside the MPI library's own call


def _allgather(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    equal = [sizes["k"]] * sizes["p"] if "k" in sizes else None
    counts = np.asarray(sizes["counts"] if equal is None else equal, np.int64)
    return estimate.ours(counts, machine), estimate.library(counts, machine)


def _bcast(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    p, m = sizes["p"], sizes["m"]
    counts, parts = np.array([m] + [0] * (p - 1)), np.full(p, m // p)
    # as in MPICH a scatter and a ring of the parts, which move all bytes twice
    library = estimate.ring(parts, machine) + estimate.doubling(parts, machine)
    return {"circulant": estimate.circulant(counts, machine)}, library


def _allreduce(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    p, m = sizes["p"], sizes["m"]
    cost = partial(_claimed, machine, "allreduce")
    names = ("ordered" if is_ordered else "bruck", "doubling", "direct")
    ours = {name: cost(name, p, m, slowdown=machine.far) for name in names}
    ours["direct"] = (cost("direct", p, m) + ours["direct"]) / 2  # then it is a ring
    library = ours["doubling"]
    if not is_ordered:
        # libraries first add the vectors of ranks beyond a power of two to others
        power = 1 << (p.bit_length() - 1)
        folded = cost("ordered", power, m, slowdown=machine.far)
        if power < p:
            folded += 2 * _round(machine, 1, m)
        library = min(library, folded, 2 * (p - 1) * _round(machine, 1, m / p))
    return ours, _as_fast_as_messages(library, machine)


def _reduce_scatter(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    """The times of an allgatherv, which takes as long backwards as forwards."""
    counts = np.asarray(sizes["counts"], np.int64)
    pairwise = estimate.ring(counts, machine) * machine.far
    if is_ordered:
        ours = {"pairwise": pairwise}
        moved = machine.far * int(counts.sum()) * machine.beta
        windows = log2(len(counts)) * machine.alpha + moved
    else:
        windows = estimate.doubling(counts, machine)
        circulant = estimate.circulant(counts, machine)
        ours = {"rotated": pairwise, "circulant": circulant, "bruck": windows}
    return ours, _as_fast_as_messages(min(pairwise, windows), machine)


def _as_fast_as_messages(library: float, machine: Machine) -> float:
    """The time of the library's own call; a slow Allgather of the library says nothing
    of its other calls: with a `slowdown` above 1, a doubling was chosen that took 1.3
    times as long as MPICH's Allreduce."""
    calls = machine.library or LibraryCalls()
    return library * min(calls.slowdown, 1.0)


def _exchanges(p: int, k: int, machine: Machine) -> Times:
    """The times of exchanges of blocks of k bytes: direct, and by Bruck's algorithm
    with each radix."""
    times = {"rotated": _round(machine, p - 1, (p - 1) * k * machine.far)}
    for radix in (radix for radix in RADICES if radix < p):
        times[f"bruck(radix={radix})"] = _by_digits(p, k, machine, radix)
    return times


def _by_digits(p: int, k: int, machine: Machine, radix: int) -> float:
    """The time of a round for each digit, with a message for each of its values."""
    rounds = digits(p, radix)
    messages = [len(ways) for level in rounds for _, ways in level]
    in_one = _round(machine, len(messages), sum(messages) * k * machine.far)
    return in_one + (len(rounds) - 1) * (machine.alpha - machine.gap)


def _best_radix(times: Times) -> Times:
    """The times of the rotated algorithm and of the best radix."""
    best = min(times, key=lambda name: times[name])
    return {name: times[name] for name in dict.fromkeys(("rotated", best))}


def _alltoall(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    p, k = sizes["p"], sizes["k"]
    ours = _best_radix(_exchanges(p, k, machine))
    library = ours["rotated"]
    if k <= SHORT_ALLTOALL_BYTES:
        library = min(library, _by_digits(p, k, machine, 2))
    return ours, _as_fast_as_messages(library, machine)


def _alltoallv(sizes: Sizes, machine: Machine, is_ordered: bool) -> Contest:
    """The times by the largest block. For Bruck's algorithm ranks ask for that block,
    and send the sizes of blocks before the blocks."""
    p = sizes["p"] if "p" in sizes else len(sizes["table"])
    largest = sizes["k"] if "k" in sizes else int(np.max(sizes["table"]))
    direct, of_sizes = _exchanges(p, largest, machine), _exchanges(p, 8, machine)
    question = log2(p) * machine.alpha
    ours = {name: t + of_sizes[name] + question for name, t in direct.items()}
    ours["rotated"] = direct["rotated"]
    return _best_radix(ours), direct["rotated"]


def _on_unequal_hosts(
    record: Collective, sizes: Sizes, machine: Machine, is_ordered: bool, hosts: Hosts
) -> Contest:
    simulated = partial(_simulated, sizes, machine, is_ordered, hosts)
    ours = simulated(record.name)
    if record.gives != VECTOR:
        # MPICH 5.0.2 takes the binomial algorithm, Open MPI 5.0.11 on few processes the
        # linear one: where the library's algorithm is the better one, ours is hardly
        # slower
        return ours, max(ours["linear"], ours["binomial"])
    library = ours["binomial"]
    if not is_ordered:
        # Rabenseifner's algorithm for long vectors: a reduce-scatter in few rounds and
        # a gather, which are a scatter and an allgather backwards
        library = min(library, simulated("bcast")["scatter_allgather"])
    return ours, library


def _simulated(
    sizes: Sizes, machine: Machine, is_ordered: bool, hosts: Hosts, collective: str
) -> Times:
    """The times of a rooted collective's algorithms on unequal hosts."""
    ranks = {name: sizes[name] for name in ("q", "p", "root") if name in sizes}
    nbytes = sizes["m"] if "m" in sizes else sizes["k"]
    known = hosts, nbytes, machine.startup_bytes, not is_ordered
    return unequal_hosts.times(collective, *known, **ranks)


def _with_library(ours: Times, library: float, machine: Machine) -> Times:
    """The candidates with the library's own call, of whose time an algorithm may take
    no more than a margin.

    The call is no candidate on a machine without a description of such calls.
    """
    level, calls = machine.levels[-1], machine.library
    if calls is None:
        return ours
    is_memory_shared = level.together > 0 and level.changing <= 1
    is_uncut = is_memory_shared and not calls.piece_bytes
    margin = MARGIN_OF_UNCUT_BLOCKS if is_uncut else MARGIN
    return {**ours, LIBRARY_NAME: margin * library}


# -- all candidates of a call


def candidates(
    record: Collective,
    sizes: Sizes,
    machine: Machine,
    is_ordered: bool,
    hosts: Hosts | None,
) -> Times:
    """The seconds of all candidates; if `is_ordered`, of those that combine in rank
    order. `hosts` are those of a call with a root, if unequal."""
    if record.groups == INSIDE:
        if hosts is not None:
            contest = _on_unequal_hosts(record, sizes, machine, is_ordered, hosts)
        else:
            contest = _contest_of(record)(sizes, machine, is_ordered)
        return _with_library(*contest, machine)
    if hosts is not None:
        return _simulated(sizes, machine, is_ordered, hosts, record.name)
    times_of: TimesOf = _alltoall_between
    if record.groups == SEVERAL:
        times_of = _allgather_several
    elif record.is_rooted:
        times_of = _rooted_vector if record.gives == VECTOR else _rooted_blocks
    elif record.combines:
        times_of = _reduction
    elif record.gives == BLOCK:
        times_of = _allgather_between
    return times_of(record, sizes, machine, is_ordered)


def _contest_of(record: Collective) -> ContestOf:
    """The times of a collective inside a group of equal hosts."""
    if record.gives == BLOCK:
        return _allgather
    if record.is_rooted:
        return _bcast
    if record.combines:
        return _allreduce if record.gets == VECTOR else _reduce_scatter
    return _alltoallv if record.is_irregular else _alltoall
