"""NumPy's functions, methods and indexing on traced arrays, recorded as ops."""
