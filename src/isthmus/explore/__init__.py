"""A page to step through schedules in a browser: one file, no server, no network."""
