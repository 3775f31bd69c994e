"""Nested arguments and results as flat lists of leaves with a hashable structure."""
