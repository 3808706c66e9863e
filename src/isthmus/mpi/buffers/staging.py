"""Data whose elements have gaps: packed before a call, unpacked after it.

The steps of a plan move runs of bytes. Elements of a derived type may have gaps, and a
receive must not write into a gap. So data with gaps are staged whole in private memory:
MPI packs before the first step and unpacks after the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from .user_buffer import UserBuffer


@dataclass(frozen=True, slots=True)
class Staged:
    """Private memory for the data of a buffer, the memory that a plan's steps use."""

    buffer: UserBuffer
    memory: memoryview
    #: whether elements keep their extent, since an operator combines whole elements
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
        """Copy the memory to the places of the user's data."""
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
    """Private memory for a buffer, without the data yet."""
    nbytes = buffer.nbytes
    if is_elements:
        nbytes = sum(buffer.counts) * buffer.datatype.Get_extent()[1]
    return Staged(buffer, np.empty(nbytes, np.uint8).data, is_elements)


def _as_one_element(buffer: UserBuffer) -> tuple[MPI.memory, MPI.Datatype]:
    """All blocks as one element, and the address that the element counts from.

    The extent is 1, since mpi4py takes the count from the bytes of the memory.
    """
    base = buffer.address or 1  # MPI.BOTTOM: mpi4py packs from no null address
    starts = [buffer.address + at - base for at in buffer.displacements]
    inner = buffer.datatype.Create_hindexed(buffer.counts, starts)
    outer = inner.Create_resized(0, 1).Commit()
    inner.Free()
    return MPI.memory.fromaddress(base, 1), outer
