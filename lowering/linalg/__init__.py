"""Graph to linalg: what the `lower` methods of ops emit with, and the pass that calls them."""
