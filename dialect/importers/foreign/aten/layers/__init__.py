"""Handlers of ATen's operators for neural networks: activations, losses, norms, pools, convolutions."""
