"""The algorithms: pure functions of what one rank does, one file per collective."""

from . import (
    allgatherv,
    allgatherv_blocked,
    allgatherv_circulant,
    allgatherv_nodes,
    bcast,
    inter_allgatherv,
    inter_allgatherv_roots,
    inter_allgatherv_teams,
    inter_bcast,
    inter_gatherv,
    inter_reduce,
    inter_scatterv,
    reduce,
)

__all__ = [
    "allgatherv",
    "allgatherv_blocked",
    "allgatherv_circulant",
    "allgatherv_nodes",
    "bcast",
    "inter_allgatherv",
    "inter_allgatherv_roots",
    "inter_allgatherv_teams",
    "inter_bcast",
    "inter_gatherv",
    "inter_reduce",
    "inter_scatterv",
    "reduce",
]
