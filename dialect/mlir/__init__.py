"""Graphs as MLIR: contexts, reading and rewriting IR, verifying it, asking about values."""
