"""Ops that compute each element by itself: arithmetic, comparisons, functions, choices."""
