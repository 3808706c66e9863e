"""The tuning that holds for a communicator: rank 0 reads it, and tells all others."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
from mpi4py import MPI

from ...choose.estimate import MessageCosts
from ...choose.tuning import Tuning, read, wanted
from ...schedules.hosts import Hosts

_log = logging.getLogger("isthmus")
_given: Tuning | None = None


@cache
def library() -> str:
    """The MPI library and its version, in a few words; also before MPI is started."""
    first = MPI.Get_library_version().replace("\0", "").split("\n")[0]
    return " ".join(first.split(",")[0].replace("Version:", "").split())


def here() -> tuple[str, str]:
    """By what a file is found: the MPI library, and this host."""
    return library(), socket.gethostname()


@contextmanager
def using(tuning: Tuning) -> Iterator[None]:
    """Give a tuning to the communicators that are first used in here, on all ranks."""
    global _given
    before, _given = _given, tuning
    try:
        yield
    finally:
        _given = before


def found() -> Tuning | str | None:
    """What this rank finds: a tuning, what is wrong with it, or none."""
    if _given is not None:
        return _given
    try:
        path = wanted(*here())
        if path is None:
            return None
        tuning = read(path)
    except ValueError as error:
        return str(error)
    except Exception as error:  # whatever it is, the others wait for an answer
        return f"the tuning file cannot be read: {error}"
    if tuning.origin.library != library():
        _warn(f"{path} was measured with {tuning.origin.library}, this is {library()}")
    return tuning


@cache
def _warn(words: str) -> None:
    """Say it once."""
    _log.warning(words)


def machine(tuning: Tuning | None, nodes: Sequence[int]) -> MessageCosts | None:
    """What messages cost on a communicator, if a tuning says so."""
    found = None if tuning is None else tuning.machine(len(set(nodes)))
    return None if found is None else shared(found, nodes)


def hosts(tuning: Tuning | None, comm: MPI.Intracomm) -> Hosts | None:
    """What messages of each rank cost, if a tuning knows the hosts of all."""
    if tuning is None or not tuning.hosts:
        return None
    own = tuning.hosts.get(socket.gethostname(), (np.nan, np.nan))
    rows = np.empty((comm.Get_size(), 2))
    comm.Allgather(np.array(own), rows)
    alphas, betas = rows.T.tolist()
    return None if np.isnan(rows).any() else Hosts(tuple(alphas), tuple(betas))


def node_ranks(comm: MPI.Intracomm, per_node: int = 0) -> list[int]:
    """The ranks of this rank's node, or so many of them that follow each other."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.Get_rank())
    found = np.empty(node.Get_size(), np.int64)
    node.Allgather(np.array([comm.Get_rank()]), found)
    first = node.Get_rank() - node.Get_rank() % per_node if per_node else 0
    node.Free()
    here: list[int] = found.tolist()
    return here[first : first + per_node] if per_node else here


def nodes_of(comm: MPI.Intracomm) -> tuple[int, ...]:
    """The node of every rank, as the number of the first rank there."""
    found = np.empty(comm.Get_size(), np.int64)
    comm.Allgather(np.array(node_ranks(comm)[:1]), found)
    return tuple(found.tolist())


#: on a network, as measured on labs with TCP
CHANGING = 1.25


def shared(machine: MessageCosts, nodes: Sequence[int]) -> MessageCosts:
    """The same where so many processes of a node share its way out."""
    found = Counter(nodes)
    if len(found) == 1:
        return machine
    return replace(machine, sharing=max(found.values()), changing=CHANGING)


#: bytes that Open MPI sends over TCP without asking, less what it says of them
EAGER = (64 << 10) - 1024


def eager(nodes: Sequence[int]) -> int:
    """Into what pieces long messages are cut; 0 for none.

    Open MPI asks the receiver before it sends a long message over TCP, and the answer
    waits behind what goes the other way: an exchange takes up to twice as long.
    """
    if MPI.get_vendor()[0] != "Open MPI" or len(set(nodes)) == 1:
        return 0
    return EAGER
