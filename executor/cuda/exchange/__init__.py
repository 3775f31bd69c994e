"""Device arrays: which libraries they come from, and how memory changes hands (DLPack)."""
