"""What a collective would take on a machine: `isthmus predict`."""
