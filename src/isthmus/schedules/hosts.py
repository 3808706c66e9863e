"""The costs of messages of each rank, where hosts differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

#: hosts are unequal beyond this ratio: measurements of equal hosts vary by less
MIN_UNEQUAL_RATIO = 2.0
#: seconds to start a message between ranks of one host, and seconds a byte, roughly:
#: what counts is that its network takes many times as long
MEMORY_SECONDS = (1e-6, 1e-10)


@dataclass(frozen=True)
class Hosts:
    """Start-up time and time per element of the host of each rank.

    A message takes as long as the slower of its two ends; between ranks of one node it
    takes what the memory there takes.
    """

    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    #: a number for the node of each rank, where some share one
    nodes: tuple[int, ...] = ()
    memory: tuple[float, float] = MEMORY_SECONDS

    def __post_init__(self) -> None:
        """Refuse start-up times and times per element of different ranks."""
        if len(self.alphas) != len(self.betas):
            raise ValueError("as many start-up times as times per element are needed")

    @classmethod
    def equal(cls, n: int) -> Hosts:
        """n hosts of one speed."""
        return cls((0.0,) * n, (1.0,) * n)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.alphas), np.array(self.betas)

    @cached_property
    def node_numbers(self) -> np.ndarray:
        """The node of every rank."""
        return np.array(self.nodes or range(len(self.alphas)))

    def are_inside(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Which messages between two ranks stay inside of a node."""
        inside: np.ndarray = (self.node_numbers[a] == self.node_numbers[b]) & (a != b)
        return inside

    def times(self, a: np.ndarray, b: np.ndarray, size: np.ndarray | int) -> np.ndarray:
        """The times of messages between the ranks a and b; of a rank and itself, those
        of a message to another node."""
        alpha, beta = self._arrays
        startup = np.maximum(alpha[a], alpha[b])
        durations: np.ndarray = startup + np.maximum(beta[a], beta[b]) * size
        if self.nodes:
            in_memory = self.memory[0] + self.memory[1] * size
            durations = np.where(self.are_inside(a, b), in_memory, durations)
        return durations

    def wire(self, rank: np.ndarray | int, size: np.ndarray | int) -> np.ndarray:
        """How long the bytes of messages take the ports of the hosts of some ranks."""
        taken: np.ndarray = self._arrays[1][rank] * size
        return taken

    def own(self, size: int) -> np.ndarray:
        """The time of a message of each rank to a rank of the same speed."""
        everyone = np.arange(len(self.alphas))
        return self.times(everyone, everyone, size)

    @property
    def unequal(self) -> bool:
        """Whether a host takes more than MIN_UNEQUAL_RATIO times as long as another."""
        return any(
            max(x) > MIN_UNEQUAL_RATIO * min(x) for x in (self.alphas, self.betas)
        )

    def on(self, nodes: Sequence[Hashable]) -> Hosts:
        """The hosts of ranks on these nodes, if some share one."""
        numbers = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
        if len(numbers) == len(nodes):
            return self
        return replace(self, nodes=tuple(numbers[node] for node in nodes))

    def only(self, ranks: Iterable[int]) -> Hosts:
        """The hosts of a selection of ranks, in its order."""
        few = list(ranks)
        alphas, betas = (tuple(x[r] for r in few) for x in (self.alphas, self.betas))
        hosts = Hosts(alphas, betas, memory=self.memory)
        return hosts.on([self.nodes[r] for r in few]) if self.nodes else hosts

    def in_units(self, unit: int) -> Hosts:
        """The hosts' times per element where an element is `unit` of today's."""
        alpha, beta = self.memory
        betas = tuple(unit * x for x in self.betas)
        return replace(self, betas=betas, memory=(alpha, unit * beta))
