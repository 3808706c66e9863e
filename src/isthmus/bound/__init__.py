"""Lower bounds of small cases by linear programs, compared with every algorithm."""
