"""Handlers of ATen's operators on tensors: what NumPy has as well, under other names and rules."""
