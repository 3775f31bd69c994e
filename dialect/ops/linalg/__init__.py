"""Matrix products, sums of them, and `numpy.einsum` in terms of them."""
