"""Passes on writes: in-place ops made pure, or checked."""
