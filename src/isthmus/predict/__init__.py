"""The time of a collective on a machine, by every algorithm: `isthmus predict`."""
