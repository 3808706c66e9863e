"""Which algorithm of a collective inside one group, by default; of an Allgather
see `choose`.

Only from values that every rank knows, and against the MPI library's own call, of which
it is assumed that it chooses well among what MPI libraries have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..algorithms.alltoallv import digits
from ..algorithms.parts.patterns import log2
from ..schedules.hosts import MIN_UNEQUAL_RATIO, Hosts
from ..schedules.registry import find
from . import estimate, unequal_hosts
from .choose import BUILT_IN, LIMIT, MARGIN, Choice, weighed
from .estimate import Machine

#: an algorithm of ours, and whether the library's own call is faster
Weighed = tuple[Choice, bool]
#: up to so many bytes a block, libraries send those of an Alltoall together
SHORT = 256
#: up to so many bytes slow links cost little where start-ups are equal: with two of
#: eight hosts at a tenth of 200 Mbit/s the libraries' own Bcast, Reduce and Gather of 1
#: KiB took 0.3 to 0.9 times what ours did, as a link lets so much through at once
SHORT_ON_SLOW_LINKS_BYTES = 1 << 12
#: what is tried for how many messages a round of Bruck's algorithm has
RADICES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


def fallback(name: str, why: str) -> Weighed:
    """The library's own call; the algorithm is for where it has none."""
    return Choice(name, why), True


def _against(
    ours: dict[str, float], library: float, what: str, machine: Machine
) -> Weighed:
    # A slow Allgather of the library says nothing of its other calls: with it counted,
    # a doubling of ours was taken that took 1.3 times as long as MPICH's Allreduce.
    return _weighed(ours, library * min(machine.library, 1.0), what, machine)


def _weighed(
    ours: dict[str, float], library: float, what: str, machine: Machine
) -> Weighed:
    found = weighed(ours, library, what, machine)
    best = min(ours, key=lambda name: ours[name])
    return Choice(best, found.why), found.name == "library"


def _passes(nbytes: int, hosts: Hosts | None) -> bool:
    """Whether so few bytes pass slow links as others, of hosts that start messages
    alike."""
    if hosts is None or nbytes > SHORT_ON_SLOW_LINKS_BYTES:
        return False
    return max(hosts.alphas) <= MIN_UNEQUAL_RATIO * min(hosts.alphas)


def bcast(
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    small: int = BUILT_IN.small,
    root: int = 0,
    hosts: Hosts | None = None,
) -> Weighed:
    """So many bytes from one rank to all of p; `hosts` if these are unequal."""
    what = f"{nbytes} bytes on {p} processes"
    if p <= 2 or (nbytes < small and hosts is None) or _passes(nbytes, hosts):
        return fallback("binomial", f"for {what}")
    if nbytes > LIMIT:
        return Choice("circulant", "for more bytes than an int can count"), False
    found, whole = machine(), np.array([nbytes] + [0] * (p - 1))
    if hosts is not None:
        known = hosts, nbytes, found.startup
        ours = unequal_hosts.times("bcast", *known, p=p, root=root)
        library = min(ours["binomial"], ours["scatter_allgather"])
        return _weighed(ours, library, what, found)
    ours = {"circulant": estimate.circulant(whole, found)}
    # a scatter and a ring of the parts: all of it twice, as in MPICH
    parts = np.full(p, nbytes // p)
    library = estimate.ring(parts, found) + estimate.doubling(parts, found)
    return _weighed(ours, library, what, found)


def reduce(
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    commutative: bool,
    root: int = 0,
    hosts: Hosts | None = None,
) -> Weighed:
    """Vectors of so many bytes of p ranks, combined at one; `hosts` if these are
    unequal. Equal ones are left to the library."""
    what = f"{nbytes} bytes on {p} processes"
    is_long = nbytes >= BUILT_IN.small and commutative
    name = "circulant" if is_long else "binomial"
    if nbytes > LIMIT:
        return Choice(name, "for more bytes than an int can count"), False
    if p <= 2 or hosts is None or _passes(nbytes, hosts):
        return fallback(name, f"for {what}")
    found = machine()
    known = hosts, nbytes, found.startup, commutative
    ours = unequal_hosts.times("reduce", *known, p=p, root=root)
    library = ours["binomial"]
    if commutative:
        # Rabenseifner's way for long vectors: a reduce-scatter in few rounds and a
        # gather, which is a scatter and an allgather backwards
        forth = unequal_hosts.times("bcast", *known, p=p, root=root)
        library = min(library, forth["scatter_allgather"])
    return _weighed(ours, library, what, found)


def rooted_blocks(
    collective: str,
    p: int,
    nbytes: int,
    machine: Callable[[], Machine],
    root: int = 0,
    hosts: Hosts | None = None,
) -> Weighed:
    """Blocks of so many bytes from each of p ranks to one, or from one to each; `hosts`
    if these are unequal. Equal ones are left to the library."""
    what = f"blocks of {nbytes} bytes on {p} processes"
    if nbytes > LIMIT:
        return Choice("linear", "for blocks that an int cannot count"), False
    if p <= 2 or hosts is None or _passes(nbytes, hosts):
        return fallback("linear", f"for {what}")
    found = machine()
    known = hosts, nbytes, found.startup
    ours = unequal_hosts.times(collective, *known, p=p, root=root)
    # MPICH 5.0.2 takes the second, Open MPI 5.0.11 on few processes the first: where it
    # is the better one too, ours is hardly slower
    library = max(ours["linear"], ours["binomial"])
    return _weighed(ours, library, what, found)


def allreduce(
    p: int,
    m: int,
    machine: Callable[[], Machine],
    commutative: bool,
    small: int = BUILT_IN.small,
) -> Weighed:
    """Vectors of m bytes in a group of p."""
    if p == 1 or m < small:
        return fallback("doubling", f"for {m} bytes on {p} processes")
    found = machine()

    def cost(name: str, p: int = p, far: float = 1.0) -> float:
        byte = far * found.beta
        return float(find("allreduce", name).cost(p, m, found.alpha, byte))

    shares = "bruck" if commutative else "ordered"
    names = (shares, "doubling", "direct")
    ours = {x: cost(x, far=found.far) for x in names}
    ours["direct"] = (cost("direct") + ours["direct"]) / 2  # its second half is a ring
    library = ours["doubling"]
    if commutative:
        # of those beyond a power of two, libraries first add vectors to others'
        power = 1 << (p.bit_length() - 1)
        folded = cost("ordered", power, found.far)
        if power < p:
            folded += 2 * (found.alpha + m * found.beta)
        ring = 2 * (p - 1) * (found.alpha + m / p * found.beta)
        library = min(library, folded, ring)
    what = f"{m} bytes on {p} processes"
    return _against(ours, library, what, found)


def reduce_scatter(
    counts: np.ndarray,
    machine: Callable[[], Machine],
    commutative: bool,
    small: int = BUILT_IN.small,
) -> Weighed:
    """A sum whose blocks are of so many bytes. Backwards, an allgatherv takes as long
    as it does forwards."""
    p, m = len(counts), int(counts.sum())
    few = "bruck" if commutative else "pairwise"
    if p == 1 or m < small:
        return fallback(few, f"for {m} bytes on {p} processes")
    found = machine()
    pairwise = estimate.ring(counts, found) * found.far
    windows = estimate.doubling(counts, found)
    if commutative:
        circulant = estimate.circulant(counts, found)
        ours = {"rotated": pairwise, "circulant": circulant, "bruck": windows}
    else:
        ours = {"pairwise": pairwise}
        windows = log2(p) * found.time(1, found.far * m, p * m)
    library = min(pairwise, windows)
    return _against(ours, library, f"{m} bytes on {p} processes", found)


def _bruck(p: int, k: int, machine: Machine, radix: int) -> float:
    levels = digits(p, radix)
    messages = [len(ways) for level in levels for _, ways in level]
    return _exchange(len(levels), len(messages), sum(messages) * k, machine)


def _exchange(rounds: int, messages: int, nbytes: int, machine: Machine) -> float:
    """Rounds of so many messages and bytes a rank in all."""
    further = (messages - rounds) * machine.message
    return rounds * machine.alpha + further + nbytes * machine.far * machine.beta


def _exchanges(p: int, k: int, machine: Machine) -> dict[str, float]:
    times = {"rotated": _exchange(1, p - 1, (p - 1) * k, machine)}
    for radix in (x for x in RADICES if x < p):
        times[f"bruck(radix={radix})"] = _bruck(p, k, machine, radix)
    return times


def _best(times: dict[str, float]) -> dict[str, float]:
    """Of all radices the best one."""
    radix = min(times, key=lambda name: times[name])
    return {x: times[x] for x in dict.fromkeys(("rotated", radix))}


def alltoall(
    p: int, k: int, machine: Callable[[], Machine], small: int = BUILT_IN.small
) -> Weighed:
    """Blocks of k bytes from each to each of p."""
    if p <= 2 or p * k < small:
        return fallback("rotated", f"for {p} blocks of {k} bytes")
    found = machine()
    ours = _best(_exchanges(p, k, found))
    library = ours["rotated"]
    if k <= SHORT:
        library = min(library, _bruck(p, k, found, 2))
    what = f"{p} blocks of {k} bytes"
    return _against(ours, library, what, found)


def asks(p: int, machine: Machine) -> bool:
    """Whether an Alltoallv in a group of p may gain by asking for the largest block:
    whether empty ones would, with the sizes told first."""
    times = _exchanges(p, 0, machine)
    least = log2(p) * machine.alpha + 2 * min(times.values())
    return least < MARGIN * times["rotated"]


def alltoallv(p: int, largest: int, machine: Machine) -> Choice:
    """Blocks of up to so many bytes from each to each of p, once that was asked; with
    Bruck's algorithm their sizes go first."""
    times = {
        name: t if name == "rotated" else t + _exchanges(p, 8, machine)[name]
        for name, t in _exchanges(p, largest, machine).items()
    }
    best = min(times, key=lambda name: times[name])
    listed = ", ".join(f"{x} {1e6 * t:.0f} µs" for x, t in _best(times).items())
    return Choice(best, f"for {p} blocks of up to {largest} bytes: {listed}")
