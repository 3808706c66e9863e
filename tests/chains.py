"""Chains of processes for tests, and the right results of a split."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

from isthmus.groups import vm
from isthmus.groups.chain import ChainLink, from_addresses


def links(order: list[int], n: int) -> list[ChainLink | None]:
    """The links of n processes in a chain; None for processes not in `order`."""
    return [from_addresses(i, order) for i in range(n)]


def random_order(rng: random.Random, n: int) -> list[int]:
    """A random subset of n processes, at least one, in random order."""
    return rng.sample(range(n), rng.randint(1, n))


def pickled(value: Any) -> Any:
    """The value as it arrives after a message of MPI."""
    return pickle.loads(pickle.dumps(value))


def run(
    chain: list[ChainLink | None], dialogue: Callable[[ChainLink], Any], **options: Any
):
    """The results of a dialogue on every process of a chain."""
    return vm.run([dialogue(link) if link else None for link in chain], **options)


def members(chain: list[ChainLink | None]) -> list[ChainLink]:
    """The links of the processes in a chain, in the order of the chain."""
    return sorted((x for x in chain if x), key=lambda link: link.rank)


KINDS = [type(None), (int, float), str, bytes, tuple]


def in_order(value: Any) -> tuple[Any, ...]:
    """A key with which Python sorts values in the order of isthmus: first by kind."""
    kind = next(i for i, k in enumerate(KINDS) if isinstance(value, k))
    if kind == 0:
        return (0,)
    return kind, tuple(map(in_order, value)) if kind == 4 else value


def oracle(
    chain: list[ChainLink | None],
    colors: list[Any],
    keys: list[Any],
    split: bool = True,
    reorder: bool = True,
) -> list[Any]:
    """The link, group number and number of groups of every process.

    By a dict and a stable sort, so that no code is common with the tested one.
    """
    groups: dict[Any, list[ChainLink]] = {}
    for link in members(chain):
        color = colors[link.address] if split else 0
        if color is not None:
            groups.setdefault(color, []).append(link)
    for group in groups.values():
        if reorder:
            group.sort(key=lambda link: in_order(keys[link.address]))
    ordered = sorted(groups.values(), key=lambda group: group[0].rank)
    placements: list[Any] = [
        (None, None, len(ordered)) if link else None for link in chain
    ]
    for number, group in enumerate(ordered):
        addresses = [link.address for link in group]
        for a in addresses:
            placements[a] = (from_addresses(a, addresses), number, len(ordered))
    return placements
