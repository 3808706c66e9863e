"""How many functions and files of ours a call passes: what a reader must follow."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus
from groups import pair
from support import agree

pytestmark = pytest.mark.mpi(8)
_PACKAGE = str(Path(isthmus.__file__).parent)
#: the functions that only a rank enters that happens to wait for others
_RESTING = {("mpi/plan/operation.py", "_rest"), ("mpi/context/channel.py", "check")}


def way(call):
    """The number of functions of ours that a call enters, and of their files.

    Without those that a waiting rank enters: how often one waits is chance.
    """
    entered, resting = set(), []

    def note(frame, event, _):
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(_PACKAGE):
            return
        file = code.co_filename.removeprefix(_PACKAGE + "/")
        if (file, code.co_name) in _RESTING:
            resting.append(frame) if event == "call" else resting.pop()
        elif event == "call" and not resting:
            entered.add((file, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    # neither comprehensions, which are functions in some versions of Python, nor
    # modules that are imported
    named = {x for x in entered if not x[1].startswith("<")}
    return len(named), len({file for file, *_ in named})


@pytest.mark.parametrize(("file", "name"), sorted(_RESTING))
def test_what_only_a_rank_that_waits_enters_is_there(file, name):
    """A function that has another name now would be counted."""
    assert f"def {name}(" in Path(_PACKAGE, file).read_text()


def slices(k, n):
    """Parts of arrays at changing places, to send from and to receive into."""
    return np.ones(64)[k : k + n], np.zeros(64)[k : k + 4 * n]


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
    "Iallgatherv": (50, 12, lambda c, x, y: c.Iallgatherv(x, [y, [4] * 4]).Wait()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_known_passes_few_functions(comm, name):
    most, most_files, call = CALLS[name]
    groups = pair(comm, 4)
    call(groups.ours, *slices(0, 4))
    ways = [way(lambda k=k: call(groups.ours, *slices(k, 4))) for k in range(1, 12)]
    functions, files = min(ways)
    agree(comm, functions <= most and files <= most_files, f"{name}: {ways}")
    groups.free()


def test_a_first_call_passes_few_functions(comm):
    """But for what is made once for a communicator, and for modules that are imported.

    Of sizes that no other test has, as plans are kept. Of the files, about half are of
    the runtime, and the others of the record, the algorithm, its choice and the form,
    which are read once for a size.
    """
    groups = pair(comm, 4)
    groups.ours.Allgather(*slices(0, 4), algorithm="node_aware")
    ways = []
    for n in (37, 38, 39, 41, 43):
        x, y = np.ones(n), np.empty(n)
        ways.append(
            way(lambda x=x, y=y: groups.ours.Allreduce(x, y, algorithm="node_aware"))
        )
    functions, files = min(ways)
    agree(comm, functions <= 190 and files <= 35, str(ways))
    groups.free()
