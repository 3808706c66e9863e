"""Is a schedule right? The reference machine, marks, and the contract of each
collective."""
