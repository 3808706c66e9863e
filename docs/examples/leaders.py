"""An algorithm that uses the memory of nodes, without MPI: python leaders.py"""

import isthmus
from isthmus.schedules.ir import Copy, Recv, Round, Send
from isthmus.schedules.registry import algorithm


@algorithm("allgatherv", paper="the documentation of isthmus", node_memory=True)
def leaders(p, r, blocks, nodes=()):
    """Ranks bring their blocks to their node, whose leaders swap them; all take all.

    Two meetings, and between them one round of a message from each node to each.
    """
    nodes = nodes or (0,) * p
    near, first = blocks.within("node"), nodes.index

    def blocks_of(node):
        return tuple(near[i][0] for i in range(p) if nodes[i] == node)

    yield Round(then=(Copy(blocks[r][0], near[r][0]),), meet=True)
    if r == first(nodes[r]):
        every = list(dict.fromkeys(nodes))
        x = every.index(nodes[r])
        after = every[x + 1 :] + every[:x]  # so that no two send to one at a time
        receives = (Recv(first(node), blocks_of(node)) for node in reversed(after))
        sends = (Send(first(node), blocks_of(nodes[r])) for node in after)
        yield Round((*receives, *sends))
    yield Round(meet=True)
    yield Round(then=tuple(Copy(near[i][0], blocks[i][0]) for i in range(p) if i != r))


if __name__ == "__main__":
    counts = [3, 0, 5, 2, 7]
    for nodes in ([0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 2, 1, 0]):
        made = isthmus.schedule("allgatherv", "leaders", counts=counts, nodes=nodes)
        made.verify()
        sent = [0] * 5
        for r in range(5):
            messages = [c for round_ in made.rank(r) for c in round_.comm]
            sent[r] = sum(isinstance(c, Send) for c in messages)
        print(f"nodes {nodes}: right; ranks send {sent} messages")
