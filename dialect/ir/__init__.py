"""Graphs and what they are made of: ops, types, dtypes, attributes, symbolic sizes, programs."""
