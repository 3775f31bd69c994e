"""Loops and branches of Python source that stay loops and branches in a graph."""
