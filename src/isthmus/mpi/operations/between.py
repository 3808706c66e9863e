"""The collectives between groups: what reads the arguments of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from . import tasks_exchange, tasks_rooted, tasks_sums
from .call import Call

OPERATIONS: dict[str, Callable[..., Call]] = {
    "Bcast": tasks_rooted.bcast,
    "Reduce": tasks_rooted.reduce,
    "Gather": tasks_rooted.gather,
    "Gatherv": partial(tasks_rooted.gather, v="v"),
    "Scatter": tasks_rooted.scatter,
    "Scatterv": partial(tasks_rooted.scatter, v="v"),
    "Allreduce": tasks_sums.allreduce,
    "Reduce_scatter": tasks_sums.reduce_scatter,
    "Reduce_scatter_block": tasks_sums.reduce_scatter_block,
    "Allgather": tasks_exchange.allgather,
    "Allgatherv": partial(tasks_exchange.allgather, v=True),
    "Alltoall": tasks_exchange.alltoall,
    "Alltoallv": tasks_exchange.alltoallv,
    "Alltoallw": tasks_exchange.alltoallw,
    "Barrier": tasks_exchange.barrier,
}
