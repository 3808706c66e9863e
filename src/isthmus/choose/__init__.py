"""From sizes and a machine to an algorithm and one rank's rounds; tuning files."""
