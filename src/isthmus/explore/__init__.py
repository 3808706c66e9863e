"""A page to step through schedules in a browser, without a server or a network."""
