"""Helpers for tests that run on several ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


def agree(comm: MPI.Intracomm, ok: bool, note: str = "") -> None:
    """Assert that ok holds on every rank; if not, fail on all of them alike.

    A plain assert would let the ranks where it holds run on into a collective that
    the others never join; in a Hypothesis test it would also shrink differently.
    """
    answers = comm.allgather(None if ok else note or "not ok")
    bad = [f"rank {r}: {text}" for r, text in enumerate(answers) if text is not None]
    assert not bad, "; ".join(bad)
