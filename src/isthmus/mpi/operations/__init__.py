"""How the arguments of each operation become values and memory."""
