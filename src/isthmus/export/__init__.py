"""Schedules as text for other simulators. One file per format."""
