"""Machine models: a schedule in, a timeline out. One file per model."""
