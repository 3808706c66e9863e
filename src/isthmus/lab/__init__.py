"""A real network of many hosts inside one machine.

    with isthmus.lab.Lab(hosts=8, rate="100mbit") as net:
        net.run(["python", "program.py"], n=8)

Hosts are network namespaces, links are shaped, MPI runs over TCP between them.
"""

from .job import Job, OutOfTime
from .lab import Lab, down, sweep
from .limits import Limits
from .links import Link
from .network import Network, find
from .tools import LabError, missing

__all__ = [
    "Job",
    "Lab",
    "LabError",
    "Limits",
    "Link",
    "Network",
    "OutOfTime",
    "down",
    "find",
    "missing",
    "sweep",
]
