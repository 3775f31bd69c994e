"""All ops but those of captured backward runs: importing this module enters also those that few programs have."""

from . import host_call, inferred_sizes, nn, size_items
from .control_flow import effect_ops, lists
from .elementwise import python_math, special
from .indexing import inplace_forms
from .linalg import mm_tree
from .manipulation import repetition

__all__ = [
    "effect_ops",
    "host_call",
    "inferred_sizes",
    "inplace_forms",
    "lists",
    "mm_tree",
    "nn",
    "python_math",
    "repetition",
    "size_items",
    "special",
]
