"""The form: the rounds of a rank, programs, layouts, the registry of algorithms, and
the schedule of all ranks."""
