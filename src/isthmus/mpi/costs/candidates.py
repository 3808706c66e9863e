"""For which operations candidates are tried on a communicator."""

from __future__ import annotations

#: calls in which all ranks have a part: in others, those who have none cannot know how
#: many went ahead, and so not when to try
OPERATIONS = {
    "inter_allgather": "Allgather",
    "inter_allreduce": "Allreduce",
    "inter_reduce_scatter": "Reduce_scatter_block",
    "inter_alltoall": "Alltoall",
    "inter_barrier": "Barrier",
}
#: the collective whose trial decides for an operation
TRIED = {
    **{op: collective for collective, op in OPERATIONS.items()},
    "Allgatherv": "inter_allgather",
    "Reduce_scatter": "inter_reduce_scatter",
}
