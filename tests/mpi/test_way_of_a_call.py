"""How many functions and files of ours a call passes: what a reader must follow."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus
from groups import pair
from support import agree

pytestmark = pytest.mark.mpi(4)
_PACKAGE = str(Path(isthmus.__file__).parent)
#: looks that a rank takes while it waits for others, of which it may need any number
_WAITING = {"_look_around", "_step_kind", "advance_others", "check", "gone", "_go"}
_WAITING |= {"failed_elsewhere", "check_lost", "_operations", "_check_limit", "_run"}
_WAITING |= {"_meet", "is_free", "not_ended", "_requests", "_do_rarely", "is_held"}


def way(call):
    """The functions of ours that a call enters, with how often, and their files."""
    entered = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_PACKAGE):
            entered.append((code.co_filename, code.co_name, code.co_firstlineno))

    gc.disable()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    once = {x for x in entered if x[1] in _WAITING}
    others = [x for x in entered if x not in once]
    return len(others) + len(once), len({file for file, *_ in entered})


def slices(k, n):
    """Parts of arrays at changing places, to send from and to receive into."""
    return np.ones(64)[k : k + n], np.zeros(64)[k : k + 2 * n]


CALLS = {
    # blocking in the memory of the node, and by messages; then nonblocking ones
    "Allreduce": (
        40,
        12,
        lambda c, x, y: c.Allreduce(x, y[:4], algorithm="node_aware"),
    ),
    "Allgather": (36, 11, lambda c, x, y: c.Allgather(x, y, algorithm="node_aware")),
    "by messages": (24, 11, lambda c, x, y: c.Allgather(x, y, algorithm="direct")),
    "Iallreduce": (50, 14, lambda c, x, y: c.Iallreduce(x, y[:4]).Wait()),
    "Iallgatherv": (64, 13, lambda c, x, y: c.Iallgatherv(x, [y, [4, 4]]).Wait()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_known_passes_few_functions(comm, name):
    most, most_files, call = CALLS[name]
    groups = pair(comm, 2)
    for k in range(2):
        call(groups.ours, *slices(k, 4))
    found = [way(lambda k=k: call(groups.ours, *slices(k, 4))) for k in range(2, 12)]
    functions, files = min(found)  # a rank that waits passes more
    agree(comm, functions <= most and files <= most_files, f"{name}: {found}")
    groups.free()


def test_a_first_call_passes_few_functions(comm):
    """But for what is made once for a communicator."""
    groups = pair(comm, 2)
    groups.ours.Allgather(*slices(0, 4), algorithm="node_aware")
    x, y = slices(0, 4)
    found = way(lambda: groups.ours.Allreduce(x, y[:4], algorithm="node_aware"))
    agree(comm, found[0] <= 600 and found[1] <= 40, str(found))
    groups.free()
