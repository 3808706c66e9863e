"""The choice of algorithms from sizes and the costs of messages; tuning files."""
