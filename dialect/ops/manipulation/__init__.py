"""Ops that rearrange tensors: reshape, permute, join, split."""
