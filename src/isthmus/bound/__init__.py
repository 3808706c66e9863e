"""How far from optimal: lower bounds of small cases by linear programs, beside every
algorithm."""
