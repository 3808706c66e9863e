"""What came of a run of dialogues: results, and what every rank did, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A value that moved from one rank to another; rounds count from 0."""

    round: int
    source: int
    target: int
    value: Any


@dataclass(slots=True)
class Tally:
    """What one rank did: its rounds, what it sent, its memory, when it was done."""

    rounds: int = 0
    messages: int = 0
    bytes: int = 0
    memory: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Run:
    """What came of a run: every rank's result and tally, and the messages if kept."""

    results: list[Any]
    ranks: list[Tally]
    trace: list[Message] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """The longest chain of steps that waited for each other."""
        return max((t.rounds for t in self.ranks), default=0)

    @property
    def time(self) -> float:
        """When the last rank was done."""
        return max((t.time for t in self.ranks), default=0.0)

    @property
    def messages(self) -> int:
        """All messages."""
        return sum(t.messages for t in self.ranks)

    @property
    def bytes(self) -> int:
        """The bytes of all messages."""
        return sum(t.bytes for t in self.ranks)

    @property
    def peak(self) -> int:
        """The most bytes that a rank held at a time."""
        return max((t.memory for t in self.ranks), default=0)
