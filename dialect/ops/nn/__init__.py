"""Ops of neural networks: each is written once, as a composition of the ops of the table."""

from . import activation_ops, batch_norms, copies, dropouts, layer_norms, weighted_ops

__all__ = ["activation_ops", "batch_norms", "copies", "dropouts", "layer_norms", "weighted_ops"]
