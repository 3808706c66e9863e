"""The default algorithm of a collective inside a group (of an Allgather see `choose`).

The choice depends only on values that all ranks know. The MPI library's own call is a
candidate, and assumed to choose well among the algorithms that MPI libraries have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..algorithms.alltoallv import digits
from ..algorithms.parts.patterns import log2
from ..cost.machine import LibraryCalls, Machine
from ..schedules.hosts import MIN_UNEQUAL_RATIO, Hosts
from ..schedules.registry import find
from . import estimate, unequal_hosts
from .choose import MARGIN, MAX_INT, SHORT_BYTES, Choice, faster_than_library

#: the best algorithm of isthmus, and whether the library's own call is faster
Comparison = tuple[Choice, bool]
#: the longest blocks of an Alltoall that libraries send together
SHORT_ALLTOALL_BYTES = 256
#: up to this size slow links cost little where start-ups are equal: with two of eight
#: hosts at a tenth of 200 Mbit/s the libraries' own Bcast, Reduce and Gather of 1 KiB
#: took 0.3 to 0.9 times the time of isthmus, since a link passes so much in a burst
SHORT_ON_SLOW_LINKS_BYTES = 1 << 12
#: the radices of Bruck's algorithm that are compared
RADICES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


def fallback(name: str, why: str) -> Comparison:
    """The library's own call; the named algorithm is for forms without such a call."""
    return Choice(name, why), True


def _compared_with_call(
    ours: dict[str, float], library: float, case: str, machine: Machine
) -> Comparison:
    calls = machine.library or LibraryCalls()
    # A slow Allgather of the library says nothing about its other calls: with
    # a `slowdown` above 1, a doubling was chosen here that took 1.3 times as long
    # as MPICH's Allreduce.
    return _compared(ours, library * min(calls.slowdown, 1.0), case, machine)


def _compared(
    ours: dict[str, float], library: float, case: str, machine: Machine
) -> Comparison:
    choice = faster_than_library(ours, library, case, machine)
    best = min(ours, key=lambda name: ours[name])
    return Choice(best, choice.why), choice.name == "library"


def _is_short_on_links(nbytes: int, hosts: Hosts | None) -> bool:
    """Whether a message is so short that slow links take no longer than others, on
    hosts with equal start-ups."""
    if hosts is None or nbytes > SHORT_ON_SLOW_LINKS_BYTES:
        return False
    return max(hosts.alphas) <= MIN_UNEQUAL_RATIO * min(hosts.alphas)


def bcast(
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    root: int = 0,
    hosts: Hosts | None = None,
) -> Comparison:
    """The choice for Bcast, from a root to p ranks; `hosts` only if unequal."""
    case = f"{nbytes} bytes on {p} processes"
    is_short = nbytes < SHORT_BYTES and hosts is None
    if p <= 2 or is_short or _is_short_on_links(nbytes, hosts):
        return fallback("binomial", f"for {case}")
    if nbytes > MAX_INT:
        return Choice("circulant", "for more bytes than an int can count"), False
    costs, counts = machine(), np.array([nbytes] + [0] * (p - 1))
    if hosts is not None:
        arguments = hosts, nbytes, costs.startup_bytes
        ours = unequal_hosts.times("bcast", *arguments, p=p, root=root)
        library = min(ours["binomial"], ours["scatter_allgather"])
        return _compared(ours, library, case, costs)
    ours = {"circulant": estimate.circulant(counts, costs)}
    # as in MPICH a scatter and a ring of the parts, which move all bytes twice
    parts = np.full(p, nbytes // p)
    library = estimate.ring(parts, costs) + estimate.doubling(parts, costs)
    return _compared(ours, library, case, costs)


def reduce(
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    commutative: bool,
    root: int = 0,
    hosts: Hosts | None = None,
) -> Comparison:
    """The choice for Reduce, of vectors of p ranks to a root.

    Equal hosts (`hosts` is None) are left to the library.
    """
    case = f"{nbytes} bytes on {p} processes"
    is_long = nbytes >= SHORT_BYTES and commutative
    name = "circulant" if is_long else "binomial"
    if nbytes > MAX_INT:
        return Choice(name, "for more bytes than an int can count"), False
    if p <= 2 or hosts is None or _is_short_on_links(nbytes, hosts):
        return fallback(name, f"for {case}")
    costs = machine()
    arguments = hosts, nbytes, costs.startup_bytes, commutative
    ours = unequal_hosts.times("reduce", *arguments, p=p, root=root)
    library = ours["binomial"]
    if commutative:
        # Rabenseifner's algorithm for long vectors: a reduce-scatter in few rounds and
        # a gather, which are a scatter and an allgather backwards
        bcast_times = unequal_hosts.times("bcast", *arguments, p=p, root=root)
        library = min(library, bcast_times["scatter_allgather"])
    return _compared(ours, library, case, costs)


def rooted_blocks(
    collective: str,
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    root: int = 0,
    hosts: Hosts | None = None,
) -> Comparison:
    """The choice for Gather or Scatter, of blocks of p ranks to or from a root.

    Equal hosts (`hosts` is None) are left to the library.
    """
    case = f"blocks of {nbytes} bytes on {p} processes"
    if nbytes > MAX_INT:
        return Choice("linear", "for blocks that an int cannot count"), False
    if p <= 2 or hosts is None or _is_short_on_links(nbytes, hosts):
        return fallback("linear", f"for {case}")
    costs = machine()
    arguments = hosts, nbytes, costs.startup_bytes
    ours = unequal_hosts.times(collective, *arguments, p=p, root=root)
    # MPICH 5.0.2 takes the binomial algorithm, Open MPI 5.0.11 on few processes the
    # linear one: where the library's algorithm is the better one, ours is hardly slower
    library = max(ours["linear"], ours["binomial"])
    return _compared(ours, library, case, costs)


def allreduce(
    p: int,
    m: int,
    machine: Callable[[], Machine],
    commutative: bool,
) -> Comparison:
    """The choice for Allreduce, of vectors of m bytes on p ranks."""
    if p == 1 or m < SHORT_BYTES:
        return fallback("doubling", f"for {m} bytes on {p} processes")
    costs = machine()

    def cost(name: str, p: int = p, far: float = 1.0) -> float:
        byte = far * costs.beta
        return float(find("allreduce", name).cost(p, m, costs.alpha, byte))

    shares = "bruck" if commutative else "ordered"
    names = (shares, "doubling", "direct")
    ours = {name: cost(name, far=costs.far) for name in names}
    ours["direct"] = (cost("direct") + ours["direct"]) / 2  # its second half is a ring
    library = ours["doubling"]
    if commutative:
        # libraries first add the vectors of ranks beyond a power of two to others
        power = 1 << (p.bit_length() - 1)
        folded = cost("ordered", power, costs.far)
        if power < p:
            folded += 2 * (costs.alpha + m * costs.beta)
        ring = 2 * (p - 1) * (costs.alpha + m / p * costs.beta)
        library = min(library, folded, ring)
    return _compared_with_call(ours, library, f"{m} bytes on {p} processes", costs)


def reduce_scatter(
    counts: np.ndarray,
    machine: Callable[[], Machine],
    commutative: bool,
) -> Comparison:
    """The choice for Reduce_scatter, of blocks of `counts` bytes.

    The times are those of an allgatherv, which takes as long backwards as forwards.
    """
    p, m = len(counts), int(counts.sum())
    if p == 1 or m < SHORT_BYTES:
        name = "bruck" if commutative else "pairwise"
        return fallback(name, f"for {m} bytes on {p} processes")
    costs = machine()
    pairwise = estimate.ring(counts, costs) * costs.far
    windows = estimate.doubling(counts, costs)
    if commutative:
        circulant = estimate.circulant(counts, costs)
        ours = {"rotated": pairwise, "circulant": circulant, "bruck": windows}
    else:
        ours = {"pairwise": pairwise}
        windows = log2(p) * costs.alpha + costs.far * m * costs.beta
    library = min(pairwise, windows)
    return _compared_with_call(ours, library, f"{m} bytes on {p} processes", costs)


def _bruck(p: int, k: int, machine: Machine, radix: int) -> float:
    levels = digits(p, radix)
    messages = [len(ways) for level in levels for _, ways in level]
    return _exchange(len(levels), len(messages), sum(messages) * k, machine)


def _exchange(rounds: int, messages: int, nbytes: int, machine: Machine) -> float:
    """The time of rounds with `messages` messages and `nbytes` bytes a rank in all."""
    further = (messages - rounds) * machine.gap
    return rounds * machine.alpha + further + nbytes * machine.far * machine.beta


def _exchanges(p: int, k: int, machine: Machine) -> dict[str, float]:
    times = {"rotated": _exchange(1, p - 1, (p - 1) * k, machine)}
    for radix in (radix for radix in RADICES if radix < p):
        times[f"bruck(radix={radix})"] = _bruck(p, k, machine, radix)
    return times


def _best_radix(times: dict[str, float]) -> dict[str, float]:
    """The times of the rotated algorithm and of the best radix."""
    best = min(times, key=lambda name: times[name])
    return {name: times[name] for name in dict.fromkeys(("rotated", best))}


def alltoall(p: int, k: int, machine: Callable[[], Machine]) -> Comparison:
    """The choice for Alltoall, of blocks of k bytes on p ranks."""
    if p <= 2 or p * k < SHORT_BYTES:
        return fallback("rotated", f"for {p} blocks of {k} bytes")
    costs = machine()
    ours = _best_radix(_exchanges(p, k, costs))
    library = ours["rotated"]
    if k <= SHORT_ALLTOALL_BYTES:
        library = min(library, _bruck(p, k, costs, 2))
    return _compared_with_call(ours, library, f"{p} blocks of {k} bytes", costs)


def asks(p: int, machine: Machine) -> bool:
    """Whether an Alltoallv on p ranks may gain by asking for the largest block.

    True if even empty blocks would gain, together with the messages of their sizes.
    """
    times = _exchanges(p, 0, machine)
    least = log2(p) * machine.alpha + 2 * min(times.values())
    return least < MARGIN * times["rotated"]


def alltoallv(p: int, largest: int, machine: Machine) -> Choice:
    """The choice for Alltoallv on p ranks, once the largest block is known.

    Bruck's algorithm sends the sizes of blocks before the blocks.
    """
    times = {
        name: t if name == "rotated" else t + _exchanges(p, 8, machine)[name]
        for name, t in _exchanges(p, largest, machine).items()
    }
    best = min(times, key=lambda name: times[name])
    listed = ", ".join(
        f"{name} {1e6 * t:.0f} µs" for name, t in _best_radix(times).items()
    )
    return Choice(best, f"for {p} blocks of up to {largest} bytes: {listed}")
