"""Runs a script with isthmus's communicators in place of mpi4py's.

What ours make, intercommunicators among them, is ours too; mpi4py's own tests take the
classes and the world from the module when they run.
"""

from __future__ import annotations

import collections
import runpy
import sys

from mpi4py import MPI

import isthmus
from isthmus.mpi.comm.collective import load
from sampling import some

load()  # while mpi4py's own classes are still in their places

#: how often the tests called what we override
calls: collections.Counter[str] = collections.Counter()
NAMES = (
    "Allgather",
    "Allgatherv",
    "allgather",
    "Iallgather",
    "Iallgatherv",
    "Allgather_init",
    "Allgatherv_init",
    "Bcast",
)


def counting(name, base):
    def method(self, *args, **kwargs):
        calls[name] += 1
        return getattr(base, name)(self, *args, **kwargs)

    return method


Intercomm = type(
    "Intercomm",
    (isthmus.Intercomm,),
    {name: counting(name, isthmus.Intercomm) for name in NAMES[:-1]},
)
Counted = type(
    "Counted",
    (isthmus.Intracomm,),
    {name: counting(name, isthmus.Intracomm) for name in NAMES},
)


class Intracomm(Counted):
    """Ours, whose offspring count as well."""

    def Create_intercomm(self, *args, **kwargs):
        return Intercomm(isthmus.Intracomm.Create_intercomm(self, *args, **kwargs))

    def Dup(self, *args, **kwargs):
        return Intracomm(isthmus.Intracomm.Dup(self, *args, **kwargs))


def without_long_doubles():
    """Where only DLPack tells the type: numpy, which reads it for us, knows none."""
    import arrayimpl

    for backend in arrayimpl.ArrayBackends:
        if backend.backend.startswith("dlpack"):
            known = backend.TypeMap.items()
            backend.TypeMap = {k: v for k, v in known if k not in ("g", "G")}


def without_devices():
    """Arrays that seem to be on a device are refused: tests/mpi/test_device.py."""
    import arrayimpl

    backends, fake = arrayimpl.ArrayBackends, arrayimpl.BaseFakeGPUArray
    backends[:] = [x for x in backends if not issubclass(x, fake)]


def with_some_types():
    """Others for each kind of array; or all of them."""
    import arrayimpl

    backends = arrayimpl.ArrayBackends
    found = [some(x.TypeMap.items(), 3, turn) for turn, x in enumerate(backends)]
    for backend, types in zip(backends, found, strict=True):
        backend.TypeMap = dict(types)


MPI.Intracomm = Intracomm
if "--inside" in sys.argv:
    sys.argv.remove("--inside")
    MPI.COMM_WORLD, MPI.COMM_SELF = map(Intracomm, (MPI.COMM_WORLD, MPI.COMM_SELF))
script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(0, script.rpartition("/")[0])
without_long_doubles()
without_devices()
with_some_types()
try:
    runpy.run_path(script, run_name="__main__")
finally:
    print(f"isthmus was called: {dict(calls)}", flush=True)
