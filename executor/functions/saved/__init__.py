"""Saved functions: graphs, profiles and compiled code of one function in one portable file."""
