"""Communicators to measure with, and recordings of real runs."""
