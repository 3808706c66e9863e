"""The data of a task as buffers of an operation, and where in these they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..buffers.staging import Staged, staged
from ..buffers.user_buffer import Parts, view
from .layouts import Layout, chained, layout, layout_of_blocks
from .steps import FURTHER, RECV, SEND
from .task import Data, Task

if TYPE_CHECKING:
    from ..buffers.devices.staged import Copies


@dataclass(slots=True)
class Arrangement:
    """Buffers, and the places of what is sent and received in them."""

    send: Layout = ()
    recv: Layout = ()
    #: the memory of each buffer, by its number; scratch and others have none yet
    memories: list[Any] = field(default_factory=lambda: [None] * FURTHER)
    #: what has gaps, among what is sent and what is received
    staged_send: list[Staged] = field(default_factory=list)
    staged_recv: list[Staged] = field(default_factory=list)
    #: the copies from and to devices of data that have gaps: before they are packed
    #: here, and after they are unpacked
    copies: Copies | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there are only the buffers that the user passed, as they lie."""
        return len(self.memories) == FURTHER and not (
            self.staged_send or self.staged_recv
        )

    def stage_in(self) -> None:
        """Pack what is sent, as far as it has gaps."""
        if self.copies is not None:
            self.copies.bring()
        for x in self.staged_send:
            x.stage_in()

    def stage_out(self) -> None:
        """Unpack what is received, as far as it has gaps."""
        for x in self.staged_recv:
            x.stage_out()
        if self.copies is not None:
            self.copies.take()


def arrange(task: Task) -> Arrangement:
    """The data of a task.

    Nothing of what is sent shares a buffer with what is received, even where the user
    passes one array for both: that would be a plan for the identity of arrays. Only
    what is declared to be in place lies in the buffer of what is received.
    """
    result = Arrangement()
    is_elements = task.operator is not None
    is_same = task.is_in_place and task.is_dense
    first = RECV if is_same else SEND
    result.send = _add(result, task.send, first, is_elements, result.staged_send)
    result.recv = _add(result, task.recv, RECV, is_elements, result.staged_recv)
    is_there_already = task.own_block is not None and not task.send
    if is_there_already or task.is_in_place:
        result.staged_send += result.staged_recv
    return result


def _add(
    result: Arrangement,
    data: Sequence[Data],
    first: int,
    is_elements: bool,
    all_staged: list[Staged],
) -> Layout:
    """The places of some data, whose buffers are added; the first gets a number of its
    own."""
    numbers: dict[int, int] = {}
    layouts = []
    for x in data:
        if isinstance(x, Parts):
            memories = (view(MPI.memory(owner)) for owner in x.owners)
            layouts += [
                layout(memory.nbytes, _number(result, memory, first, numbers))
                for memory in memories
                if memory.nbytes
            ]
        elif x.is_dense:
            memory = None if x.owner is None else view(MPI.memory(x.owner))
            number = _number(result, memory, first, numbers, key=id(x.owner))
            layouts.append(layout_of_blocks(x.sizes, x.displacements, number))
        else:
            one = staged(x, is_elements=is_elements)
            all_staged.append(one)
            number = _number(result, one.memory, first, numbers)
            layouts.append(layout(one.memory.nbytes, number))
    return chained(layouts)


def _number(
    result: Arrangement,
    memory: Any,
    first: int,
    numbers: dict[int, int],
    key: int | None = None,
) -> int:
    """The number of a buffer; blocks of one owner, which is a key, share a buffer."""
    key = id(memory) if key is None else key
    if key not in numbers:
        if not numbers:
            result.memories[first] = memory
            numbers[key] = first
        else:
            result.memories.append(memory)
            numbers[key] = len(result.memories) - 1
    return numbers[key]
