"""Helpers for tests that run on several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

#: for what does not depend on the MPI library, and takes its time
once = pytest.mark.skipif(
    MPI.get_vendor()[0] == "Open MPI", reason="as under any library: tested with MPICH"
)

FORMS = ("blocking", "nonblocking", "persistent")


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
