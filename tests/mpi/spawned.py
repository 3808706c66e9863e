"""What a spawned process does: exchange its rank with those of its parents."""

from __future__ import annotations

import numpy as np

import isthmus

parent = isthmus.Intracomm.Get_parent()
assert type(parent) is isthmus.Intercomm
recv = np.empty(parent.Get_remote_size(), "i4")
for name in ("auto", "segmented", "balanced"):
    parent.Allgather(np.array([parent.rank], "i4"), recv, algorithm=name)
    assert recv.tolist() == list(range(len(recv)))
parent.Disconnect()
