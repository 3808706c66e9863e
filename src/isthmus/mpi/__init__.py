"""The engine: rounds run on a user's communicators. Only this folder knows mpi4py."""

from .waiting import uncaught

uncaught.install()
