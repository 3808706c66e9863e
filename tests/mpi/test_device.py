"""Buffers on a device that are refused, or passed on to an MPI library that takes them.

There is no device here. The buffers only say that they are on one, and raise where they
are read; or their memory is the host's.
"""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
import standin
from between import OPERATIONS, Kit, call, names, refuses
from groups import pair
from isthmus import settings
from isthmus.mpi.buffers import on_devices
from isthmus.mpi.buffers.devices import arrays as device, staged
from support import FORMS, agree, done

pytestmark = pytest.mark.mpi(3)
REFUSED = "is in the memory of a device"
#: of the producer of an array that is passed on
STREAM = 5


class _Unreadable:
    """An array on a device."""

    def __len__(self):
        raise AssertionError("the buffer was read")

    __iter__ = __getitem__ = __dlpack__ = __len__


class Tensor(_Unreadable):
    """As torch and cupy have it."""

    def __dlpack_device__(self):
        return 2, 0

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("the buffer was read")


class Numba(_Unreadable):
    """With CUDA's interface only."""

    __cuda_array_interface__ = None


class Hip(_Unreadable):
    """With HIP's interface only."""

    __hip_array_interface__ = None


class Passed:
    """Says that it is on a device; its memory is the host's, so MPI can read it."""

    def __init__(self, array):
        found = {**array.__array_interface__, "version": 3, "stream": STREAM}
        self.__cuda_array_interface__ = found


@pytest.fixture
def refused(monkeypatch):
    monkeypatch.setenv(settings.DEVICE, "refuse")


@pytest.fixture
def direct(monkeypatch):
    """The MPI library takes memory of a device, as it seems; who copies from there."""
    yield standin.direct(monkeypatch)
    staged.device_of.cache_clear()


def on_device(args, make):
    """The same arguments with other buffers."""

    def swapped(x):
        if isinstance(x, np.ndarray):
            return make(x)
        return [make(x[0]), *x[1:]] if isinstance(x, list) else x

    return tuple(map(swapped, args[:2])) + args[2:]


def raises(comm, note, error, match, run):
    """A call raises on every rank."""
    try:
        run()
        found = "nothing was raised"
    except error as caught:
        found = str(caught)
    except Exception as other:
        found = repr(other)
    agree(comm, match in found, f"{note}: {found}")


def _kinds():
    return [lambda x: Tensor(), lambda x: Numba(), lambda x: Hip()]


@pytest.mark.parametrize("op", [x for x in OPERATIONS if x != "Barrier"])
def test_between_groups_it_is_refused_before_anything_is_sent(comm, refused, op):
    groups = pair(comm, 1)
    for k, name in enumerate(["auto", "native", names(op)[-1]]):
        case = call(Kit(groups), op, "some")
        args = on_device(case.args, _kinds()[k])
        for form in FORMS:
            note = f"{form} {name}"
            run = _doing(groups.ours, op, form, args, name)
            raises(comm, note, ValueError, REFUSED, run)
    case = call(Kit(groups), op, "some")
    done(groups.ours, op, "blocking", *case.args)
    agree(comm, not case.fault, case.fault)
    groups.free()


def _doing(comm, op, form, args, name):
    def run():
        if form == "blocking":
            getattr(comm, op)(*args, algorithm=name)
        elif form == "nonblocking":
            getattr(comm, "I" + op.lower())(*args, algorithm=name).Wait()
        else:
            request = getattr(comm, op + "_init")(*args, algorithm=name)
            request.Start()
            request.Wait()
            request.Free()

    return run


#: those of an Intracomm that are not ours too, by whether they have counts
INSIDE = {
    **dict.fromkeys(["Bcast", "Gather", "Scatter", "Allgather", "Alltoall"], False),
    **dict.fromkeys(["Gatherv", "Scatterv", "Allgatherv", "Alltoallv"], True),
    **dict.fromkeys(["Reduce", "Allreduce", "Scan", "Exscan"], False),
    **dict.fromkeys(["Reduce_scatter", "Reduce_scatter_block"], False),
}


def test_inside_a_group_it_is_refused_before_anything_is_sent(comm, refused):
    ours = isthmus.Intracomm(comm.Dup())
    for k, (op, v) in enumerate(INSIDE.items()):
        other = _kinds()[k % 3](None)
        spec = [other, [1, 1, 1]] if v else other
        args = (spec,) if op == "Bcast" else (spec, np.zeros(3))
        if k % 2 and len(args) > 1:
            args = args[::-1]
        for form in FORMS:
            run = _inside(ours, op, form, args)
            raises(comm, f"{form} {op}", ValueError, REFUSED, run)
    total = np.zeros(1)
    ours.Allreduce(sendbuf=np.ones(1), recvbuf=total)
    ours.Ibcast(buf=total).Wait()
    agree(comm, total[0] == 3)
    for name in ("native", "auto"):
        with pytest.raises(ValueError, match=REFUSED):
            ours.Bcast(Tensor(), algorithm=name)
    agree(comm, True)
    ours.Free()


def _inside(comm, op, form, args):
    name = {"blocking": op, "nonblocking": "I" + op.lower(), "persistent": op + "_init"}
    return lambda: getattr(comm, name[form])(*args)


@pytest.mark.parametrize("name", ["auto", "native"])
def test_in_the_checked_mode_all_ranks_hear_of_one_that_has_it(comm, monkeypatch, name):
    monkeypatch.setenv(settings.CHECK, "1")
    monkeypatch.setenv(settings.DEVICE, "refuse")
    groups = pair(comm, 1)
    for op in OPERATIONS[:-2]:
        case = call(Kit(groups), op, "some")
        args = case.args
        if op == "Barrier":
            continue
        if comm.rank == 2:
            args = on_device(args, lambda x: Tensor())
        for form in FORMS:
            run = _doing(groups.ours, op, form, args, name)
            raises(comm, f"{form} {op}", isthmus.MismatchError, REFUSED, run)
    groups.free()


@pytest.mark.parametrize("op", [x for x in OPERATIONS if x != "Barrier"])
def test_it_is_passed_on_where_that_is_all_there_is_to_do(comm, direct, op):
    """Sums are made on the host, and so is what passes through other memory."""
    groups, faults = pair(comm, 2), []
    for name in ("auto", "native", *names(op)[1:4]):
        if op == "Reduce_scatter_block" and name == "native":
            continue  # mpi4py compares with the wrong group's size
        for form in FORMS:
            if name == "native" and refuses(groups, op, form):
                continue
            case = call(Kit(groups), op, "some")
            args = on_device(case.args, Passed) if comm.rank != 1 else case.args
            before = direct.begun
            direct.after_streams.clear()
            _doing(groups.ours, op, form, args, name)()
            waited = {STREAM, device.ALL_STREAMS} & {*direct.after_streams}
            if bool(on_devices.among(args)) != bool(waited):
                faults.append(f"{name} {form}: its producer was not waited for")
            if case.fault:
                faults.append(f"{name} {form}: {case.fault}")
            if name == "native" and direct.begun > before:
                faults.append(f"native {form}: copied")
    if op in ("Alltoallv", "Bcast"):
        before = direct.begun
        args = on_device(call(Kit(groups), op, "some").args, Passed)
        getattr(groups.ours, op)(*args)
        faults += ["copied"] if direct.begun > before else []
    agree(comm, not faults, f"{len(faults)}: {faults[:1]}")
    groups.free()


def test_memory_that_the_host_can_read_is_taken(comm):
    groups = pair(comm, 1)
    case = call(Kit(groups), "Allreduce", "some")
    for kind in (1, 3, 11, 13):
        args = on_device(case.args, lambda x, kind=kind: _host(x, kind))
        case.clear()
        groups.ours.Allreduce(*args)
        agree(comm, not case.fault, f"{kind}: {case.fault}")
    groups.free()


def _host(array, kind):
    found = array.view(type("Array", (np.ndarray,), {}))
    type(found).__dlpack_device__ = lambda self: (kind, 0)
    return found


def test_the_library_is_asked_once(comm, monkeypatch):
    asked = []

    class Library:
        @staticmethod
        def MPIX_Query_cuda_support():
            asked.append(1)
            return 1

    on_devices.taken.cache_clear()
    monkeypatch.setattr(on_devices.ctypes, "CDLL", lambda path: Library)
    assert on_devices.taken() and on_devices.taken()
    assert asked == [1]
    on_devices.taken.cache_clear()


def test_all_ranks_do_the_same_with_it(comm, monkeypatch):
    """What rank 0 asks for; else direct, if the library says so on every rank."""
    found = []
    for asked, taken in ((None, [1, 1, 1]), (None, [1, 0, 1]), ("stage", [1, 1, 1])):
        monkeypatch.setattr(
            on_devices, "taken", lambda taken=taken: bool(taken[comm.rank])
        )
        monkeypatch.delenv(settings.DEVICE, raising=False)
        if asked and comm.rank == 0:
            monkeypatch.setenv(settings.DEVICE, asked)
        groups = pair(comm, 1)
        found.append(groups.ours._context().device)
        groups.free()
    agree(comm, found == ["direct", "stage", "stage"], str(found))


def test_a_wrong_setting_raises_on_all_ranks(comm, monkeypatch):
    if comm.rank == 0:
        monkeypatch.setenv(settings.DEVICE, "maybe")
    groups = pair(comm, 1)
    raises(comm, "", ValueError, "ISTHMUS_DEVICE=maybe", groups.ours.Barrier)
    groups.free()
