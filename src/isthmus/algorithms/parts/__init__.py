"""Building blocks of algorithms: no file of this folder registers an algorithm."""
