"""The splits of all processes at once, as array operations: for a million of them."""
