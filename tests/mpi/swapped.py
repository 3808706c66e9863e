"""Runs a script with isthmus's intracommunicator class in place of mpi4py's.

What it makes, intercommunicators among them, is then ours; mpi4py's own tests take the
class from the module when they run.
"""

from __future__ import annotations

import collections
import runpy
import sys

from mpi4py import MPI

import isthmus

#: how often the tests called what we override
calls: collections.Counter[str] = collections.Counter()


class Intercomm(isthmus.Intercomm):
    """Ours, counting."""

    def Allgather(self, *args, **kwargs):
        calls["Allgather"] += 1
        return super().Allgather(*args, **kwargs)

    def Allgatherv(self, *args, **kwargs):
        calls["Allgatherv"] += 1
        return super().Allgatherv(*args, **kwargs)

    def allgather(self, *args, **kwargs):
        calls["allgather"] += 1
        return super().allgather(*args, **kwargs)


class Intracomm(isthmus.Intracomm):
    """Ours, whose intercommunicators count."""

    def Create_intercomm(self, *args, **kwargs):
        return Intercomm(isthmus.Intracomm.Create_intercomm(self, *args, **kwargs))


MPI.Intracomm = Intracomm
script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(0, script.rpartition("/")[0])
try:
    runpy.run_path(script, run_name="__main__")
finally:
    print(f"isthmus was called: {dict(calls)}", flush=True)
