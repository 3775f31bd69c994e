"""Sorting, searching, and picking elements by conditions: results whose sizes contents decide."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir.types import MaybeDim, TensorType
from ..sizes import normalize_axis
from .rule import BoundCall, Rule, Shapes, shape_of
from .shapes import along, replaced, same


def add_at(x: Any, key: Any, values: Any) -> Any:
    """Zeros of the shape of ``x``, to which ``values`` are added where ``x[key]`` reads."""
    sums = np.zeros_like(x)
    np.add.at(sums, key, values)
    return sums


def _item(call: BoundCall) -> Shapes | None:
    """Sizes of ``x[key]`` for one mask beside whole slices; else none are known."""
    shape, key = shape_of(call["a"]), call["b"]
    items = key if isinstance(key, tuple) else (key,)
    if shape is None or sum(map(_is_mask, items)) != 1:
        return None
    out: list[MaybeDim] = []
    rest = list(shape)
    for item in items:
        if _is_mask(item):
            out.append(None)
            del rest[: len(item.shape)]
        elif item == slice(None):
            out.append(rest.pop(0))
        else:
            return None
    return [(*out, *rest)]


def _is_mask(item: Any) -> bool:
    return isinstance(item, TensorType) and item.dtype is not None and item.dtype.kind == "b" and (bool(item.shape))


def _lexsort(call: BoundCall) -> Shapes | None:
    shape = shape_of(call["keys"])
    return None if not shape else [shape[1:]]


def _nonzero(call: BoundCall) -> Shapes | None:
    rank = call.rank("a")
    return None if rank is None else [(None,)] * rank


def _argwhere(call: BoundCall) -> Shapes | None:
    return [(None, call.rank("a"))]


def _open_axis(name: str) -> Callable[[BoundCall], Shapes | None]:
    """A rule: the sizes of an array but for those along an axis; of all elements without one."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape, axis = call.shape(name), call["axis"]
        if axis is None or not shape:
            # NumPy takes a number for an array of one element, or raises when it is called.
            return [(None,)]
        return [replaced(shape, operator.index(axis), None)]

    return shapes


def _resize(call: BoundCall) -> Shapes | None:
    new = call["new_shape"]
    items = new if isinstance(new, (tuple, list)) else (new,)
    sizes: list[MaybeDim] = []
    for item in items:
        if isinstance(item, TensorType):
            return None
        value = getattr(item, "value", item)
        sizes.append(None if value is None else value)
    return [tuple(sizes)]


def _unique(call: BoundCall) -> Shapes | None:
    if call["return_index"] or call["return_inverse"] or call["return_counts"]:
        return None
    return _open_axis("ar")(call)


def _packed(sizes: Callable[[MaybeDim], MaybeDim]) -> Callable[[BoundCall], Shapes | None]:
    def shapes(call: BoundCall) -> Shapes | None:
        shape, axis = call.shape("a"), call["axis"]
        if shape is None or axis is None:
            return [(None,)]
        place = normalize_axis(operator.index(axis), len(shape))
        return [replaced(shape, place, sizes(shape[place]))]

    return shapes


def _bytes(size: MaybeDim) -> MaybeDim:
    return None if size is None else (size + 7) // 8


def _np(name: str, shapes: Any = None, **more: Any) -> Rule:
    return Rule(f"numpy.{name}", shapes, **more)


_KTH: Mapping[str, Any] = {"kth": 0}
_OBJ: Mapping[str, Any] = {"obj": 0, "values": 1}

RULES = (
    _np("ndarray.__getitem__", _item, own=operator.getitem, neutral={"b": 0}, gradient="item"),
    Rule("profuse.add_at", same("x"), own=add_at, neutral={"key": 0}, gradient="add_at"),
    _np("sort", along("a"), gradient="sort"),
    _np("argsort", along("a")),
    _np("partition", along("a"), neutral=_KTH, gradient="partition"),
    _np("argpartition", along("a"), neutral=_KTH),
    _np("sort_complex", same("a")),
    _np("lexsort", _lexsort),
    _np("searchsorted", same("v"), neutral={"v": 1}),
    _np("unique", _unique),
    _np("unique_all"),
    _np("unique_counts"),
    _np("unique_inverse"),
    _np("unique_values", lambda call: [(None,)]),
    _np("nonzero", _nonzero),
    _np("argwhere", _argwhere),
    _np("flatnonzero", lambda call: [(None,)]),
    _np("compress", _open_axis("a")),
    _np("extract", lambda call: [(None,)]),
    _np("insert", _open_axis("arr"), neutral=_OBJ),
    _np("delete", _open_axis("arr"), neutral=_OBJ),
    _np("trim_zeros"),
    _np("repeat", _open_axis("a"), neutral={"repeats": 1}),
    _np("resize", _resize, neutral={"new_shape": 2}),
    _np("packbits", _packed(_bytes)),
    _np("unpackbits", neutral={"count": 4}),
)
