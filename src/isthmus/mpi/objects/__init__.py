"""Python objects of any kind, as bytes that collectives carry."""
