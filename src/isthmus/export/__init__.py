"""Schedules and timelines as text for further tools, a file for each format."""
