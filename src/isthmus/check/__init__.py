"""Every algorithm verified on many sizes and placements: `isthmus check`."""
