"""A chain: a group of processes as a doubly linked list, spread over its members.

Every process keeps its own link, five numbers however large the group is (Moody, Ahn,
de Supinski 2011). Addresses are ranks of the communicator below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """What one process knows of a chain; at an end the neighbour is None."""

    rank: int
    size: int
    address: int
    left: int | None
    right: int | None


def whole(address: int, n: int) -> Link:
    """A link of the chain of all n processes, in their order."""
    return Link(
        address,
        n,
        address,
        address - 1 if address > 0 else None,
        address + 1 if address < n - 1 else None,
    )


def from_addresses(address: int, chain: Sequence[int]) -> Link | None:
    """A link of the chain of the listed processes; None for the others."""
    if address not in chain:
        return None
    i, n = chain.index(address), len(chain)
    left = chain[i - 1] if i > 0 else None
    return Link(i, n, address, left, chain[i + 1] if i < n - 1 else None)


def rounds(n: int) -> int:
    """⌈log n⌉: the rounds of a scan on a chain of n."""
    return (n - 1).bit_length() if n > 0 else 0
