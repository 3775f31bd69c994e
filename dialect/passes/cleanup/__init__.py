"""Passes that make a graph smaller or simpler, and leave its meaning alone."""
