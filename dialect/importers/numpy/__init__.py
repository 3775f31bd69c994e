"""Graphs from Python functions on NumPy arrays. The page on architecture orders its folders."""
