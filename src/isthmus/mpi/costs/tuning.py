"""The tuning of a communicator: rank 0 reads the file, and tells the other ranks."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
from mpi4py import MPI

from ...choose.tuning import Tuning, read, wanted
from ...schedules.hosts import Hosts

_log = logging.getLogger("isthmus")
#: the longest message that Open MPI sends over TCP without asking the receiver: its
#: eager limit less the headers
TCP_EAGER_BYTES = (64 << 10) - 1024
#: the tuning in place of a file, inside of `using`
_tuning_in_use: Tuning | None = None


@cache
def library() -> str:
    """The MPI library and its version, in a few words; also before MPI is started."""
    first_line = MPI.Get_library_version().replace("\0", "").split("\n")[0]
    return " ".join(first_line.split(",")[0].replace("Version:", "").split())


def library_and_host() -> tuple[str, str]:
    """The MPI library and the host, by which a tuning file is looked up."""
    return library(), socket.gethostname()


@contextmanager
def using(tuning: Tuning) -> Iterator[None]:
    """Use a tuning for communicators with their first call inside; on all ranks."""
    global _tuning_in_use
    outer, _tuning_in_use = _tuning_in_use, tuning
    try:
        yield
    finally:
        _tuning_in_use = outer


def load_tuning() -> Tuning | str | None:
    """The tuning for this rank, if any, or the error in the file.

    Errors are returned, since the other ranks wait for an answer.
    """
    if _tuning_in_use is not None:
        return _tuning_in_use
    try:
        path = wanted(*library_and_host())
        if path is None:
            return None
        tuning = read(path)
    except ValueError as error:
        return str(error)
    except Exception as error:
        return f"the tuning file cannot be read: {error}"
    if tuning.origin.library != library():
        _warn(f"{path} was measured with {tuning.origin.library}, this is {library()}")
    return tuning


@cache
def _warn(message: str) -> None:
    """Log a warning once in this process."""
    _log.warning(message)


def host_costs(tuning: Tuning | None, comm: MPI.Intracomm) -> Hosts | None:
    """The costs of each rank's host, if a tuning has the hosts of all ranks."""
    if tuning is None or not tuning.hosts:
        return None
    own = tuning.hosts.get(socket.gethostname(), (np.nan, np.nan))
    rows = np.empty((comm.Get_size(), 2))
    comm.Allgather(np.array(own), rows)
    alphas, betas = rows.T.tolist()
    return None if np.isnan(rows).any() else Hosts(tuple(alphas), tuple(betas))


def node_ranks(comm: MPI.Intracomm, per_node: int = 0) -> list[int]:
    """The ranks of this rank's node; with `per_node`, of a part of the node.

    A part has `per_node` successive ranks, as if it were a node.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.Get_rank())
    table = np.empty(node.Get_size(), np.int64)
    node.Allgather(np.array([comm.Get_rank()]), table)
    start = node.Get_rank() - node.Get_rank() % per_node if per_node else 0
    node.Free()
    ranks: list[int] = table.tolist()
    return ranks[start : start + per_node] if per_node else ranks


def first_ranks(comm: MPI.Intracomm) -> tuple[int, ...]:
    """The node of each rank, as the number of the first rank there."""
    nodes = np.empty(comm.Get_size(), np.int64)
    comm.Allgather(np.array(node_ranks(comm)[:1]), nodes)
    return tuple(nodes.tolist())


def message_piece_bytes(nodes: Sequence[int]) -> int:
    """The size of pieces into which long messages are cut; 0 for uncut messages.

    Messages are cut for Open MPI over TCP, since the library asks the receiver before a
    long message, and the answer waits behind data in the opposite direction: an
    exchange takes up to twice as long.
    """
    if MPI.get_vendor()[0] != "Open MPI" or len(set(nodes)) == 1:
        return 0
    return TCP_EAGER_BYTES
