"""The outcome of a run of dialogues: results, and a tally of every rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TracedMessage:
    """A value moved from one rank to another; rounds count from 0."""

    round: int
    source: int
    target: int
    value: Any


@dataclass(slots=True)
class RankTally:
    """A rank's rounds, messages and bytes sent, peak bytes of memory, end time."""

    rounds: int = 0
    messages: int = 0
    bytes: int = 0
    memory: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class RunResult:
    """Every rank's result and tally, and the messages if a trace was asked for."""

    results: list[Any]
    ranks: list[RankTally]
    trace: list[TracedMessage] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """The length of the longest chain of steps waiting for each other."""
        return max((t.rounds for t in self.ranks), default=0)

    @property
    def time(self) -> float:
        """The virtual time at which the last rank was done."""
        return max((t.time for t in self.ranks), default=0.0)

    @property
    def messages(self) -> int:
        """The number of messages of all ranks."""
        return sum(t.messages for t in self.ranks)

    @property
    def bytes(self) -> int:
        """The bytes of all messages."""
        return sum(t.bytes for t in self.ranks)

    @property
    def peak(self) -> int:
        """The most bytes held by any rank at a time."""
        return max((t.memory for t in self.ranks), default=0)
