"""Functions for neural networks, which NumPy lacks: those of `profuse.nn`, written in NumPy."""
