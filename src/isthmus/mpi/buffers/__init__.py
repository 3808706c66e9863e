"""Where data lie: users' buffers, packed selections, operators, a node's memory."""
