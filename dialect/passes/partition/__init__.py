"""Blocks cut into groups, groups made functions with guards and fallbacks: each fuser is a policy of it."""
