"""What the cost functions say of a large exchange, in multiples of the lower bound."""

from isthmus.schedules import registry

collect = registry.find("allgatherv", "bruck").cost
SHAPES = [(64, 64, 1, 1), (100, 28, 1, 1), (100, 28, 1, 4), (512, 8, 1, 64)]

print(f"{'':26}" + "".join(f"{f'{p}, {q}, {ka}:{kb}':>15}" for p, q, ka, kb in SHAPES))
for entry in registry.algorithms("inter_allgather"):
    if entry.node_memory:
        continue
    row = f"{entry.name:26}"
    for p, q, ka, kb in SHAPES:
        transfer = entry.cost(p, q, ka << 20, kb << 20, 0, 1, collect)  # MiB
        row += f"{transfer / max(p * ka << 20, q * kb << 20):15.2f}"
    print(row)
