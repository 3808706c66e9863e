"""The collectives between groups: what reads the arguments of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..context.context_inter import InterContext
from ..memory import device
from . import tasks_exchange, tasks_rooted, tasks_sums
from .call import Call


def _on_host(op: str, read: Callable[..., Call]) -> Callable[..., Call]:
    """What combines or copies in the memory of the host."""

    def checked(c: InterContext, name: str, *args: Any) -> Call:
        device.check_on_host(op, *args[:2])
        return read(c, name, *args)

    return checked


OPERATIONS: dict[str, Callable[..., Call]] = {
    "Bcast": tasks_rooted.bcast,
    "Reduce": _on_host("Reduce", tasks_rooted.reduce),
    "Gather": _on_host("Gather", tasks_rooted.gather),
    "Gatherv": partial(tasks_rooted.gather, v="v"),
    "Scatter": _on_host("Scatter", tasks_rooted.scatter),
    "Scatterv": partial(tasks_rooted.scatter, v="v"),
    "Allreduce": _on_host("Allreduce", tasks_sums.allreduce),
    "Reduce_scatter": _on_host("Reduce_scatter", tasks_sums.reduce_scatter),
    "Reduce_scatter_block": _on_host(
        "Reduce_scatter_block", tasks_sums.reduce_scatter_block
    ),
    "Allgather": tasks_exchange.allgather,
    "Allgatherv": partial(tasks_exchange.allgather, v=True),
    "Alltoall": _on_host("Alltoall", tasks_exchange.alltoall),
    "Alltoallv": tasks_exchange.alltoallv,
    "Alltoallw": tasks_exchange.alltoallw,
    "Barrier": tasks_exchange.barrier,
}
