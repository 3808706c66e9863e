"""Plans: rounds bound to memory, run in three forms; requests and progress."""
