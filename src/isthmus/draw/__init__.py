"""Pictures, one file each; matplotlib is imported when one is drawn."""
