"""Passes on what gradients need: undefined tensors, `requires_grad`, gradient blocks."""
