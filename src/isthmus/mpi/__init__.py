"""The engine: rounds run on a user's communicators. Only this folder knows mpi4py."""

from .check import MismatchError
from .intercomm import Intercomm
from .intracomm import Intracomm

__all__ = ["Intercomm", "Intracomm", "MismatchError"]
