"""Data whose elements have gaps: packed before a call, unpacked after it.

The steps of a plan move runs of bytes. Elements of a derived type may have gaps, in
which a receive must not write; so such data are staged in memory of our own, all of
them before the first step and after the last. MPI packs and unpacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from .user_buffer import UserBuffer


@dataclass(frozen=True, slots=True)
class Staged:
    """Memory of our own for the data of a buffer, as the steps of a plan see them."""

    buffer: UserBuffer
    memory: memoryview
    #: whether elements keep their extent, as an operator takes them, or are packed
    is_elements: bool

    def stage_in(self) -> None:
        """Copy the user's data into the memory."""
        packed = self._packed()
        base, datatype = _as_one_element(self.buffer)
        datatype.Pack(base, packed, 0, MPI.COMM_SELF)
        datatype.Free()
        if self.is_elements:
            self.buffer.datatype.Unpack(packed, 0, self.memory, MPI.COMM_SELF)

    def stage_out(self) -> None:
        """Copy the memory to where the user's data belong."""
        packed = self._packed()
        if self.is_elements:
            self.buffer.datatype.Pack(self.memory, packed, 0, MPI.COMM_SELF)
        base, datatype = _as_one_element(self.buffer)
        datatype.Unpack(packed, 0, base, MPI.COMM_SELF)
        datatype.Free()

    def _packed(self) -> memoryview:
        if not self.is_elements:
            return self.memory
        return np.empty(self.buffer.nbytes, np.uint8).data


def staged(buffer: UserBuffer, *, is_elements: bool) -> Staged:
    """Memory for the data of a buffer, of any content."""
    nbytes = buffer.nbytes
    if is_elements:
        nbytes = sum(buffer.counts) * buffer.datatype.Get_extent()[1]
    return Staged(buffer, np.empty(nbytes, np.uint8).data, is_elements)


def _as_one_element(buffer: UserBuffer) -> tuple[MPI.memory, MPI.Datatype]:
    """All blocks as one element, of extent 1 so that it counts as one."""
    base = buffer.address or 1  # MPI.BOTTOM: mpi4py packs from no null address
    starts = [buffer.address + at - base for at in buffer.displacements]
    inner = buffer.datatype.Create_hindexed(buffer.counts, starts)
    outer = inner.Create_resized(0, 1).Commit()
    inner.Free()
    return MPI.memory.fromaddress(base, 1), outer
