"""Calls whose arrays lie on a device.

The call is made as one of host memory that stands for the arrays, so it does not matter
to other ranks where the data of a rank lie. Where the MPI library takes the memory of
devices, and a plan only sends from and receives into the arrays, they are passed as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...plan.plan import Plan
from ...plan.steps import RECV, SEND, Await, Gather, Post, PostTyped, Send, SendTyped
from ...plan.touches import reads, writes
from . import staged
from .overlap import around, overlapped
from .staged import Copies

if TYPE_CHECKING:
    from ...context.context import Context

_MESSAGES = (Post, Send, PostTyped, SendTyped, Await)


def copies_of(
    context: Context, op: str, args: tuple[Any, ...], *, is_persistent: bool
) -> Copies:
    """The host memory that stands for the arrays of a call."""
    sends = False
    if op == "Bcast":
        root = args[1] if len(args) > 1 else 0
        sends = context.is_root(root)
    return staged.copies(op, args, sends=sends, is_persistent=is_persistent)


def is_direct(plan: Plan) -> bool:
    """Whether a plan only sends from and receives into the user's buffers, so that an
    MPI library that takes the memory of devices can do it."""
    if plan.native is not None:
        return True
    if plan.must_read or plan.asks:
        return False
    steps = (step for step in plan.steps if not isinstance(step, _MESSAGES))
    touched = (run for step in steps for run in (*reads(step, 1), *writes(step, 1)))
    return not any(run.buffer in (SEND, RECV) for run in touched)


def buffers_of(op: str, copies: Copies) -> dict[int, int]:
    """By the number of an operation's buffer, the array that it stands for."""
    if op == "Bcast":  # the root sends from it, others receive into it
        (k,) = copies.arrays.values()
        return {SEND: k, RECV: k}
    return {(SEND, RECV)[place]: k for place, k in copies.arrays.items()}


def with_copies(
    plan: Plan, copies: Copies, numbers: Mapping[int, int], element: int
) -> Plan:
    """A plan with the copies of arrays, by the buffers that stand for them; elements
    that are combined have so many bytes."""
    if plan.must_read:  # all is copied before data are packed and after the last step
        return plan if plan.native is None else around(plan, {}, (), ())
    used = {k: i for k, i in numbers.items() if _uses(plan, k)}
    is_shared = len(set(used.values())) < len(used)
    is_opaque = is_shared or plan.native is not None
    if is_opaque or any(isinstance(step, Gather) for step in plan.steps):
        once = {i: k for k, i in reversed(list(numbers.items()))}
        sizes = {k: copies.staged[i].nbytes for i, k in once.items()}
        read = [k for i, k in once.items() if copies.read[i]]
        written = [k for i, k in once.items() if copies.written[i]]
        return around(plan, sizes, read, written)
    sizes = {k: copies.staged[i].nbytes for k, i in used.items()}
    read = [k for k, i in used.items() if copies.read[i]]
    return overlapped(plan, sizes, read, element)


def _uses(plan: Plan, buffer: int) -> bool:
    """Whether some step reads or writes a buffer."""
    touched = (
        run for step in plan.steps for run in (*reads(step, 1), *writes(step, 1))
    )
    return any(run.buffer == buffer for run in touched)
