"""Groups by host name, one file per distinct name, a hierarchy: each in one call."""

import socket

from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD

node = isthmus.split(world, socket.gethostname())
total = node.allreduce(world.rank)
lines = []
if node.is_leader:
    lines.append(f"node {node.id} of {node.groups}: {node.size} ranks, sum {total}")

names = [f"part{world.rank // 2}", "common"]
for name, place in zip(names, isthmus.rank_items(world, names), strict=True):
    if place.rank == 0:
        lines.append(f"rank {world.rank} creates {name} for {place.size} ranks")

levels = isthmus.hierarchy(world, [f"rack{world.rank // 4}", f"node{world.rank // 2}"])
value = {"from": world.rank}
for level in levels:
    if level.leaders:
        value = level.leaders.bcast(value)
value = levels[-1].group.bcast(value)
lines.append(f"rank {world.rank} has {value} by {len(levels)} levels")

every = world.gather("\n".join(lines))
if world.rank == 0:
    print("\n".join(every))
