"""``x[key]``: basic slicing, integers, newaxis, ellipsis, and integer index arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....errors import BoundsError, DTypeError
from ....ir.attrs import DYNAMIC
from ....ir.dtypes import dtype_of
from ....ir.symbolic import Sym
from ....ops.indexing.slicing import clamps_nothing, encode_bound
from ..tracing.current import trace_error, user_loc
from ..tracing.mutation import in_memory, is_immutable
from ..tracing.operators import op
from ..tracing.outputs import note_copy, note_order
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from ..tracing.types_seen import LazyRange
from .axes import has_mask, settled_key, sizes_now
from .creation import array
from .progressions import arange
from .registry import array_method


@array_method("__getitem__")
def get_item(x: Traced, key: Any) -> Any:
    """``x[key]`` recorded; of a mask, what can be computed without knowing its count.

    Other keys with masks, whose elements decide sizes, run on the host.
    """
    key = settled_key(key)
    if has_mask(key) and not x.rec.evaluates:
        from .mask_keys import under_mask
        from .masks import read_masked

        masked = under_mask(x, key)
        if masked is not None:
            return read_masked(*masked)
    if _has_bools(key):
        from .host import call

        listed = key if isinstance(key, tuple) else (key,)
        parts = tuple(array(item) if isinstance(item, list) else item for item in listed)
        return call("numpy.ndarray.__getitem__", (x, parts), {})
    items = items_of(x, key)
    if not x.ndim and not items:
        # With an ellipsis, the result is an array, a view of x; without it, a number.
        return in_memory(x) if has_ellipsis(key) else op("cast", x, dtype=dtype_of(x.dtype))
    if any(is_index_array(item) for item in items):
        return _advanced(x, items, ellipsis_place(key))
    if x.ndim and not any(item is None or isinstance(item, slice) for item in items) and has_ellipsis(key):
        # The result is a view without axes; integers alone would give a NumPy scalar.
        column = op("expand_dims", x, axes=(x.ndim,), view_of=x)
        return op("squeeze", _basic(column, [*items, slice(None)]), axes=(0,), view_of=x)
    return _basic(x, items)


def _has_bools(key: Any) -> bool:
    """True for a key with a boolean array, a nested list of bools, or a bool."""
    items = key if isinstance(key, tuple) else (key,)
    return any(map(_is_bool, items))


def _is_bool(item: Any) -> bool:
    while isinstance(item, (list, tuple)) and item:
        item = item[0]
    return isinstance(item, (bool, np.bool)) or _kind(item) == "b"


def has_ellipsis(key: Any) -> bool:
    """True for a key whose result is an array even where every axis has an integer."""
    return ellipsis_place(key) is not None


def ellipsis_place(key: Any) -> int | None:
    """The number of items before the ellipsis of a key; None for a key without one."""
    items = key if isinstance(key, tuple) else (key,)
    return next((k for k, item in enumerate(items) if item is Ellipsis), None)


def items_of(x: Traced, key: Any) -> list[Any]:
    """The key without its ellipsis: one item for each axis of ``x``, and the newaxes."""
    items = [_item(item) for item in (key if isinstance(key, tuple) else (key,))]
    count = sum(item is not None and item is not Ellipsis for item in items)
    if count > x.ndim:
        raise BoundsError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {count} were indexed", loc=user_loc()
        )
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise BoundsError("an index can only have a single ellipsis ('...')", loc=user_loc())
    rest = [slice(None)] * (x.ndim - count)
    if not ellipses:
        return _from_ends(x, [*items, *rest])
    at = ellipses[0]
    return _from_ends(x, [*items[:at], *rest, *items[at + 1 :]])


def _from_ends(x: Traced, items: list[Any]) -> list[Any]:
    """The items, where bounds such as ``n - 2`` on an axis of ``n`` elements count from its end.

    Of ``x[: n - 2]`` no kernel for all sizes knows how many elements it has, but of ``x[:-2]``.
    """
    if x.rec.evaluates:
        return items
    out, axis = [], 0
    for item in items:
        if isinstance(item, slice) and (item.step is None or type(item.step) is int):
            if item.step is None or item.step > 0:
                start, stop = (_from_end(x, axis, b, 2) for b in (item.start, item.stop))
                start, stop = (item.start if start is _WHOLE else start, None if stop is _WHOLE else stop)
                item = slice(start, stop, item.step)
        elif type(item) is TracedScalar:
            bound = _from_end(x, axis, item, 1)
            item = item if bound is _WHOLE else bound
        axis += item is not None
        out.append(item)
    return out


_WHOLE = object()  # the end itself


def _from_end(x: Traced, axis: int, bound: Any, free: int) -> Any:
    """``-k`` for a bound that is ``k`` less than the size of an axis, or the bound itself.

    ``free``: up to so many it makes no difference if the axis has fewer elements; from then on the
    size is guarded, as ``n - k`` would count from the end, too.
    """
    if type(bound) is not TracedScalar or bound.kind is not int or axis >= x.ndim:
        return bound
    derivation, size = x.rec.derivation, x.shape[axis]
    exprs = [derivation.expr(number.value) for number in (bound, size)]
    if not all(isinstance(expr, (int, Sym)) for expr in exprs):
        return bound
    less: Any = exprs[0] - exprs[1]  # type: ignore[operator]
    if type(less) is not int or less > 0:
        return bound
    if less == 0:
        return _WHOLE
    return less if -less <= free or bool(size >= -less) else bound


def _item(item: Any) -> Any:
    """One index, where a sequence becomes an array; raises TraceError for a mask."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if type(item) is LazyRange:
        item = arange(*item.bounds)
    elif isinstance(item, Sequence) and not isinstance(item, (str, bytes)):
        item = array(item if isinstance(item, (list, tuple)) else list(item))
        if type(item) is np.ndarray and not item.size:
            item = item.astype(np.int64)
    if isinstance(item, (bool, np.bool)) or _kind(item) == "b":
        raise trace_error(
            "indexing with a boolean mask gives an array whose size depends on contents",
            "use np.where(mask, x, neutral_element)",
        )
    if isinstance(item, (np.ndarray, Traced)):
        if _kind(item) not in "iu":
            raise BoundsError("arrays used as indices must be of integer (or boolean) type", loc=user_loc())
        return item
    if isinstance(item, TracedScalar) and item.kind is int:
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise BoundsError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices",
            loc=user_loc(),
        ) from None


def _kind(item: Any) -> str:
    if isinstance(item, TracedScalar):
        return "b" if item.kind is bool else "i"
    return item.dtype.kind if isinstance(item, (np.ndarray, np.generic, Traced)) else ""


def _literal(bound: Any) -> int | None:
    """A bound that is known in all calls; None for any other."""
    is_traced = isinstance(bound, (Traced, TracedScalar))  # which pass for numbers as well
    return int(bound) if isinstance(bound, (int, np.integer)) and not is_traced else None


def is_index_array(item: Any) -> bool:
    """True for an item of a key that picks elements by an array of indices."""
    return isinstance(item, (np.ndarray, Traced))


@dataclass
class _Slices:
    """Attributes and operands of one `slice` op."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    operands: tuple[list[Any], list[Any], list[Any]] = field(default_factory=lambda: ([], [], []))

    def add(self, axis: int, item: slice) -> None:
        self.axes.append(axis)
        bounds = self._reaching(item)
        for column, bound, operands in zip((self.starts, self.stops), bounds, self.operands[:2], strict=True):
            column.append(self._bound(bound, operands))
        step = 1 if item.step is None else item.step
        self.steps.append(self._bound(step, self.operands[2]))

    @staticmethod
    def _reaching(item: slice) -> tuple[Any, Any]:
        """Start and stop of a slice; None for a literal one that no axis reaches."""
        start, stop, step = map(_literal, (item.start, item.stop, 1 if item.step is None else item.step))
        if not step:
            return item.start, item.stop
        no_start, no_stop = clamps_nothing(start or 0, stop or 0, step)
        return None if no_start else item.start, None if no_stop else item.stop

    @staticmethod
    def _bound(bound: Any, operands: list[Any]) -> int:
        if isinstance(bound, (Traced, np.ndarray)) and (bound.ndim or _kind(bound) not in "iu"):
            raise DTypeError("only integer scalar arrays can be converted to a scalar index", loc=user_loc())
        if isinstance(bound, Traced):
            bound = op("item", bound)
        if isinstance(bound, TracedScalar) and bound.kind in (int, bool):
            bound.rec.numbers.note_size(bound.value)
            operands.append(bound)
            return DYNAMIC
        if bound is not None and (isinstance(bound, TracedScalar) or not hasattr(bound, "__index__")):
            raise DTypeError("slice indices must be integers or None or have an __index__ method", loc=user_loc())
        return encode_bound(None if bound is None else operator.index(bound))

    def apply(self, x: Any) -> Any:
        attrs: dict[str, Any] = {"starts": tuple(self.starts), "stops": tuple(self.stops)}
        if any(step != 1 for step in self.steps):
            attrs["steps"] = tuple(self.steps)
        if self.axes != list(range(len(self.axes))):
            attrs["axes"] = tuple(self.axes)
        flat = [o for column in self.operands for o in column]
        return op("slice", x, *flat, view_of=x, **attrs)


def _basic(x: Traced, items: list[Any]) -> Any:
    """``x[items]`` without index arrays: slices, then integers from the back, then newaxes."""
    slices, picks, new = _Slices(), [], []
    axis = out_axis = 0
    for item in items:
        if item is None:
            new.append(out_axis)
            out_axis += 1
            continue
        if isinstance(item, slice):
            if item != slice(None):
                slices.add(axis, item)
            out_axis += 1
        else:
            picks.append((axis, item))
        axis += 1
    out = slices.apply(x) if slices.axes else x
    # An element that is picked is a number, of which no axis makes a view: the last axis goes behind the new ones.
    kept = picks[:1] if new and len(picks) == x.ndim else []
    for axis, item in reversed(picks[len(kept) :]):
        out = _pick(out, axis, item)
    if new:
        out = op("expand_dims", out, axes=tuple(new), view_of=out)
    for _, item in kept:
        out = _pick(out, len(new), item)
    if out is x:  # x[:] and x[...] are new views
        out = op("slice", x, starts=(), stops=(), view_of=x)
    return out


def _pick(x: Any, axis: int, item: Any) -> Any:
    if isinstance(item, TracedScalar):
        return op("pick", x, item, axis=axis, index=DYNAMIC, view_of=x)
    return op("pick", x, axis=axis, index=item, view_of=x)


def _advanced(x: Traced, items: list[Any], ellipsis: int | None) -> Any:
    """``x[items]`` with index arrays; NumPy's rule says where their axes go.

    ``ellipsis``: number of items before the key's ellipsis, which separates index arrays even where
    it stands for no axis; None = the key has no ellipsis.
    """
    slices = _Slices()
    arrays: list[tuple[int, Any]] = []
    places: list[int] = []
    axis = 0
    for k, item in enumerate(items):
        if isinstance(item, slice):
            if item != slice(None):
                slices.add(axis, item)
        elif item is not None:
            arrays.append((axis, item))
            places.append(k)
        axis += item is not None
    axes = tuple(a for a, _ in arrays)
    rank = max(i.ndim for _, i in arrays if is_index_array(i))
    source = out = slices.apply(x) if slices.axes else x
    if len(axes) == 1:
        out = op("take", out, arrays[0][1], axis=axes[0])
    else:
        out = op("index", out, *(i for _, i in arrays), axes=axes)
    part = out
    parted = ellipsis is not None and places[0] < ellipsis <= places[-1]
    adjacent = places[-1] - places[0] == len(places) - 1 and not parted
    consecutive = axes[-1] - axes[0] == len(axes) - 1
    if consecutive and not adjacent and axes[0] and rank:
        # A newaxis or an ellipsis between index arrays sends their axes to the front, but the op
        # sees neither.
        out = op("moveaxis", out, source=tuple(range(axes[0], axes[0] + rank)), destination=tuple(range(rank)))
    new = []
    position = 0 if adjacent else rank
    for k, item in enumerate(items):
        if k in places:
            position += rank if adjacent and k == places[0] else 0
            continue
        if item is None:
            new.append(position)
        position += 1
    if new:
        out = op("expand_dims", out, axes=tuple(new))
    if not (out.ndim or ellipsis is None):
        part = out = op("copy", out)  # an array without axes, no number
    is_array = out.ndim or ellipsis is not None
    if is_array and all(_is_number(item) for _, item in arrays):
        note_copy(part, source, partial(_row, axes), [i for _, i in arrays])
        out.share(x)
    if not out.rec.evaluates:
        note_order(out, operator.itemgetter(_sample_key(items, ellipsis)), x)
    return out


def _sample_key(items: Sequence[Any], ellipsis: int | None) -> tuple[Any, ...]:
    """A key that picks of a sample what this one does, for the order of the axes in memory."""
    key = [_sample_index(item) for item in items]
    if ellipsis is not None:
        key.insert(ellipsis, Ellipsis)
    return tuple(key)


def _sample_index(item: Any) -> Any:
    if item is None:
        return None
    if isinstance(item, slice):
        return slice(None)
    if not is_index_array(item):
        return 0
    return np.zeros([1 if size == 1 else 2 for size in sizes_now(item)], np.int64)


def _row(axes: Sequence[int], array: np.ndarray, *indices: Any) -> Any:
    """The part of an array at one index of each of these axes, which is a view."""
    key: list[Any] = [slice(None)] * array.ndim
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = int(index)
    return array[(*key, ...)]  # an array also where no axis is left


def _is_number(item: Any) -> bool:
    """True for an index that is a number to NumPy; numbers alone give a view, no copy."""
    return is_immutable(item) if isinstance(item, Traced) else not isinstance(item, np.ndarray)
