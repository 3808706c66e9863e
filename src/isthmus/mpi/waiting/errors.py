"""The exceptions that end a call before it is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class MismatchError(ValueError):
    """The ranks of an operation do not agree on their arguments."""

    def __init__(self, text: str, *, is_agreed: bool = True) -> None:
        """With `is_agreed` all ranks raise the error, so the call is over everywhere
        and the communicator stays usable."""
        super().__init__(text)
        self.is_agreed = is_agreed


class Interrupted(RuntimeError):
    """Another rank raised an error in the middle of a call, and makes no more calls."""


class NoTagLeft(RuntimeError):
    """Too many persistent calls live; all ranks raise the error and can go on."""


class Stalled(RuntimeError):
    """A wait took longer than its limit: `ISTHMUS_TIMEOUT`, or `comm.timeout`.

    `ranks` are the numbers of the awaited ranks, `waiting_for` their names in words;
    both are empty where the MPI library does not say for whom a call waits.
    """

    def __init__(
        self, seconds: float, ranks: Sequence[int] = (), has: str = "", why: str = ""
    ) -> None:
        super().__init__(seconds, ranks, has, why)
        self.seconds, self.ranks, self.has, self.why = seconds, tuple(ranks), has, why
        self.operation = self.algorithm = self.who = ""
        self.round = 0
        self.waiting_for: tuple[str, ...] = ()

    def in_call(
        self, operation: str, algorithm: str, rank: int, who: Callable[[int], str]
    ) -> Stalled:
        """The error, completed with the call and with the names of the ranks.

        A known operation or algorithm stays, since the innermost call has waited.
        """
        self.operation = self.operation or operation
        self.algorithm = self.algorithm or algorithm
        self.who = who(rank)
        self.waiting_for = tuple(map(who, self.ranks))
        return self

    def __str__(self) -> str:
        by = f" by {self.algorithm}" if self.algorithm else ""
        at = f", round {self.round}" if self.round else ""
        whom = ", ".join(self.waiting_for[:8]) or "the other processes"
        rest = f" and {len(self.ranks) - 8} more" if len(self.ranks) > 8 else ""
        has = f"; it has {self.has}" if self.has else ""
        why = f"; {self.why}" if self.why else ""
        return (
            f"isthmus {self.operation or 'call'}{by}{at}: {self.who or 'this process'} "
            f"waited {self.seconds:.1f} s for {whom}{rest}{has}{why}; free the "
            "communicator"
        )


class ProcessLost(RuntimeError):
    """Processes of a communicator have died: `ranks` are their numbers, `who` their
    names in words."""

    def __init__(self, ranks: Sequence[int], who: Sequence[str], advice: str) -> None:
        super().__init__(ranks, who, advice)
        self.ranks, self.who, self._advice = tuple(ranks), tuple(who), advice

    def __str__(self) -> str:
        names = ", ".join(self.who) or "a process"
        return f"isthmus: {names} lost; {self._advice}"


#: the exceptions that users catch; a traceback shows them as isthmus.Stalled and so on
USER_EXCEPTIONS = (MismatchError, Interrupted, Stalled, ProcessLost)
for _error in USER_EXCEPTIONS:
    _error.__module__ = "isthmus"
