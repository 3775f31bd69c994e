"""Checks of a guard: the types of values, sizes that are related, gradient mode."""
