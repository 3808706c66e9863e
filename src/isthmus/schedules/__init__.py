"""The form: what one rank does, round by round; programs, layouts, the registry of
algorithms, and the schedule of all ranks."""
