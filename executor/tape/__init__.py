"""The eager tape: gradients of a run, with any Python code between the operations."""
