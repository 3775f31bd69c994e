"""Nests as kernels: pointwise, by rows, split, serial, and what these families share."""
