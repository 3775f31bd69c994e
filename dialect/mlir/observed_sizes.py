"""The sizes that a profile has observed for the symbols of a fusion function, as its attribute.

They say for which sizes a kernel matters. No pass and no kernel depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.size_algebra import multiple_of
from ..ir.types import TensorType
from .rewrite import functions, symbol_of

if TYPE_CHECKING:
    from mlir import ir

_NAME = "profuse.observed_sizes"


def note_sizes(func: ir.Operation, profiled: Sequence[TensorType], types: Sequence[TensorType]) -> None:
    """Write down the sizes that the symbols of a function stand for in a profile.

    Args:
        func: the function.
        profiled: the profiled types of its tensor arguments.
        types: the types that these have now, of the same ranks.
    """
    from mlir import ir

    sizes = symbol_sizes(profiled, types)
    if sizes:
        i64 = ir.IntegerType.get_signless(64)
        entries = {name: ir.IntegerAttr.get(i64, size) for name, size in sizes.items()}
        func.attributes[_NAME] = ir.DictAttr.get(entries)


def symbol_sizes(profiled: Sequence[TensorType], types: Sequence[TensorType]) -> dict[str, int]:
    """The sizes that the symbols in ``types`` stand for in a profile, of the same ranks."""
    sizes: dict[str, int] = {}
    for before, now in zip(profiled, types, strict=True):
        for size, dim in zip(before.shape or (), now.shape or (), strict=True):
            multiple = multiple_of(dim)
            if multiple is not None and isinstance(size, int):
                sizes[multiple[0]] = size // multiple[1]
    return sizes


def observed_sizes(module: ir.Module) -> dict[str, dict[str, int]]:
    """Function -> symbol -> observed size, of the functions that have such sizes."""
    from mlir import ir

    by_function = {}
    for func in functions(module):
        if _NAME in func.attributes:
            sizes = ir.DictAttr(func.attributes[_NAME])
            by_function[symbol_of(func)] = {a.name: ir.IntegerAttr(a.attr).value for a in sizes}
    return by_function
