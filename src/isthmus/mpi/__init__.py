"""The runtime: rounds on a user's communicators. Only this folder imports mpi4py."""

from .waiting import uncaught

uncaught.install()
