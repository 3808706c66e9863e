"""Communicators of ours: public methods, and nothing else.

Both classes are imported together: each of them makes communicators of the other.
"""

from . import intercomm, intracomm

__all__ = ["intercomm", "intracomm"]
