"""Lower bounds of small cases by linear programs, beside every algorithm."""
