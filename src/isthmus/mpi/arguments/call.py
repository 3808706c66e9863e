"""One call of the user: the operation, the form, the arguments, and their values.

The values are found at every call, in a few microseconds, and a plan by them. All else
is read where there is no plan for the values, or where they do not say enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..buffers import on_devices
from ..buffers.datatypes import datatype_of
from ..buffers.selection import HOST_PACKER, Packer
from ..plan.arrange import Arrangement, arrange
from ..plan.native import NativeCall
from ..plan.plan import Plan
from ..plan.planning import plan_of, plan_of_question
from ..plan.question import Question
from ..plan.task import Task
from .of_record import reader_of
from .readers import BLOCKING, NONBLOCKING, OURS, PERSISTENT
from .values import OnDevice, values_of

if TYPE_CHECKING:
    from ..buffers.devices.staged import Copies
    from ..buffers.devices.transfer import Transfer
    from ..context.context import Context


class Call:
    """A call of an operation, before it goes ahead."""

    #: who packs what lies in many runs
    packer: Packer = HOST_PACKER
    #: what combines elements, and the types of these
    operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()
    values: Hashable = None
    memories: Sequence[MPI.memory | None] = ()
    _task: Task | None = None
    #: why there are no values
    _problem: BaseException | None = None
    #: the host memory that stands for arrays on devices
    copies: Copies | None = None
    #: the communicator on which the MPI library's own call is made, and its request
    comm: Any = None
    prequest: MPI.Prequest | None = None

    def __init__(
        self,
        context: Context,
        name: str,
        form: str,
        algorithm: str | None,
        args: tuple[Any, ...],
    ) -> None:
        """Of an operation by MPI's name; where the values do not say all, there are
        none."""
        self.context, self.name, self.form = context, name, form
        self.algorithm, self.args = algorithm, args
        try:
            self.values, self.memories = values_of(args, name, form, algorithm)
        except BaseException as error:  # what is wrong is raised when it is read
            self._problem = error

    @classmethod
    def of_task(cls, context: Context, name: str, task: Task) -> Call:
        """A call of a task that was made without arguments."""
        call = cls(context, name, OURS, None, ())
        call.values, call._task = None, task
        return call

    @property
    def label(self) -> str:
        """The name of the method that was called."""
        if self.form in (BLOCKING, OURS):
            return self.name
        return (
            f"I{self.name.lower()}" if self.form == NONBLOCKING else f"{self.name}_init"
        )

    @property
    def has_one_buffer(self) -> bool:
        """Whether the first argument alone is a buffer, to send from or to receive
        into."""
        return self.name == "Bcast"

    # -- what was passed

    def task(self) -> Task:
        """The arguments, read and checked; what is wrong with them is raised."""
        if self._task is None:
            if isinstance(self._problem, OnDevice):
                self._stage_devices()
            context, problem = self.context, self._problem
            name = context.asked_for(self.name, self.algorithm)
            is_signal = not isinstance(problem, Exception | None)
            is_raised = name == "native" and context.checked
            if problem is not None and (is_signal or is_raised):
                raise problem
            if name == "native":  # the user wants mpi4py's own call, as it is
                self._task = Task(
                    algorithm=name, native=NativeCall(self.name, is_raw=True)
                )
            else:
                reader = context.readers.get(self.name)
                reader = reader or reader_of(self.name, context.groups)
                self._task = reader(context, name, self.form, *self.args)
        return self._task

    def read_again(self) -> Task:
        """The arguments, read for a context that has changed."""
        self._task = None
        return self.task()

    def buffers(self, plan: Plan) -> list[Any]:
        """The buffers of an operation by a plan, as far as the user passed them.

        The plan says what must be checked again although the values are known: whether
        the receive buffer may be written, and whether the two lie apart.
        """
        if plan.must_read or self.values is None:
            return self.arranged().memories
        memories = self.memories
        if len(memories) > 1:
            send, recv = memories[0], memories[1]
        else:  # the one buffer of a Bcast, or none
            send = recv = memories[0] if memories else None
        if recv is not None and plan.writes:
            if recv.readonly:
                self.task()  # which says what is wrong
            elif plan.is_apart and send is not None and _overlap(send, recv):
                self.task()  # the same; but the blocks themselves may lie apart
        if plan.operand >= 0:
            self.operators = (self._operator(plan.operand),)
        return [
            None if send is None else memoryview(send),  # type: ignore[arg-type]
            None if recv is None else memoryview(recv),  # type: ignore[arg-type]
            None,
            None,
            None,
        ]

    def arranged(self) -> Arrangement:
        """The data of the task as buffers, with memory of our own for what has gaps."""
        task = self.task()
        if task.operator is not None:
            self.operators = ((task.operator.op, task.operator.datatype),)
        arranged = arrange(task)
        arranged.copies = self.copies
        return arranged

    def _operator(self, operand: int) -> tuple[MPI.Op, MPI.Datatype]:
        op = next(x for x in self.args if isinstance(x, MPI.Op))
        spec = self.args[operand]
        if type(spec) is np.ndarray:
            return op, datatype_of(None, spec)
        items = spec if isinstance(spec, list | tuple) else (spec,)
        kinds = [x for x in items[1:] if isinstance(x, MPI.Datatype | str)]
        return op, datatype_of(kinds[0] if kinds else None, items[0])

    # -- arrays on devices

    def _stage_devices(self) -> None:
        """Put host memory in the place of arrays on devices, unless the MPI library
        takes these."""
        from ..buffers.devices import calls

        context, args = self.context, self.args
        self._problem = None
        if context.device == "refuse":
            on_devices.refuse()
        if context.device == "direct" and self._is_direct():
            return
        is_persistent = self.form == PERSISTENT
        how = {"is_persistent": is_persistent}
        self.copies = copies = calls.copies_of(context, self.name, args, **how)
        self.args, self._task = copies.args, None
        try:
            first = self.name, self.form, self.algorithm, "on device", copies.values
            self.values, self.memories = values_of(self.args, *first)
        except Exception as error:
            self._problem = error

    def _is_direct(self) -> bool:
        """Whether the MPI library can take the arrays as they are, once their data are
        there."""
        from ..buffers.devices import calls, staged

        first = self.name, self.form, self.algorithm, "direct"
        try:
            self.values, self.memories = values_of(
                self.args, *first, may_be_device=True
            )
        except Exception:
            return False
        if not calls.is_direct(self.plan()):
            self.values, self._task = None, None
            return False
        staged.wait_for_producers(self.args)
        return True

    def _with_copies(self, plan: Plan) -> Plan:
        """The plan with copies from and to devices beside its messages."""
        from ..buffers.devices import calls

        if self.copies is None or plan.asks:
            return plan
        task = self.task()
        element = 1 if task.operator is None else task.operator.extent
        numbers = calls.buffers_of(self.name, self.copies)
        return calls.with_copies(plan, self.copies, numbers, element)

    def begin_transfer(self, plan: Plan) -> Transfer:
        """The copies of a call that is about to begin."""
        from ..buffers.devices.calls import buffers_of
        from ..buffers.devices.transfer import Transfer

        assert self.copies is not None and plan.transfers is not None
        numbers = buffers_of(self.name, self.copies)
        return Transfer(plan.transfers, self.copies, numbers)

    def start_native(self, plan: Plan, buffers: Sequence[Any]) -> MPI.Request:
        """Start the MPI library's own call, between copies of ours."""
        if self.prequest is not None:
            self.prequest.Start()
            return self.prequest
        assert plan.native is not None
        return plan.native.nonblocking(self.comm, self, buffers)

    # -- its plan

    def plan(self) -> Plan:
        """The plan of the call: kept for its values, or made now."""
        if isinstance(self._problem, OnDevice):
            self._stage_devices()
        if self.values is None:
            return self._made()
        plans, values = self.context.plans, self.values
        try:  # as `plans.find`, without a call of that in every call
            plan = plans[values]
            plans.move_to_end(values)
            return plan
        except KeyError:  # not the context of what making the plan may raise
            pass
        plans.keep(values, plan := self._made())
        return plan

    def plan_anew(self) -> Plan:
        """The plan of the call, where there is more to choose from than before."""
        self.read_again()
        return self.plan()

    def _made(self) -> Plan:
        task, context = self.task(), self.context
        if task.question is not None:
            plan = plan_of_question(context, (self.values,), task, task.question)
        else:
            plan = plan_of(context, (self.values,), task)
        if self.form == BLOCKING:
            name = context.asked_for(self.name, self.algorithm)
            warm_up = context.warm_up(self.name) if name == "auto" else None
            plan = replace(plan, warm_up=warm_up)
        return self._with_copies(plan)

    def plan_for(self, asked: Plan, answer: bytes) -> Plan:
        """The plan that goes on after one that has asked, by what was answered."""
        answers = (*asked.values, answer)
        if self.values is None:
            return self._answered(answers)
        return self.context.plans.find(answers, lambda: self._answered(answers))

    def _answered(self, answers: tuple[Any, ...]) -> Plan:
        """The plan for the values and some answers, the last of which may lead to
        another question."""
        task = self.task()
        question: Question | None = task.question
        for answer in answers[1:]:
            assert question is not None
            said = question.read(answer)
            if not isinstance(said, Question):
                return self._with_copies(plan_of(self.context, answers, task, said))
            question = said
        assert question is not None
        return plan_of_question(self.context, answers, task, question)


def _overlap(x: MPI.memory, y: MPI.memory) -> bool:
    a, b = x.address, y.address
    return a < b + y.nbytes and b < a + x.nbytes
