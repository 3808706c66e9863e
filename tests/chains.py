"""Chains for tests, and what a right split of one gives."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

from isthmus.groups import vm
from isthmus.groups.chain import Link, from_addresses


def links(order: list[int], n: int) -> list[Link | None]:
    """The links of all n processes in the chain of those listed."""
    return [from_addresses(i, order) for i in range(n)]


def some_order(rng: random.Random, n: int) -> list[int]:
    """Some of n processes, at least one, in any order."""
    return rng.sample(range(n), rng.randint(1, n))


def pickled(value: Any) -> Any:
    """What arrives when a value is sent through MPI."""
    return pickle.loads(pickle.dumps(value))


def run(chain: list[Link | None], dialogue: Callable[[Link], Any], **more: Any):
    """Run a dialogue on every process of a chain."""
    return vm.run([dialogue(link) if link else None for link in chain], **more)


def members(chain: list[Link | None]) -> list[Link]:
    """The links of those in the chain, in its order."""
    return sorted((x for x in chain if x), key=lambda link: link.rank)
