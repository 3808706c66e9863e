"""The three forms of a call, which share a plan: blocking, nonblocking, persistent.

A plan of steps becomes an operation. A plan of the MPI library's own call is called
directly, so that a call left to the library takes little longer than mpi4py's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from .arguments.call import Call
from .arguments.values import READING_ERRORS
from .context import checked
from .plan.operation import Operation
from .plan.steps import FURTHER
from .requests.native import holding
from .requests.persistent import persistent
from .requests.request import start
from .waiting.bounded import bounded

if TYPE_CHECKING:
    from .context.channel import Channel
    from .context.context import Context
    from .plan.arrange import Arrangement
    from .plan.native import NativeCall
    from .plan.plan import Plan


def operation_of(
    channel: Channel,
    plan: Plan,
    call: Call,
    operation_class: Callable[..., Operation] = Operation,
) -> Operation:
    """The operation of a call with a plan, on the buffers of the call.

    Data with gaps are copied to staging memory.
    """
    if not plan.must_read and call.values is not None:
        return operation_class(channel, plan, call, call.buffers(plan))
    arranged: Arrangement = call.arranged()
    arranged.stage_in()
    operation = operation_class(channel, plan, call, arranged.memories)
    if arranged.staged_recv or arranged.copies is not None:
        operation.staging = arranged
    return operation


def run(comm: MPI.Comm, context: Context, call: Call) -> None:
    """Make a blocking call, and a step of a trial behind it if one is due.

    The call is counted for the trial once it is over, in one block with it. A call that
    this rank refuses before anything is sent must not count, since no other rank hears
    of it, and a rank that counts differently makes the steps of the trial in other
    calls than the others, which wait for it.
    """
    if context.checked:
        checked.agree(context, call)
    plan = call.plan()
    if plan.native is not None:
        make_call = _native_call(comm, context, call, plan)
    else:
        observer = context.observer
        operation_class = Operation if observer is None else observer.operation
        channel = context.channel if plan.is_of_all else context.channel_for(plan)
        make_call = operation_of(channel, plan, call, operation_class).wait
    if plan.warm_up is None:
        make_call()
        return
    with context.uninterrupted(call.name, plan.algorithm):
        make_call()
        if plan.warm_up():
            context.advance_trial(call.name, partial(run, comm, context))


def complete(context: Context, call: Call) -> None:
    """Make a call that is a part of another call, by the steps of a plan."""
    plan = call.plan()
    operation_of(context.channel_for(plan), plan, call).wait()


def _native_call(
    comm: MPI.Comm, context: Context, call: Call, plan: Plan
) -> Callable[[], None]:
    """The MPI library's own call, with the arguments read and staged, not yet made."""
    native = plan.native
    assert native is not None
    arranged: Arrangement | None = None
    buffers: Sequence[Any] = ()
    if not native.is_raw:
        arranged = _staged(call, plan)
        buffers = call.buffers(plan) if arranged is None else arranged.memories
    if arranged is None and call.copies is not None:
        call.copies.fetch_all()
    native_call = native.blocking(comm, call, buffers)
    return partial(_run_native, comm, context, call, native_call, arranged)


def _run_native(
    comm: MPI.Comm,
    context: Context,
    call: Call,
    native_call: Callable[[], None],
    arranged: Arrangement | None,
) -> None:
    """Make the MPI library's own call, and copy the data to their places.

    Only a limit ends the wait in the middle of the library's call. Without one, a
    signal raises before the call, which can then be made again, or after it: other
    ranks that wait in the call could not even hear of a failure.
    """
    has_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE  # a worker makes the call
    is_bounded = context.limit.seconds is not None and has_threads
    try:
        if is_bounded:
            bounded(native_call, context.limit)
        else:
            native_call()
    except (TypeError, ValueError, BufferError):  # mpi4py refuses the arguments
        raise
    except BaseException as error:
        is_lost = context.has_lost(error)
        is_whole = isinstance(error, MPI.Exception) or not is_bounded
        if is_whole and not is_lost:
            raise
        if is_lost:
            comm.Revoke()  # so that other ranks leave the call
        raise context.failed(error, call.name, "native") from None
    if arranged is not None or call.copies is not None:
        with context.uninterrupted(call.name, "native"):
            if arranged is not None:
                arranged.stage_out()
            elif call.copies is not None:
                call.copies.store_all()


def _staged(call: Call, plan: Plan) -> Arrangement | None:
    """The arranged buffers of a call with data to stage in; None for plain buffers."""
    if not plan.must_read and call.values is not None:
        return None
    arranged = call.arranged()
    arranged.stage_in()
    return arranged


def begin(comm: MPI.Comm, context: Context, call: Call) -> MPI.Request:
    """Start a nonblocking call and return the request."""
    if context.checked:
        checked.agree(context, call)
    plan = call.plan()
    call.comm = comm
    if plan.native is None or plan.steps:
        channel = context.channel if plan.is_of_all else context.channel_for(plan)
        return start(operation_of(channel, plan, call))
    native, buffers = _native_buffers(call, plan)
    start_native = native.nonblocking(comm, call, buffers)
    try:  # once the call is started, a signal must not lose the request
        return holding(start_native(), context, call, buffers)
    except READING_ERRORS:  # mpi4py or the library refuses the arguments
        raise
    except BaseException as error:
        orphan = call, buffers
        raise context.failed(error, call.name, "native", orphan=orphan) from None


def _native_buffers(call: Call, plan: Plan) -> tuple[NativeCall, list[Any]]:
    """The MPI library's own nonblocking or persistent call, and the buffers.

    Data with gaps are left to the library, as the user passed them, because nobody
    would copy them from staging memory when the request completes.
    """
    assert plan.native is not None
    if plan.native.is_raw or plan.must_read or call.values is None:
        return replace(plan.native, is_raw=True), []
    return plan.native, call.buffers(plan)


def set_up(
    comm: MPI.Comm, context: Context, call: Call, info: MPI.Info
) -> MPI.Prequest:
    """Set a persistent call up and return the request; collective."""
    if context.checked:
        checked.agree(context, call)
    plan = call.plan()
    if plan.native is not None:
        _check_copies(context, call, plan)
        native, buffers = _native_buffers(call, plan)
        request = native.persistent(comm, call, buffers, info)
        if request is None:
            raise NotImplementedError(f"this MPI library has no {call.name}_init")
        if not plan.steps:
            return holding(request, context, call, buffers)
        call.prequest = request
    check_threads(context, plan.algorithm or call.name)
    # here, and not at the first start: other ranks have not heard of the call yet
    call.buffers(plan)
    with context.uninterrupted(call.label):
        plan = _ask_now(context, call, plan)
        channel = bounded(partial(context.persistent_channel, plan), context.limit)
        if channel is None:  # on all ranks: a node has no memory for the call
            context = call.context = context.as_if_alone()
            call.read_again()
            plan = _ask_now(context, call, call.plan())
            channel = bounded(partial(context.persistent_channel, plan), context.limit)
        assert channel is not None
        make_operation = partial(operation_of, channel, plan, call)
        return persistent(make_operation, channel, call.prequest)


def _ask_now(context: Context, call: Call, plan: Plan) -> Plan:
    """The plan of a call once its questions are answered.

    A persistent call asks when set up, so that no start asks again.
    """
    while plan.asks:
        operation = Operation(context.channel_for(plan), plan, call, [None] * FURTHER)
        operation.only_asks = True
        operation.wait()
        plan = call.plan_for(plan, operation.answer)
    return plan


def _check_copies(context: Context, call: Call, plan: Plan) -> None:
    """Refuse a native persistent call that nobody would copy the data of; collective.

    Arrays on devices are copied around the MPI library's own call by the progress
    thread. A rank does not know where the arrays of other ranks lie, and ranks that go
    on alone would wait for the refused ranks.
    """
    if context.threads:
        return
    with context.uninterrupted(call.label):
        gather = partial(context.comm.allgather, bool(plan.steps))
        is_copied = any(bounded(gather, context.limit))
    if is_copied:
        check_threads(context, plan.algorithm or call.name)


def check_threads(context: Context, name: str) -> None:
    """Refuse a persistent call where the progress thread may not call MPI, because
    nobody would advance a request started by MPI alone."""
    if not context.threads:
        raise RuntimeError(
            f"the persistent form of {name!r} needs MPI_THREAD_MULTIPLE in every "
            "process"
        )
