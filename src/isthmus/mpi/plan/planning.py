"""The plan of a call: of the task, or of the question to ask before.

A rank asks if sizes are unknown, because the schedule depends on all sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...schedules.ir import Round
from ...schedules.program import buffer_size, renumber, writes
from ...schedules.schedule import Schedule
from ..buffers.node_memory import SAID_BYTES
from .arrange import Arrangement, arrange
from .compile import Compiler, NodeRanks
from .layouts import Layout, Layouts, chained, cut_out, layout
from .plan import Plan
from .question import Question
from .steps import (
    NODE,
    SAID,
    TMP,
    Ask,
    Await,
    Enter,
    Meet,
    Run,
    ShortCopy,
    StartAllgatherv,
    StartReceive,
    StartSend,
    Step,
)
from .task import Contributions, Task

if TYPE_CHECKING:
    from ..context.context import Context


def plan_of(
    context: Context,
    values: tuple[Hashable, ...],
    task: Task,
    answer: Sequence[Any] = (),
) -> Plan:
    """The plan of a task, whose schedule may depend on an answer."""
    arranged = arrange(task)
    plan_fields: dict[str, Any] = {
        "values": values,
        "algorithm": task.algorithm,
        "participants": task.participants,
        "root": task.root,
        "must_read": not arranged.is_plain,
        "operand": operand_of(task),
        "native": task.native,
    }
    if task.steps:
        return Plan(**plan_fields, steps=task.steps, slots=len(task.steps))
    if task.schedule is None:  # this rank has no part, or the library makes the call
        writes = task.native is not None and bool(task.recv)
        return Plan(**plan_fields, writes=writes)
    schedule = task.schedule(*answer)
    plan_fields["algorithm"] = schedule.algorithm
    contributions = None
    if schedule.node_memory and task.contributions is not None:
        contributions = task.contributions(*answer)
    compiler = _compiler(context, task, schedule, arranged, contributions)
    return Plan(
        **plan_fields,
        steps=tuple(compiler.steps),
        slots=compiler.slots,
        scratch=compiler.scratch,
        node=compiler.node,
        writes=bool(task.recv),
        must_be_apart=bool(task.send and task.recv) and not task.is_in_place,
    )


def operand_of(task: Task) -> int:
    """The index of the argument with the elements to combine; -1 without operator."""
    return -1 if task.operator is None else int(bool(task.recv))


def _compiler(
    context: Context,
    task: Task,
    schedule: Schedule,
    arranged: Arrangement,
    contributions: Contributions | None,
) -> Compiler:
    """A compiler that has compiled the rounds of this rank."""
    unit, rounds = schedule.unit, _rounds(schedule, task.ranks, context.number)
    units: dict[str, int] = dict.fromkeys(("send", "recv", "tmp", "node"), unit)
    scratch = buffer_size(rounds, "tmp") * unit
    places = {"tmp": layout(scratch, TMP)}
    segment = context.channel_of(task.root).segment
    places["node"] = layout(buffer_size(rounds, "node") * unit, NODE)
    sources: dict[str, Layout] = {}
    #: before the first round, and after the sends of the first round
    copies_before: list[tuple[list[Run], list[Run]]] = []
    first_copies: list[tuple[list[Run], list[Run]]] = []
    send, recv = arranged.send, arranged.recv
    if task.is_in_place and not arranged.staged_send:
        # received data overwrite the data to send: these are copied first
        nbytes = send[-1][1] if send else 0
        copy = layout(nbytes, TMP, scratch)
        copies_before.append((_runs(send), _runs(copy)))
        scratch, send = scratch + nbytes, copy
    if task.own_block is not None and schedule.is_in_place:
        recv, sources, copies = _own_block(task, arranged)
        (copies_before if schedule.node_memory else first_copies).extend(copies)
        places["recv"] = recv
    elif schedule.is_in_place:
        places["recv"] = send or recv
        if send and not recv and _writes(rounds, "recv"):
            # a root's data may be read-only, and some algorithms send them back to the
            # root
            copy = layout(send[-1][1], TMP, scratch)
            copies_before.append((_runs(send), _runs(copy)))
            scratch, places["recv"] = scratch + send[-1][1], copy
    elif task.own_block is not None:
        # the root's own block is sent or received in its present place
        ((blocks,), whole) = (task.send, send) if task.send else (task.recv, recv)
        start = sum(blocks.sizes[: task.own_block])
        own = cut_out(whole, start, start + blocks.sizes[task.own_block])
        places["send"], places["recv"] = (whole, own) if task.send else (own, whole)
    else:
        places["send"], places["recv"] = send, recv
    ranges = segment.ranges(task.participants or range(context.size))
    compiler = Compiler(
        Layouts(places, units, sources),
        NodeRanks(ranges, *_expected(context, segment.ranks, ranges, contributions)),
        scratch=scratch,
        element=1 if task.operator is None else task.operator.extent,
        cut=0 if context.observer is not None else context.cut,
    )
    for copy_runs in copies_before:
        compiler.copy(*copy_runs)
    compiler.rounds(rounds, first_copies)
    return compiler


def _rounds(
    schedule: Schedule, ranks: Sequence[int] | None, number: int
) -> Sequence[Round]:
    """The rounds of the rank with a number; `ranks` numbers the schedule's ranks."""
    if ranks is None:
        return schedule.rank(number)
    rounds = schedule.rank(ranks.index(number))
    return list(renumber(iter(rounds), ranks.__getitem__))


def _writes(rounds: Sequence[Round], buf: str) -> bool:
    """Whether messages or local steps write into a logical buffer."""
    return any(
        span.buf == buf
        for r in rounds
        for span in (*writes(r), *(step.dst for step in r.then))
        if span.size
    )


def _own_block(
    task: Task, arranged: Arrangement
) -> tuple[Layout, dict[str, Layout], list[tuple[list[Run], list[Run]]]]:
    """The layout of an allgather's blocks, layouts to send from, and first copies.

    This rank's own block is sent from the user's send buffer, so that the first
    messages need not wait for the copy to the receive buffer.
    """
    recv, send = arranged.recv, arranged.send
    if not task.send:
        return recv, {}, []
    (blocks,) = task.recv
    assert task.own_block is not None
    start = sum(blocks.sizes[: task.own_block])
    stop = start + blocks.sizes[task.own_block]
    own = cut_out(recv, start, stop)
    nbytes = recv[-1][1] if recv else 0
    sources = cut_out(recv, 0, start), send, cut_out(recv, stop, nbytes)
    return recv, {"recv": chained(sources)}, [(_runs(send), _runs(own))]


def _runs(places: Layout) -> list[Run]:
    return [
        Run(buffer, start, start + last - first)
        for first, last, buffer, start in places
    ]


def _expected(
    context: Context,
    ranks: Sequence[int],
    ranges: tuple[tuple[int, int], ...],
    contributions: Contributions | None,
) -> tuple[int, list[bytes] | None]:
    """The bytes that this rank contributes, and the bytes expected of met ranks.

    Expected bytes are packed by ranges, the form in which ranks compare them.
    """
    if contributions is None:
        return -1, None
    rows = [[contributions[ranks[i]] for i in range(a, b)] for a, b in ranges]
    return contributions[context.number], [np.array(x, "q").tobytes() for x in rows]


def plan_of_question(
    context: Context, values: tuple[Hashable, ...], task: Task, question: Question
) -> Plan:
    """The plan of the question on which a task depends; the plan ends with the answer.

    Ranks of a single node ask through the node memory, further ranks by the MPI
    library's own Allgatherv, or by single messages if each rank asks few.
    """
    said = question.said
    plan_fields: dict[str, Any] = {
        "values": values,
        "algorithm": task.algorithm,
        "said": said,
        "participants": task.participants,
        "operand": operand_of(task),
        "root": task.root,
        "must_read": not arrange(task).is_plain,
        "writes": bool(task.recv),
        "must_be_apart": bool(task.send and task.recv) and not task.is_in_place,
    }
    steps: tuple[Step, ...]
    if question.everyone is None:
        slots = len(question.sends) + len(question.receives)
        steps = tuple(_swap(question))
        size = sum(nbytes for _, nbytes in question.receives)
        steps = (*steps, Ask(TMP, 0, size))
        return Plan(steps=steps, slots=slots, scratch=max(size, 1), **plan_fields)
    ranks, n = question.everyone, len(said)
    size, segment = n * len(ranks), context.channel_of(task.root).segment
    is_on_node = {*ranks}.issubset(segment.ranks) and n <= SAID_BYTES
    k = ranks.index(context.number)
    if len(ranks) == 1:
        return Plan(steps=(Ask(SAID, 0, n),), **plan_fields)
    own = slice(k * n, (k + 1) * n)
    if is_on_node:
        first = segment.said_at(segment.ranks.index(ranks.start))
        place = slice(first + own.start, first + own.stop)
        steps = (
            Enter(),
            ShortCopy(SAID, slice(0, n), NODE, place),
            Meet(segment.ranges(ranks), 0, 0),
            Ask(NODE, first, size),
        )
        return Plan(steps=steps, **plan_fields)
    offsets = tuple(range(0, size + 1, n))
    steps = (
        ShortCopy(SAID, slice(0, n), TMP, own),
        StartAllgatherv(question.is_local, TMP, offsets, 0),
        Await((0,), 0),
        Ask(TMP, 0, size),
    )
    return Plan(steps=steps, slots=1, scratch=size, **plan_fields)


def _swap(question: Question) -> list[Step]:
    """The steps of a question's single messages: receives, sends, and their end."""
    steps: list[Step] = []
    at = 0
    for source, nbytes in question.receives:
        steps.append(StartReceive(source, TMP, at, nbytes, len(steps)))
        at += nbytes
    for target, start, nbytes in question.sends:
        steps.append(StartSend(target, SAID, start, nbytes, len(steps)))
    slots = tuple(range(len(steps)))
    return [*steps, Await(slots, 0)] if slots else []
