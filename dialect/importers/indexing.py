"""``x[key]``: basic slicing, integers, newaxis, ellipsis, and integer index arrays."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..attrs import DYNAMIC
from ..errors import BoundsError
from ..ops.slicing import encode_bound
from .recorder import trace_error, user_loc
from .traced import Traced, TracedScalar, op


def get_item(x: Traced, key: Any) -> Any:
    """``x[key]`` recorded; raises TraceError for boolean masks, whose result size is unknown."""
    items = _expand(x, key if isinstance(key, tuple) else (key,))
    if any(_is_index_array(item) for item in items):
        return _advanced(x, items)
    return _basic(x, items)


def _expand(x: Traced, key: tuple) -> list[Any]:
    """The key with its ellipsis written out, one item per axis of ``x`` plus newaxes."""
    items = [_item(item) for item in key]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > x.ndim:
        raise BoundsError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed",
            loc=user_loc(),
        )
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise BoundsError(
            "an index can only have a single ellipsis ('...')", loc=user_loc()
        )
    rest = [slice(None)] * (x.ndim - used)
    if not ellipses:
        return [*items, *rest]
    at = ellipses[0]
    return [*items[:at], *rest, *items[at + 1 :]]


def _item(item: Any) -> Any:
    """One index, lists as arrays; refuses masks."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (list, tuple)):
        from .numpy_creation import array

        item = array(item)
        if isinstance(item, np.ndarray) and not item.size:
            item = item.astype(np.int64)
    if isinstance(item, (bool, np.bool)) or _kind(item) == "b":
        raise trace_error(
            "indexing with a boolean mask gives an array whose size depends on contents",
            "use np.where(mask, x, neutral_element)",
        )
    if isinstance(item, (np.ndarray, Traced)):
        if _kind(item) not in "iu":
            raise BoundsError(
                "arrays used as indices must be of integer (or boolean) type", loc=user_loc()
            )
        return item
    if isinstance(item, TracedScalar):
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise BoundsError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices", loc=user_loc(),
        ) from None  # fmt: skip


def _kind(item: Any) -> str:
    if isinstance(item, TracedScalar):
        return "b" if item.kind is bool else "i"
    return item.dtype.kind if isinstance(item, (np.ndarray, np.generic, Traced)) else ""


def _is_index_array(item: Any) -> bool:
    return isinstance(item, (np.ndarray, Traced))


@dataclass
class _Slices:
    """Attributes and operands of one `slice` op."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    operands: tuple[list[Any], list[Any], list[Any]] = field(
        default_factory=lambda: ([], [], [])
    )

    def add(self, axis: int, item: slice) -> None:
        self.axes.append(axis)
        for column, bound, operands in zip(
            (self.starts, self.stops), (item.start, item.stop), self.operands[:2], strict=True
        ):
            column.append(self._bound(bound, operands))
        step = 1 if item.step is None else item.step
        self.steps.append(self._bound(step, self.operands[2]))

    @staticmethod
    def _bound(bound: Any, operands: list[Any]) -> int:
        if isinstance(bound, Traced):
            bound = op("item", bound)
        if isinstance(bound, TracedScalar):
            operands.append(bound)
            return DYNAMIC
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
    """Slices first, then integers from the back, then newaxes."""
    slices, picks, new = _Slices(), [], []
    axis = kept = 0
    for item in items:
        if item is None:
            new.append(kept)
            kept += 1
            continue
        if isinstance(item, slice):
            if item != slice(None):
                slices.add(axis, item)
            kept += 1
        else:
            picks.append((axis, item))
        axis += 1
    out = slices.apply(x) if slices.axes else x
    for axis, item in reversed(picks):
        out = _pick(out, axis, item)
    if new:
        out = op("expand_dims", out, axes=tuple(new), view_of=out)
    if out is x:  # x[:], x[...]: a view of its own
        out = op("slice", x, starts=(), stops=(), view_of=x)
    return out


def _pick(x: Any, axis: int, item: Any) -> Any:
    if isinstance(item, TracedScalar):
        return op("pick", x, item, axis=axis, index=DYNAMIC, view_of=x)
    return op("pick", x, axis=axis, index=item, view_of=x)


def _advanced(x: Traced, items: list[Any]) -> Any:
    """Index arrays (and the integers beside them), with NumPy's rule where their axes go."""
    slices, arrays, plan = _Slices(), [], []
    axis = 0
    for item in items:
        if item is None:
            plan.append("new")
            continue
        if isinstance(item, slice):
            if item != slice(None):
                slices.add(axis, item)
            plan.append("slice")
        else:
            arrays.append((axis, item))
            plan.append("array")
        axis += 1
    out = slices.apply(x) if slices.axes else x
    places = [k for k, word in enumerate(plan) if word == "array"]
    adjacent = places[-1] - places[0] == len(places) - 1
    axes = [a for a, _ in arrays]
    indices = [i for _, i in arrays]
    if len(arrays) == 1:
        rank = indices[0].ndim
        out = op("take", out, indices[0], axis=axes[0])
        front = axes[0]
    else:
        out, rank = _gather(out, axes, indices)
        front = 0
    # ``out`` has the index axes at ``front``; NumPy wants them where they were, or first.
    before = sum(word != "array" for word in plan[: places[0]]) if adjacent else 0
    sliced_before = sum(word == "slice" for word in plan[: places[0]])
    wanted = sliced_before if adjacent else 0
    if rank and front != wanted:
        out = op("moveaxis", out, source=tuple(range(front, front + rank)),
                 destination=tuple(range(wanted, wanted + rank)))  # fmt: skip
    new, at = [], 0
    for k, word in enumerate(plan):
        if word == "array":
            if k == places[0] and adjacent:
                at += rank
            continue
        position = at if adjacent else at + rank
        if word == "new":
            new.append(position)
        at += 1
    del before
    return op("expand_dims", out, axes=tuple(new)) if new else out


def _gather(x: Any, axes: list[int], indices: list[Any]) -> tuple[Any, int]:
    """Several index arrays: one flat take; the index axes come first. Also their rank."""
    rank = max(i.ndim if _is_index_array(i) else 0 for i in indices)
    count = len(axes)
    if axes != list(range(count)):
        x = op("moveaxis", x, source=tuple(axes), destination=tuple(range(count)))
    shape = x.shape
    flat: Any = 0
    for axis, index in enumerate(indices):
        size = shape[axis]
        inside = _wrapped(index, size)
        flat = inside if axis == 0 else op("add", op("mul", flat, size), inside)
    from .numpy_shapes import reshape

    merged = reshape(x, (-1, *shape[count:]))
    return op("take", merged, flat, axis=0), rank


def _wrapped(index: Any, size: Any) -> Any:
    """An index counted from the front; out of range becomes out of range of everything."""
    if isinstance(index, int):
        return op("add", index, size) if index < 0 else index
    low = op("lt", index, 0)
    inside = op("select", low, op("add", index, size), index)
    bad = op("logical_or", op("lt", inside, 0), op("ge", inside, size))
    return op("select", bad, np.iinfo(np.int64).max // 4, inside)
