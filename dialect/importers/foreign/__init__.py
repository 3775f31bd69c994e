"""Graphs of other systems: plain nodes, tables of their operators, and their interpretation on traced values."""
