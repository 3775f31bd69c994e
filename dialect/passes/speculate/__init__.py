"""Passes that use a profile: observers, types, fusion groups, guards, fallbacks."""
