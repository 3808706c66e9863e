"""The time of schedules on machines: a schedule in, a timeline out; and the limit."""
