"""Helpers for tests that run on several ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from isthmus.mpi.comm.family import Comm
from isthmus.mpi.context import inter as context_inter, intra as context_intra
from sampling import LONG

#: for what does not depend on the MPI library, and takes its time
once = pytest.mark.skipif(
    MPI.get_vendor()[0] == "Open MPI" and not LONG,
    reason="as under any library: tested with MPICH",
)

#: the same, tested with the other one
once_too = pytest.mark.skipif(
    MPI.get_vendor()[0] == "MPICH" and not LONG,
    reason="as under any library: tested with Open MPI",
)

#: where cases take turns, so that two libraries have different ones
TURN = int(MPI.get_vendor()[0] == "Open MPI")

FORMS = ("blocking", "nonblocking", "persistent")


def forms(
    comm: Any, op: str, args: tuple[Any, ...], name: str, blocking: int = 2
) -> Iterator[str]:
    """Two calls in each form, and so many blocking ones; between two, who iterates can
    look at the data."""
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


def has_persistent_collectives() -> bool:
    """Whether the MPI library has those of MPI 4."""
    try:
        MPI.COMM_SELF.Barrier_init().Free()
    except NotImplementedError:
        return False
    return True


def _missing(*_: Any, **__: Any) -> Any:
    raise NotImplementedError


#: every call that makes a persistent collective
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
    """As if the MPI library had none."""
    for name in _INITS:
        monkeypatch.setattr(Comm, name, _missing, raising=False)
    monkeypatch.setattr(isthmus.Intracomm, "_base", _OldIntracomm)
    monkeypatch.setattr(isthmus.Intercomm, "_base", _OldIntercomm)
    for module in (context_inter, context_intra):
        monkeypatch.setattr(module, "Native", _OldIntracomm)


def done(comm: MPI.Comm, op: str, form: str, *args: Any) -> None:
    """Do a collective in one of its forms."""
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
    """The words of the mismatch that a call raises, the same on all ranks."""
    try:
        make()
        text = ""
    except isthmus.MismatchError as error:
        text = str(error)
    every = comm.allgather(text)
    agree(comm, bool(text) and len(set(every)) == 1, str(every))
    return text


def agree(comm: MPI.Intracomm, ok: bool, note: str = "") -> None:
    """Assert that ok holds on every rank; if not, fail on all of them alike.

    A plain assert would let the ranks where it holds run on into a collective that
    the others never join; in a Hypothesis test it would also shrink differently.
    """
    everywhere = np.array(bool(ok))
    comm.Allreduce(MPI.IN_PLACE, everywhere, MPI.LAND)
    if everywhere:
        return
    answers = comm.allgather(None if ok else note or "not ok")
    bad = [f"rank {r}: {text}" for r, text in enumerate(answers) if text is not None]
    assert not bad, "; ".join(bad)
