"""How many functions and files of ours a call passes: what a reader must follow."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus
from groups import pair
from support import agree

pytestmark = pytest.mark.mpi(4)
_PACKAGE = str(Path(isthmus.__file__).parent)
#: what only a rank enters that happens to wait for others
_WAITING = {"_rest", "_check_and_advance_others", "advance_others", "check", "gone"}
_WAITING |= {"not_ended", "failed_elsewhere", "check_lost", "_operations"}
_WAITING |= {"_check_limit", "is_held"}


def way(call):
    """The functions of ours that a call enters, and how many files they are in."""
    entered = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_PACKAGE):
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    # neither comprehensions, which are functions in some versions of Python, nor
    # modules that are imported
    named = {x for x in entered if x[1] not in _WAITING and not x[1].startswith("<")}
    return len(named), len({file for file, *_ in named})


def test_what_only_a_rank_that_waits_enters_is_there():
    """A function that has another name now would be counted."""
    texts = [path.read_text() for path in Path(_PACKAGE).rglob("*.py")]
    gone = {x for x in _WAITING if not any(f"def {x}(" in text for text in texts)}
    assert not gone


def slices(k, n):
    """Parts of arrays at changing places, to send from and to receive into."""
    return np.ones(64)[k : k + n], np.zeros(64)[k : k + 2 * n]


CALLS = {
    # blocking in the memory of the node, and by messages; then nonblocking ones
    "Allreduce": (
        30,
        9,
        lambda c, x, y: c.Allreduce(x, y[:4], algorithm="node_aware"),
    ),
    "Allgather": (30, 9, lambda c, x, y: c.Allgather(x, y, algorithm="node_aware")),
    "by messages": (24, 9, lambda c, x, y: c.Allgather(x, y, algorithm="direct")),
    "Iallreduce": (38, 11, lambda c, x, y: c.Iallreduce(x, y[:4]).Wait()),
    "Iallgatherv": (50, 12, lambda c, x, y: c.Iallgatherv(x, [y, [4, 4]]).Wait()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_known_passes_few_functions(comm, name):
    most, most_files, call = CALLS[name]
    groups = pair(comm, 2)
    call(groups.ours, *slices(0, 4))
    ways = [way(lambda k=k: call(groups.ours, *slices(k, 4))) for k in range(1, 12)]
    functions, files = min(ways)  # a rank that waits passes more
    agree(comm, functions <= most and files <= most_files, f"{name}: {ways}")
    groups.free()


def test_a_first_call_passes_few_functions(comm):
    """But for what is made once for a communicator, and for modules that are imported.

    Of a size that no other test has, as plans are kept. Of the files, about half are of
    the runtime, and the others of the record, the algorithm, its choice and the form,
    which are read once for a size. Under Open MPI there is one more, in which a rank
    looks whether a process was lost.
    """
    groups = pair(comm, 2)
    groups.ours.Allgather(*slices(0, 4), algorithm="node_aware")
    x, y = np.ones(37), np.empty(37)
    passed = way(lambda: groups.ours.Allreduce(x, y, algorithm="node_aware"))
    agree(comm, passed[0] <= 190 and passed[1] <= 35, str(passed))
    groups.free()
