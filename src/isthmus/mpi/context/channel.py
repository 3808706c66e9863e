"""Channels: the numbers of calls, alike on all ranks that take part.

The number of a call gives the tag of the messages and the half of the node memory. A
rank counts each call that goes ahead with the rank's participation. A refused call does
not go ahead, and ranks without a part in a call cannot know whether the call does.

So a communicator has a channel for calls of all ranks, and a channel for the calls
between each root and the remote group. A persistent call has a private channel, since
MPI lets ranks start persistent calls in different orders.
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

#: seconds that a waiting thread leaves to other threads of the process
_SECONDS_FOR_THREADS = 1e-6


class Channel:
    """The numbers of calls, with the messages and the node memory of the calls."""

    def __init__(self, context: Context, memory: NodeMemory, tags: range) -> None:
        """With a tag for each call that may be under way at a time."""
        self.context, self.memory, self.scratch = context, memory, context.scratch
        self.segment = memory.segments[0]
        #: the turns of calls in the halves
        self.turns: Turns | RootedTurns = memory.turns
        self.isend, self.irecv = context.comm.Isend, context.comm.Irecv
        #: whether nobody on the node gives the turns of the halves: then each call has
        #: memory of its own in place of a half
        self.is_alone = False
        #: the number of calls so far
        self.calls = 0
        self._first_tag, self._tag_count = tags.start, len(tags)

    def count(self, operation: Operation) -> None:
        """Number a call, which goes ahead from now on.

        Before the first tag is used again, the rank ends all its calls, because
        messages with equal tags of two calls under way could be received in the wrong
        call.
        """
        if self.context.refused:
            self.context.check_usable()
        number = self.calls
        place = number % self._tag_count
        if not place and number:
            progress.finish(self)
        operation.tag = self._first_tag + place
        operation.half, operation.code = number % HALVES, number
        # assigned together: no signal handler may see a number without the count
        operation.number, self.calls = number, number + 1

    def check(self) -> None:
        """Raise if a rank failed in a call, or a process was lost.

        The probe for failures also lets the MPI library make progress, since other
        ranks may wait for messages of this rank.
        """
        context = self.context
        failure = context.reported_failure()
        if failure is None:
            context.check_lost()
            return
        rank, reason = failure
        if reason == "stalled" and context.limit.seconds is not None:
            return  # a rank with a limit raises its own error, with the awaited ranks
        text = context.refuse(rank)
        if reason == "lost":
            raise ProcessLost((), (), "as another rank says")
        if reason == "stalled":
            raise Stalled(0.0, [rank], why=text)
        raise Interrupted(text)

    def advance_others(self, waiting: Operation) -> None:
        """Advance the other operations of the process, also those of other threads.

        Two ranks that wait for two operations in different orders would hang otherwise.
        The rank sleeps only if other threads need Python, since any sleep takes 40 to
        60 µs, as long as a short call, and delays all ranks that wait for this rank.
        """
        progress.advance_others(waiting)
        if progress.needs_other_threads:  # Python may stand still otherwise
            time.sleep(_SECONDS_FOR_THREADS)

    def close(self) -> None:
        """Free the node memory of the channel."""
        self.memory.free()


class PersistentChannel(Channel):
    """The calls of a persistent request, which has a tag until the end."""

    def close(self) -> None:
        """Free the tag and the node memory."""
        self.context.give_back_tag(self._first_tag)
        super().close()


class RootedChannel(Channel):
    """The calls between a root and the remote group."""

    def __init__(
        self,
        context: Context,
        memory: NodeMemory,
        tags: range,
        turns: RootedTurns,
        root: int,
    ) -> None:
        """With the turns of all roots in the root's group."""
        super().__init__(context, memory, tags)
        self.segment, self._root = turns.segment, root
        self.turns = self._rooted_turns = turns
        self.is_alone = turns.is_alone

    def count(self, operation: Operation) -> None:
        """Number a call, which goes ahead from now on.

        The code of the call differs from the codes of all roots, because calls of two
        roots may use a half in turn.
        """
        super().count(operation)
        operation.code = operation.number * self.context.size + self._root
        self._rooted_turns.begin(operation, self._root)
