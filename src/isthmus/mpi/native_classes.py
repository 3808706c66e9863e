"""mpi4py's own classes of communicators, with the MPI library's own calls.

Kept here because a program may replace the names in `MPI` by classes of isthmus.
"""

from __future__ import annotations

from mpi4py import MPI

NativeIntracomm = MPI.Intracomm
NativeIntercomm = MPI.Intercomm
