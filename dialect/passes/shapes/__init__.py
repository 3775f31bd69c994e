"""Passes on sizes: what types say of them, and which are assumed."""
