"""A chain: a group of processes as a doubly linked list, spread over its members.

Every process stores its own link, five numbers however large the group is (Moody, Ahn,
de Supinski 2011). Addresses are ranks of the communicator below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .batch import pick
from .dialogue import Index


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A process's place in a chain and its neighbours; at an end the neighbour is None.

    In a batch, each field is an array with an element for each process. A process in no
    chain has size 0.
    """

    rank: Index
    size: Index
    address: Index
    left: Index
    right: Index


def from_size(address: Index, n: int) -> ChainLink:
    """A link of the chain of all n processes, in their order."""
    return ChainLink(
        address,
        address * 0 + n,
        address,
        pick(address > 0, address - 1, None),
        pick(address < n - 1, address + 1, None),
    )


def masked(link: ChainLink, mask: Any) -> ChainLink:
    """The link where the mask holds, and a link of no chain elsewhere."""
    masked_link: ChainLink = pick(
        mask, link, ChainLink(None, 0, link.address, None, None)
    )
    return masked_link


def empty_link(link: ChainLink) -> ChainLink:
    """The process of a link, in no chain."""
    return masked(link, link.size < 0)


def from_addresses(address: int, chain: Sequence[int]) -> ChainLink | None:
    """A process's link in the chain of the listed processes; None if not listed."""
    if address not in chain:
        return None
    i, n = chain.index(address), len(chain)
    left = chain[i - 1] if i > 0 else None
    return ChainLink(i, n, address, left, chain[i + 1] if i < n - 1 else None)


def rounds(n: int) -> int:
    """⌈log n⌉: the rounds of a scan on a chain of n."""
    return (n - 1).bit_length() if n > 0 else 0
