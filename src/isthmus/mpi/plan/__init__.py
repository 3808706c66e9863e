"""Plans of steps on offsets, compiled from rounds, kept by values, and run."""
