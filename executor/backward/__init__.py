"""Compiled autograd: backward runs of the tape as graphs, keyed, captured, finished and run."""
