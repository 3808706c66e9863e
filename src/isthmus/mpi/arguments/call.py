"""A call of the user: the operation, the form, the arguments, and their values.

Reading and checking arguments takes longer than a short collective. So a call only
takes the values of the arguments, in a few microseconds, and looks up the plan by the
values. The arguments are read if no plan has equal values, or if values do not describe
an argument completely.
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
from .readers import BLOCKING, INTERNAL, NONBLOCKING, PERSISTENT
from .values import OF_ONE_BUFFER, READING_ERRORS, DeviceArgument, values_of

if TYPE_CHECKING:
    from ..buffers.devices.staged import Copies
    from ..buffers.devices.transfer import Transfer
    from ..context.context import Context


class Call:
    """A call of an operation, before the call goes ahead."""

    #: packs data that lie in many runs
    packer: Packer = HOST_PACKER
    #: the operator of a reduction, with the datatype of the elements
    operators: Sequence[tuple[MPI.Op, MPI.Datatype]] = ()
    #: the key of the plan; None if the arguments must be read at every call
    values: Hashable = None
    #: the memory of each buffer among the arguments, known together with the values
    memories: Sequence[MPI.memory | None] = ()
    #: the task, once the arguments are read
    _task: Task | None = None
    #: the error in taking the values; None if there are values
    _error: BaseException | None = None
    #: the copies in host memory of arrays on devices, if any are staged
    copies: Copies | None = None
    #: for the MPI library's own call between copies: the communicator, and the request
    #: of a persistent one
    comm: MPI.Comm | None = None
    prequest: MPI.Prequest | None = None

    def __init__(
        self,
        context: Context,
        name: str,
        form: str,
        algorithm: str | None,
        args: tuple[Any, ...],
    ) -> None:
        """A call of the operation with MPI's name `name`, and the values of the call.

        An error in taking the values is kept for the reading of the arguments, because
        readers describe errors better, and the checked mode announces errors to all
        ranks.
        """
        self.context, self.name, self.form = context, name, form
        self.algorithm, self.args = algorithm, args
        try:
            self.values, self.memories = values_of(args, name, form, algorithm)
        except BaseException as error:
            self._error = error

    @classmethod
    def of_task(cls, context: Context, name: str, task: Task) -> Call:
        """A call of a task, without arguments to read and without values."""
        call = cls(context, name, INTERNAL, None, ())
        call.values, call._task = None, task
        return call

    @property
    def label(self) -> str:
        """The name of the communicator's method, for messages of errors."""
        if self.form in (BLOCKING, INTERNAL):
            return self.name
        return (
            f"I{self.name.lower()}" if self.form == NONBLOCKING else f"{self.name}_init"
        )

    @property
    def has_one_buffer(self) -> bool:
        """Whether one buffer is sent at the root and received elsewhere."""
        return self.name in OF_ONE_BUFFER

    # -- the arguments

    def _check_stage(self, algorithm: str) -> None:
        """Refuse the library's own call as a stage of a call that is not blocking.

        MPI wants the collectives of a communicator in one order on all ranks. Stages of
        several calls under way begin when their data have come, in any order.
        """
        if self.form in (NONBLOCKING, PERSISTENT) and algorithm.endswith("+library"):
            raise ValueError(
                f"algorithm {algorithm!r}: the stage 'library' is for blocking calls; "
                "name another stage, or none"
            )

    def task(self) -> Task:
        """The arguments, read and checked at the first use."""
        if self._task is None:
            if isinstance(self._error, DeviceArgument):
                self._stage_devices()
            context, error = self.context, self._error
            algorithm = context.asked_for(self.name, self.algorithm)
            is_native = algorithm == "native"
            is_signal = error is not None and not isinstance(error, READING_ERRORS)
            # most errors are left to the reader, which says what is wrong; mpi4py's own
            # call has no reader
            is_unread = is_native and context.checked
            if error is not None and (is_signal or is_unread):
                raise error
            if is_native:  # mpi4py's own call, with the arguments as passed
                native = NativeCall(self.name, is_raw=True)
                self._task = Task(algorithm=algorithm, native=native)
            else:
                self._check_stage(algorithm)
                reader = context.readers.get(self.name)
                reader = reader or reader_of(self.name, context.groups)
                self._task = reader(context, algorithm, self.form, *self.args)
        return self._task

    def read_again(self) -> Task:
        """The task for a changed context."""
        self._task = None
        return self.task()

    def buffers(self, plan: Plan) -> list[Any]:
        """The user's buffers for an operation with a plan.

        Two conditions are checked at every call, since they are no values: whether the
        receive buffer may be written, and whether the two buffers lie apart.
        """
        if plan.must_read or self.values is None:
            return self.arranged().memories
        memories = self.memories
        if len(memories) > 1:
            send, recv = memories[0], memories[1]
        else:  # the buffer of a Bcast, or no buffer
            send = recv = memories[0] if memories else None
        if recv is not None and plan.writes:
            if recv.readonly:
                self.task()  # raises the error
            elif plan.must_be_apart and send is not None and _overlap(send, recv):
                self.task()  # raises the error, unless the blocks themselves lie apart
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
        """The data of the task as buffers, with memory to stage data with gaps.

        A persistent call of the MPI library's was set up with the arguments: it has no
        buffers of ours, and packs and unpacks data with gaps itself.
        """
        task = self.task()
        if self.prequest is not None:
            return Arrangement(copies=self.copies)
        if task.operator is not None:
            self.operators = ((task.operator.op, task.operator.datatype),)
        arranged = arrange(task)
        arranged.copies = self.copies
        return arranged

    def _operator(self, operand: int) -> tuple[MPI.Op, MPI.Datatype]:
        """The operator among the arguments, with the datatype of a buffer argument."""
        op = next(x for x in self.args if isinstance(x, MPI.Op))
        spec = self.args[operand]
        if type(spec) is np.ndarray:
            return op, datatype_of(None, spec)
        items = spec if isinstance(spec, list | tuple) else (spec,)
        datatypes = [x for x in items[1:] if isinstance(x, MPI.Datatype | str)]
        return op, datatype_of(datatypes[0] if datatypes else None, items[0])

    # -- arrays on devices

    def _stage_devices(self) -> None:
        """Replace arrays on devices by host memory, unless the MPI library takes
        device memory."""
        from ..buffers.devices import calls

        context = self.context
        self._error = None
        if context.device == "refuse":
            on_devices.refuse()
        if context.device == "direct" and self._try_direct():
            return
        self.copies = copies = calls.copies_of(
            context, self.name, self.args, is_persistent=self.form == PERSISTENT
        )
        self.args, self._task = copies.args, None
        # of equal arguments in host memory the plan has no copies
        prefix = self.name, self.form, self.algorithm, "on device", copies.values
        try:
            self.values, self.memories = values_of(self.args, *prefix)
        except READING_ERRORS as error:
            self._error = error

    def _try_direct(self) -> bool:
        """Let the MPI library take device memory, after earlier work on the data.

        False if a step of the plan would touch the memory from the host.
        """
        from ..buffers.devices import calls, staged

        prefix = self.name, self.form, self.algorithm, "direct"
        try:
            self.values, self.memories = values_of(
                self.args, *prefix, may_be_device=True
            )
        except READING_ERRORS:
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
        element_bytes = 1 if task.operator is None else task.operator.extent
        numbers = calls.buffers_of(self.name, self.copies)
        return calls.with_copies(plan, self.copies, numbers, element_bytes)

    def begin_transfer(self, plan: Plan) -> Transfer:
        """Begin the copies from and to devices."""
        from ..buffers.devices.calls import buffers_of
        from ..buffers.devices.transfer import Transfer

        assert self.copies is not None and plan.transfers is not None
        numbers = buffers_of(self.name, self.copies)
        return Transfer(plan.transfers, self.copies, numbers)

    def start_native(self, plan: Plan, buffers: Sequence[Any]) -> MPI.Request:
        """Start the MPI library's own call, between copies from and to devices."""
        if self.prequest is not None:
            self.prequest.Start()
            return self.prequest
        assert plan.native is not None and self.comm is not None
        return plan.native.nonblocking(self.comm, self, buffers)()

    # -- the plan

    def plan(self) -> Plan:
        """The plan of the call: from the cache, by the values, or a new one."""
        if isinstance(self._error, DeviceArgument):
            self._stage_devices()
        if self.values is None:
            return self._new_plan()
        plans, values = self.context.plans, self.values
        try:  # `plans.find` inlined, since a function call would cost time in each call
            plan = plans[values]
            plans.move_to_end(values)
            return plan
        except KeyError:
            pass  # a new plan is made below, so that its errors have no context
        plans.keep(values, plan := self._new_plan())
        return plan

    def _new_plan(self) -> Plan:
        task, context = self.task(), self.context
        if task.question is not None:
            plan = plan_of_question(context, (self.values,), task, task.question)
        else:
            plan = plan_of(context, (self.values,), task)
        if self.form == BLOCKING:
            algorithm = context.asked_for(self.name, self.algorithm)
            warm_up = context.warm_up(self.name) if algorithm == "auto" else None
            plan = replace(plan, warm_up=warm_up)
        return self._with_copies(plan)

    def plan_for(self, asked: Plan, answer: bytes) -> Plan:
        """The plan that follows a plan with a question, by the answer."""
        key = (*asked.values, answer)
        if self.values is None:
            return self._plan_after_answers(key)
        return self.context.plans.find(key, lambda: self._plan_after_answers(key))

    def _plan_after_answers(self, key: tuple[Any, ...]) -> Plan:
        """The plan for a key of values and answers.

        The last answer may lead to a further question, so the answers are read again
        from the first question on.
        """
        task = self.task()
        question: Question | None = task.question
        for answer in key[1:]:
            assert question is not None
            reading = question.read(answer)
            if not isinstance(reading, Question):
                return self._with_copies(plan_of(self.context, key, task, reading))
            question = reading
        assert question is not None
        return plan_of_question(self.context, key, task, question)


def _overlap(first: MPI.memory, second: MPI.memory) -> bool:
    first_start, second_start = first.address, second.address
    first_end, second_end = first_start + first.nbytes, second_start + second.nbytes
    return first_start < second_end and second_start < first_end
