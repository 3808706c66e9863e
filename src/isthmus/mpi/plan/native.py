"""The MPI library's own call in place of a plan's steps.

The library gets the arguments as isthmus has read them, not as the user passed them, so
that a call accepts the same arguments whichever way is chosen. Data that are only moved
are passed as bytes, because some libraries choose their algorithm by the size of the
local type, and hang where ranks describe equal data by different types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from mpi4py import MPI

from .steps import RECV, SEND

if TYPE_CHECKING:
    from ..arguments.call import Call
    from ..buffers.user_buffer import UserBuffer

#: the buffer specification of a native call, without the buffer: counts and
#: displacements in bytes or elements, one number for equal blocks, and the byte of the
#: buffer from which the displacements count: that of the lowest block
NativeSpec: TypeAlias = tuple[int | tuple[int, ...], int | tuple[int, ...], int]


#: the specification of a buffer without meaning on this rank, whatever the user passed
NO_BUFFER: NativeSpec = ((), (), 0)


def block_spec(x: UserBuffer) -> NativeSpec:
    """The specification of one block, or of blocks of one size, in bytes.

    Data with gaps are staged, and the blocks lie side by side.
    """
    return x.sizes[0], 0, x.displacements[0] if x.is_dense else 0


def vector_spec(x: UserBuffer) -> NativeSpec:
    """The specification of blocks of different sizes, in bytes.

    Data with gaps are staged. The buffer begins with the lowest block, since Open MPI's
    nonblocking calls take two buffers with one address for a call in place, even if the
    blocks lie apart.
    """
    if x.is_dense:
        low = min(
            (d for d, n in zip(x.displacements, x.sizes, strict=True) if n), default=0
        )
        return x.sizes, tuple(max(d - low, 0) for d in x.displacements), low
    return x.sizes, tuple(accumulate(x.sizes[:-1], initial=0)), 0


def elements_spec(x: UserBuffer) -> NativeSpec:
    """The specification of one block, in elements of the user's type.

    Data with gaps are staged, and the elements lie side by side.
    """
    return x.counts[0], 0, x.displacements[0] if x.is_dense else 0


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A method of mpi4py's class, and the description of its buffers."""

    #: mpi4py's name of the blocking method, as "Allgather"
    name: str
    #: the specifications of the two buffers; None for an argument passed as the user
    #: has it
    send: NativeSpec | None = None
    recv: NativeSpec | None = None
    #: whether data are passed as bytes, whatever their type
    is_bytes: bool = True
    #: whether all arguments are passed as the user has them
    is_raw: bool = False

    def arguments(self, call: Call, buffers: Sequence[Any]) -> Sequence[Any]:
        """The arguments of the method, for the buffers of a call."""
        if self.is_raw:
            return call.args
        args = list(call.args)
        datatype = MPI.BYTE
        if not self.is_bytes and call.operators:
            datatype = call.operators[0][1]
        if self.send is not None:
            args[0] = _described(buffers[SEND], self.send, datatype)
        if self.recv is not None:
            place = 0 if call.has_one_buffer else 1
            args[place] = _described(buffers[RECV], self.recv, datatype)
        return args

    def blocking(
        self, comm: MPI.Comm, call: Call, buffers: Sequence[Any]
    ) -> Callable[[], None]:
        """The blocking call, not yet made: an error before it is made leaves no trace,
        as no other rank has heard of the call."""
        method = getattr(call.context.native_class, self.name)
        return partial(method, comm, *self.arguments(call, buffers))

    def nonblocking(
        self, comm: MPI.Comm, call: Call, buffers: Sequence[Any]
    ) -> Callable[[], MPI.Request]:
        """The nonblocking call, not yet started."""
        method = getattr(call.context.native_class, f"I{self.name.lower()}")
        return partial(method, comm, *self.arguments(call, buffers))

    def persistent(
        self, comm: MPI.Comm, call: Call, buffers: Sequence[Any], info: MPI.Info
    ) -> MPI.Prequest | None:
        """Set a persistent call up; None where the library has none (before MPI 4)."""
        method = getattr(call.context.native_class, f"{self.name}_init")
        try:
            request: MPI.Prequest = method(comm, *self.arguments(call, buffers), info)
        except NotImplementedError:
            return None
        return request


def _described(memory: Any, spec: NativeSpec, datatype: MPI.Datatype) -> Any:
    """A buffer specification of mpi4py."""
    if spec is NO_BUFFER:
        return None
    counts, displacements, low = spec
    return [memory[low:] if low else memory, counts, displacements, datatype]
