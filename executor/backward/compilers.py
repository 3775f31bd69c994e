"""Identity of compilers: what is captured for one serves each that is like it.

A function that is made anew in each step, as a lambda in a ``with`` statement is, is the same one
as long as its code, its defaults and the variables that it closes over are the same objects.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from types import FunctionType
from typing import Any


class _Is:
    """A key of an object that is equal to none but that of the same object, which it keeps."""

    __slots__ = ("_object",)

    def __init__(self, x: Any) -> None:
        self._object = x

    def __eq__(self, other: object) -> bool:
        return type(other) is _Is and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)


def identity(compiler: Any) -> Hashable:
    """A key that compilers have in common which do the same."""
    kind = type(compiler)
    if kind is FunctionType and not vars(compiler):
        parts = [compiler.__globals__, *map(_contents, compiler.__closure__ or ())]
        parts += compiler.__defaults__ or ()
        for name, value in (compiler.__kwdefaults__ or {}).items():
            parts += name, value
        return kind, compiler.__code__, *map(_Is, parts)
    if kind is partial and not vars(compiler):
        keywords = [x for item in sorted(compiler.keywords.items()) for x in item]
        return kind, identity(compiler.func), *map(_Is, (*compiler.args, *keywords))
    try:
        hash(compiler)
    except TypeError:
        return _Is(compiler)
    return kind, compiler


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return cell
