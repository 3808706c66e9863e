"""Arrays on a device: found, copied to the host and back, packed where they are."""
