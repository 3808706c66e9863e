"""The data of a task as buffers of an operation, and the layouts of the data."""

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
    """The buffers of an operation, and the layouts of sent and received data."""

    send: Layout = ()
    recv: Layout = ()
    #: the memory of each buffer, by number; None for buffers without data, and for
    #: scratch, which comes later
    memories: list[Any] = field(default_factory=lambda: [None] * FURTHER)
    #: sent and received data with gaps, packed into memory of ours
    staged_send: list[Staged] = field(default_factory=list)
    staged_recv: list[Staged] = field(default_factory=list)
    #: copies of data with gaps from a device before packing, and to a device after
    #: unpacking
    copies: Copies | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the only buffers are the user's, without staging."""
        return len(self.memories) == FURTHER and not (
            self.staged_send or self.staged_recv
        )

    def stage_in(self) -> None:
        """Pack data with gaps, to send."""
        if self.copies is not None:
            self.copies.fetch_all()
        for staged_data in self.staged_send:
            staged_data.stage_in()

    def stage_out(self) -> None:
        """Unpack received data with gaps."""
        for staged_data in self.staged_recv:
            staged_data.stage_out()
        if self.copies is not None:
            self.copies.store_all()


def arrange(task: Task) -> Arrangement:
    """The arrangement of a task's data.

    Sent and received data have separate buffers even where the user passes one array
    for both: a plan must not depend on the identity of arrays. Only data declared to be
    in place are sent from the receive buffer.
    """
    arrangement = Arrangement()
    is_elements = task.operator is not None
    is_one_buffer = task.is_in_place and task.is_dense
    arrangement.send = _add(
        arrangement,
        task.send,
        RECV if is_one_buffer else SEND,
        is_elements=is_elements,
        all_staged=arrangement.staged_send,
    )
    arrangement.recv = _add(
        arrangement,
        task.recv,
        RECV,
        is_elements=is_elements,
        all_staged=arrangement.staged_recv,
    )
    is_own_block_received = task.own_block is not None and not task.send
    if is_own_block_received or task.is_in_place:
        arrangement.staged_send += arrangement.staged_recv
    return arrangement


def _add(
    arrangement: Arrangement,
    data: Sequence[Data],
    first_number: int,
    *,
    is_elements: bool,
    all_staged: list[Staged],
) -> Layout:
    """Add the buffers of data to an arrangement, and return the layout of the data.

    The first buffer gets the given number, further buffers the next free numbers.
    """
    numbers: dict[int, int] = {}
    layouts = []
    for part in data:
        if isinstance(part, Parts):
            memories = (view(MPI.memory(owner)) for owner in part.owners)
            layouts += [
                layout(
                    memory.nbytes, _number(arrangement, memory, first_number, numbers)
                )
                for memory in memories
                if memory.nbytes
            ]
        elif part.is_dense:
            owner = part.owner
            memory = None if owner is None else view(MPI.memory(owner))
            number = _number(arrangement, memory, first_number, numbers, key=id(owner))
            layouts.append(layout_of_blocks(part.sizes, part.displacements, number))
        else:
            staged_data = staged(part, is_elements=is_elements)
            all_staged.append(staged_data)
            memory = staged_data.memory
            number = _number(arrangement, memory, first_number, numbers)
            layouts.append(layout(memory.nbytes, number))
    return chained(layouts)


def _number(
    arrangement: Arrangement,
    memory: Any,
    first_number: int,
    numbers: dict[int, int],
    key: int | None = None,
) -> int:
    """The number of a buffer; blocks of one owner, the key, share a buffer."""
    key = id(memory) if key is None else key
    if key not in numbers:
        if not numbers:
            arrangement.memories[first_number] = memory
            numbers[key] = first_number
        else:
            arrangement.memories.append(memory)
            numbers[key] = len(arrangement.memories) - 1
    return numbers[key]
