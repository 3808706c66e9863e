"""Helpers for tests that run on several ranks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from isthmus.mpi.comm.family import Comm
from isthmus.mpi.context import inter as context_inter, intra as context_intra
from sampling import LONG

#: for long tests that do not depend on the MPI library, run with MPICH
once = pytest.mark.skipif(
    MPI.get_vendor()[0] == "Open MPI" and not LONG,
    reason="as under any library: tested with MPICH",
)

#: for long tests that do not depend on the MPI library, run with Open MPI
once_too = pytest.mark.skipif(
    MPI.get_vendor()[0] == "MPICH" and not LONG,
    reason="as under any library: tested with Open MPI",
)

#: the number of the MPI library, so that two libraries run different cases
TURN = int(MPI.get_vendor()[0] == "Open MPI")

FORMS = ("blocking", "nonblocking", "persistent")


def forms(
    comm: Any, op: str, args: tuple[Any, ...], name: str, blocking: int = 2
) -> Iterator[str]:
    """Call an operation in each form, twice, and `blocking` times in the blocking form.

    A generator, so that the caller can look at the data after each call.
    """
    for turn in range(blocking):
        getattr(comm, op)(*args, algorithm=name)
        yield f"blocking, turn {turn}"
    for turn in range(2):
        getattr(comm, "I" + op.lower())(*args, algorithm=name).Wait()
        yield f"nonblocking, turn {turn}"
    request = getattr(comm, op + "_init")(*args, algorithm=name)
    for turn in range(2):
        request.Start()
        request.Wait()
        yield f"persistent, turn {turn}"
    request.Free()


#: whether mpi4py's own persistent collectives give what they should; MPICH before 4.2
#: receives old data, or ends the program (docs/libraries.md)
HAS_SOUND_PERSISTENT = MPI.Get_version() >= (4, 0) and not (
    ("MPICH",) < MPI.get_vendor() < ("MPICH", (4, 2, 0))
)


def largest_handle() -> int:
    """The largest number among handles of new communicators.

    It grows with the communicators that are left behind. MPI libraries give numbers
    again, so many communicators are made to use up those that are free.
    """
    gc.collect()
    duplicates = [MPI.COMM_SELF.Dup() for _ in range(64)]
    largest = max(x.py2f() & 0xFFFFFF for x in duplicates)  # MPICH: without the kind
    for duplicate in duplicates:
        duplicate.Free()
    return largest


def has_persistent_collectives() -> bool:
    """Whether the MPI library has the persistent collectives of MPI 4."""
    try:
        MPI.COMM_SELF.Barrier_init().Free()
    except NotImplementedError:
        return False
    return True


def opened_port(comm: MPI.Intracomm) -> str:
    """A port of rank 0, for all; skips the test where the MPI library opens none."""
    port = None
    if comm.rank == 0:
        with suppress(MPI.Exception):
            port = MPI.Open_port()
    port = comm.bcast(port, 0)
    if port is None:
        pytest.skip("this MPI library opens no port")
    return str(port)


def _missing(*_: Any, **__: Any) -> Any:
    raise NotImplementedError


#: all methods that make a persistent collective
_INITS = dict.fromkeys(
    (x for x in dir(MPI.Comm) if x.endswith("_init") and "send" not in x.lower()),
    _missing,
)
del _INITS["Recv_init"], _INITS["Precv_init"]
_OldIntercomm = type("_OldIntercomm", (MPI.Intercomm,), _INITS)


class _OldIntracomm(MPI.Intracomm):
    """A communicator of a library before MPI 4."""

    locals().update(_INITS)

    def Create_intercomm(self, *args: Any) -> MPI.Intercomm:
        return _OldIntercomm(super().Create_intercomm(*args))


def without_persistent_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the MPI library look like one without persistent collectives."""
    for name in _INITS:
        monkeypatch.setattr(Comm, name, _missing, raising=False)
    monkeypatch.setattr(context_intra.IntraContext, "native_class", _OldIntracomm)
    monkeypatch.setattr(context_inter.InterContext, "native_class", _OldIntercomm)
    for module in (context_inter, context_intra):
        monkeypatch.setattr(module, "NativeIntracomm", _OldIntracomm)


def done(comm: MPI.Comm, op: str, form: str, *args: Any) -> None:
    """Call a collective in a form, and wait for the end."""
    if form == "blocking":
        getattr(comm, op)(*args)
    elif form == "nonblocking":
        getattr(comm, "I" + op.lower())(*args).Wait()
    else:
        request = getattr(comm, op + "_init")(*args)
        request.Start()
        request.Wait()
        request.Free()


def raised_alike(comm: MPI.Intracomm, make: Callable[[], Any]) -> str:
    """The text of the `MismatchError` of a call; fails unless equal on all ranks."""
    try:
        make()
        text = ""
    except isthmus.MismatchError as error:
        text = str(error)
    texts = comm.allgather(text)
    agree(comm, bool(text) and len(set(texts)) == 1, str(texts))
    return text


def agree(comm: MPI.Intracomm, ok: bool, note: str = "") -> None:
    """Assert that ok holds on every rank; otherwise fail on all ranks alike.

    After a plain assert, ranks where ok holds would run on into a collective that the
    failed ranks never join; a Hypothesis test would also shrink differently on ranks.
    """
    everywhere = np.array(bool(ok))
    comm.Allreduce(MPI.IN_PLACE, everywhere, MPI.LAND)
    if everywhere:
        return
    answers = comm.allgather(None if ok else note or "not ok")
    bad = [f"rank {r}: {text}" for r, text in enumerate(answers) if text is not None]
    assert not bad, "; ".join(bad)
