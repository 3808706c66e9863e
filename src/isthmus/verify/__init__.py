"""Verification of schedules: reference machine, marks and contracts of collectives."""
