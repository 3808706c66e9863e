"""Arrays on a device: described, copied to the host and back, packed on the device."""
