"""Gradients of what is being traced: rules of op classes run over recorded instructions."""
