"""The costs of messages between ranks on hosts of different speed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

#: hosts are unequal beyond this ratio: measurements of equal hosts vary by less
MIN_UNEQUAL_RATIO = 2.0
#: seconds to start a message between ranks of a host, and seconds a byte; rough values,
#: since algorithms only need to see that a network takes many times as long
MEMORY_SECONDS = (1e-6, 1e-10)


@dataclass(frozen=True)
class Hosts:
    """Start-up time and time per element of the host of each rank.

    An element is a byte unless `in_units` has made it larger. A message takes the time
    of its slower end; between ranks of a node, the time of a message through memory.
    """

    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    #: a number for the node of each rank, where some share one
    nodes: tuple[int, ...] = ()
    memory: tuple[float, float] = MEMORY_SECONDS

    def __post_init__(self) -> None:
        """Refuse start-up times and times per element of different lengths."""
        if len(self.alphas) != len(self.betas):
            raise ValueError("as many start-up times as times per element are needed")

    @classmethod
    def equal(cls, n: int) -> Hosts:
        """n hosts of equal speed, without start-up times."""
        return cls((0.0,) * n, (1.0,) * n)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.alphas), np.array(self.betas)

    @cached_property
    def node_numbers(self) -> np.ndarray:
        """The node of every rank, as an array; by default every rank has its own."""
        return np.array(self.nodes or range(len(self.alphas)))

    def are_inside(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether messages from ranks a to ranks b stay inside a node.

        False for messages of a rank to itself: see `times`.
        """
        inside: np.ndarray = (self.node_numbers[a] == self.node_numbers[b]) & (a != b)
        return inside

    def times(self, a: np.ndarray, b: np.ndarray, size: np.ndarray | int) -> np.ndarray:
        """The times of messages between ranks a and ranks b.

        Where a equals b, the time of a message to another node, so that `own` can ask
        for two hosts of equal speed.
        """
        alpha, beta = self._arrays
        startup = np.maximum(alpha[a], alpha[b])
        durations: np.ndarray = startup + np.maximum(beta[a], beta[b]) * size
        if self.nodes:
            in_memory = self.memory[0] + self.memory[1] * size
            durations = np.where(self.are_inside(a, b), in_memory, durations)
        return durations

    def wire(self, rank: np.ndarray | int, size: np.ndarray | int) -> np.ndarray:
        """The time for which the bytes of messages occupy the ports of ranks' hosts."""
        seconds: np.ndarray = self._arrays[1][rank] * size
        return seconds

    def own(self, size: int) -> np.ndarray:
        """The time of a message from each rank to a remote rank of equal speed."""
        ranks = np.arange(len(self.alphas))
        return self.times(ranks, ranks, size)

    @property
    def unequal(self) -> bool:
        """Whether the slowest host takes over MIN_UNEQUAL_RATIO times the fastest's
        time."""
        return any(
            max(x) > MIN_UNEQUAL_RATIO * min(x) for x in (self.alphas, self.betas)
        )

    def on(self, nodes: Sequence[Hashable]) -> Hosts:
        """The hosts with the nodes of the ranks; unchanged if no ranks share a node."""
        numbers = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
        if len(numbers) == len(nodes):
            return self
        return replace(self, nodes=tuple(numbers[node] for node in nodes))

    def only(self, ranks: Iterable[int]) -> Hosts:
        """The hosts of a selection of ranks, in the order of the selection."""
        selection = list(ranks)
        alphas = tuple(self.alphas[r] for r in selection)
        betas = tuple(self.betas[r] for r in selection)
        hosts = Hosts(alphas, betas, memory=self.memory)
        return hosts.on([self.nodes[r] for r in selection]) if self.nodes else hosts

    def in_units(self, unit: int) -> Hosts:
        """The hosts for larger elements, each of `unit` present elements."""
        alpha, beta = self.memory
        betas = tuple(unit * x for x in self.betas)
        return replace(self, betas=betas, memory=(alpha, unit * beta))
