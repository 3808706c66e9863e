"""Schedules without MPI: python schedule.py"""

import isthmus
from isthmus.schedules.ir import Recv

made = isthmus.schedule("inter_allgather", "segmented", p=6, q=2, ka=6, kb=6)
made.verify()  # raises if any rank would end with a wrong element


def elements(message):
    """Where the elements of a message lie."""
    return ", ".join(f"{x.buf}[{x.start}:{x.start + x.size}]" for x in message.data)


for i, round_ in enumerate(made.rank(0)):  # what rank 0 of group A does
    receive, send = round_.comm
    print(f"round {i}: {elements(receive)} comes from rank {receive.frm}, ", end="")
    print(f"{elements(send)} goes to rank {send.to}")

# The numbers 0 to 5 are group A, 6 and 7 are group B.
partners = [made.rank(i)[0].comm[0].frm for i in range(6)]
assert partners == [6, 6, 6, 7, 7, 7]

# Rank 0 receives every element of the other group exactly once.
received = [c for r in made.rank(0) for c in r.comm if isinstance(c, Recv)]
assert sum(span.size for c in received for span in c.data) == 12

# Counts of every rank, a stage by name.
isthmus.schedule("inter_allgatherv", "balanced+ring", a=[5, 0, 9], b=[2, 7]).verify()
isthmus.schedule("allgatherv", "bruck", counts=[3, 0, 4, 4, 9]).verify()
