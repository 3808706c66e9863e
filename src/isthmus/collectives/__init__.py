"""The schedule of every collective, from an algorithm and sizes."""
