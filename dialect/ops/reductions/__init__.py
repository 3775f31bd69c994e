"""Ops that combine elements along axes: reductions, moments, running sums."""
