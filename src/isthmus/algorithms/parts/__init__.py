"""Building blocks of algorithms: nothing in this folder is registered by a name."""
