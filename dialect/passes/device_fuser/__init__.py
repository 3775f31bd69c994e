"""The fuser of device groups, step by step (R3.1)."""
