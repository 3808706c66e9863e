"""Calls whose arrays lie on a device.

A call runs on host memory that stands for the arrays, because ranks with arrays on the
host must see equal messages. If the MPI library takes device memory and a plan does
nothing but send from and receive into the arrays, the arrays are passed directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...plan.plan import Plan
from ...plan.steps import RECV, SEND, Await, MessageStep, StartAllgatherv
from ...plan.touches import reads, writes
from . import staged
from .overlap import around, overlapped
from .staged import Copies

if TYPE_CHECKING:
    from ...context.context import Context


def copies_of(
    context: Context, op: str, args: tuple[Any, ...], *, is_persistent: bool
) -> Copies:
    """The arrays of a call on devices, with host memory that stands for the arrays."""
    sends = False
    if op == "Bcast":
        root = args[1] if len(args) > 1 else 0
        sends = context.is_root(root)
    return staged.copies(op, args, sends=sends, is_persistent=is_persistent)


def is_direct(plan: Plan) -> bool:
    """Whether a plan does nothing but send from and receive into the user's buffers.

    Any other step would read or write device memory from the host.
    """
    if plan.native is not None:
        return True
    if plan.must_read or plan.asks:
        return False
    steps = (step for step in plan.steps if not isinstance(step, MessageStep | Await))
    touched = (run for step in steps for run in (*reads(step, 1), *writes(step, 1)))
    return not any(run.buffer in (SEND, RECV) for run in touched)


def buffers_of(op: str, copies: Copies) -> dict[int, int]:
    """The array of each buffer of an operation, by numbers."""
    if op == "Bcast":  # a single array, sent by the root and received by other ranks
        (k,) = copies.arrays.values()
        return {SEND: k, RECV: k}
    return {(SEND, RECV)[place]: k for place, k in copies.arrays.items()}


def with_copies(
    plan: Plan, copies: Copies, numbers: Mapping[int, int], element: int
) -> Plan:
    """A plan with the copies from and to devices.

    `numbers` has the array of each buffer, `element` the bytes of a combined element.
    """
    if plan.must_read:  # data are copied whole before packing and after the last step
        return plan if plan.native is None else around(plan, {}, (), ())
    used = {k: i for k, i in numbers.items() if _uses(plan, k)}
    is_shared = len(set(used.values())) < len(used)
    is_opaque = is_shared or plan.native is not None
    if is_opaque or any(isinstance(step, StartAllgatherv) for step in plan.steps):
        once = {i: k for k, i in reversed(list(numbers.items()))}
        sizes = {k: copies.staged[i].nbytes for i, k in once.items()}
        read = [k for i, k in once.items() if copies.read[i]]
        written = [k for i, k in once.items() if copies.written[i]]
        return around(plan, sizes, read, written)
    sizes = {k: copies.staged[i].nbytes for k, i in used.items()}
    read = [k for k, i in used.items() if copies.read[i]]
    return overlapped(plan, sizes, read, element)


def _uses(plan: Plan, buffer: int) -> bool:
    """Whether a step of a plan reads or writes a buffer."""
    touched = (
        run for step in plan.steps for run in (*reads(step, 1), *writes(step, 1))
    )
    return any(run.buffer == buffer for run in touched)
