"""Graphs from what users write: Python functions on NumPy arrays, and IR text."""
