"""The communicators of isthmus: their public methods, and nothing else.

Both classes are imported together, since each makes communicators of the other class.
"""

from . import intercomm, intracomm

__all__ = ["intercomm", "intracomm"]
