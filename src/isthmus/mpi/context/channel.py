"""Where calls are numbered, alike on all ranks that have a part in them.

The number of a call says the tag of its messages and the half of the node memory that
it may use. Every rank counts every call in which it has a part and that goes ahead; a
call that a rank refuses does not go ahead, and those who have no part in a call cannot
know whether it does.

So a communicator has a channel for the calls in which all ranks have a part, and one
for each root, of the calls between that root and the other group. A persistent call has
its own, since MPI lets ranks start persistent calls in different orders.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..buffers.node_memory import HALVES, NodeMemory, RootedTurns, Turns
from ..requests.progress import progress
from ..waiting.errors import Interrupted, ProcessLost, Stalled

if TYPE_CHECKING:
    from ..plan.operation import Operation
    from .context import Context

#: seconds that who waits leaves to other threads of its process
_SECONDS_FOR_THREADS = 1e-6


class Channel:
    """The numbers of calls, and what carries them: messages and the node memory."""

    def __init__(self, context: Context, memory: NodeMemory, tags: range) -> None:
        """With tags for calls that are under way at the same time; with one tag, there
        is one such call at a time."""
        self.context, self.memory, self.scratch = context, memory, context.scratch
        self.segment = memory.segments[0]
        #: which calls may use the halves
        self.turns: Turns | RootedTurns = memory.turns
        self.isend, self.irecv = context.comm.Isend, context.comm.Irecv
        #: calls that were counted
        self.calls = 0
        self._first_tag, self._tag_count = tags.start, len(tags)

    def count(self, operation: Operation) -> None:
        """Number a call, which goes ahead from now on.

        Before a tag comes again, this rank ends its calls that have one: only messages
        of one tag between two ranks that are not under way at once stay in their order.
        """
        if self.context.refused:
            self.context.check_usable()
        number = self.calls
        place = number % self._tag_count
        if not place and number:
            progress.finish(self)
        operation.tag = self._first_tag + place
        operation.half, operation.code = number % HALVES, number
        # together, as no signal handler runs between two assignments
        operation.number, self.calls = number, number + 1

    def check(self) -> None:
        """Raise if a rank failed in a call, or a process was lost.

        One probe hears of ranks that failed and lets the MPI library go on, which other
        ranks may need.
        """
        context = self.context
        failure = self.memory.gone() or context.failed_elsewhere()
        if failure is None:
            context.check_lost()
            return
        rank, reason = failure
        if reason == "stalled" and context.limit.seconds is not None:
            return  # who has a limit names whom it waits for itself
        text = context.refuse(rank)
        if reason == "lost":
            raise ProcessLost((), (), "as another rank says")
        if reason == "stalled":
            raise Stalled(0.0, [rank], why=text)
        raise Interrupted(text)

    def advance_others(self, waiting: Operation) -> None:
        """Bring forward what else is under way in this process, in the user's threads
        too: other ranks may wait for that, and not come before.

        A sleep takes 40 to 60 µs however short it is, as long as a short call, and all
        who wait for this rank wait longer.
        """
        progress.advance_others(waiting)
        if progress.needs_other_threads:  # Python may stand still otherwise
            time.sleep(_SECONDS_FOR_THREADS)

    def close(self) -> None:
        """Give the node memory back."""
        self.memory.free()


class PersistentChannel(Channel):
    """The calls of one persistent request, which has a tag until it is freed."""

    def close(self) -> None:
        """Give the tag and the node memory back."""
        self.context.give_back_tag(self._first_tag)
        super().close()


class RootedChannel(Channel):
    """The calls between one root and the other group."""

    def __init__(
        self,
        context: Context,
        memory: NodeMemory,
        tags: range,
        turns: RootedTurns,
        root: int,
    ) -> None:
        """`turns` is that of all roots of one group."""
        super().__init__(context, memory, tags)
        self.segment, self._root = turns.segment, root
        self.turns = self._rooted_turns = turns

    def count(self, operation: Operation) -> None:
        """Number a call, which goes ahead from now on.

        The code is another one than that of any call of another root, which may have
        the half before or after.
        """
        super().count(operation)
        operation.code = operation.number * self.context.size + self._root
        self._rooted_turns.begin(operation, self._root)
