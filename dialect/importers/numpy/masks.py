"""``x[mask]`` as a value of full size, and assignment where a mask holds.

How many elements a mask picks is known only at run time. What is read under a mask, computed
element by element and written back under the same mask needs no count: it stays an array of full
size, of which only the elements that the mask picks mean anything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import BoundsError, TraceError
from ..handlers import FUNCTIONS, METHODS, load_all
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.leaves import register_leaf_type
from ..tracing.mutation import check_owner, write
from ..tracing.operators import COMPARISONS, OPERATORS, UNARY, Recording, op
from ..tracing.recorder import Recorder
from ..tracing.traced import Traced, TracedScalar
from .axes import as_traced, is_mask, ndim

# Ufuncs that neither fail nor warn, whatever the elements that no mask picks are.
HARMLESS = frozenset({
    "add", "subtract", "multiply", "negative", "positive", "absolute", "maximum", "minimum",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "invert", "isnan", "isinf", "isfinite", "sign", "square", "conjugate",
})  # fmt: skip

# Functions of NumPy that compute each element from those at its place.
_ELEMENTWISE = (
    np.where, np.clip, np.round, np.around, np.fix, np.nan_to_num, np.isclose, np.real, np.imag,
    np.angle, np.sinc, np.copy, np.zeros_like, np.ones_like, np.full_like, np.empty_like,
)  # fmt: skip

_MOST_OPS = 64  # of two masks that are compared

REDUCTIONS: dict[Any, Callable] = {}  # NumPy function -> handler of masked operands


class Mask:
    """Where elements are picked.

    Attributes:
        picked: the traced array of bools.
        head: number of axes before those of the mask.
        values: number of values in the graph when the mask was read, which tells later writes.
    """

    __slots__ = ("head", "picked", "values")

    def __init__(self, picked: Traced, head: int) -> None:
        self.picked, self.head = picked, head
        self.values = picked.rec.program.count

    def moved(self, head: int) -> Mask:
        """The same mask, with another number of axes before its own."""
        found = Mask(self.picked, head)
        found.values = self.values
        return found

    def over(self, rank: int) -> Traced:
        """The mask in a shape that broadcasts to that of an array of this rank."""
        tail = self.tail(rank)
        axes = tuple(range(self.picked.ndim, self.picked.ndim + tail))
        return op("expand_dims", self.picked, axes=axes) if axes else self.picked

    def tail(self, rank: int) -> int:
        """The number of axes after those of the mask, of an array of this rank."""
        return rank - self.head - self.picked.ndim


@register_leaf_type
class Masked(Recording):
    """What ``x[mask]`` gives: an array of as many elements as the mask picks, one axis for them.

    Attributes:
        full: the elements at their places, and others at all other places.
        mask: which of them the array has.
        viewed: there may be views of the array, or it is one.
    """

    __slots__ = ("full", "mask", "viewed")
    lifts = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, full: Traced, mask: Mask, viewed: bool = False) -> None:
        super().__init__(full.rec, None)
        self.full, self.mask, self.viewed = full, mask, viewed

    @property
    def value(self) -> int:
        """The array itself, for all that needs more than elements at their places."""
        raise needs_elements()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    @property
    def dtype(self) -> np.dtype:
        return self.full.dtype

    @property
    def ndim(self) -> int:
        return self.full.ndim - self.mask.picked.ndim + 1

    @property
    def tail(self) -> int:
        """Number of axes after that of the picked elements."""
        return self.mask.tail(self.full.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        head, sizes = self.mask.head, self.full.shape
        return (*sizes[:head], self._count(), *sizes[head + self.mask.picked.ndim :])

    def _count(self) -> Any:
        return op("item", op("sum", self.mask.picked))

    @property
    def size(self) -> Any:
        out = self._count()
        for k, size in enumerate(self.full.shape):
            if not self.mask.head <= k < self.mask.head + self.mask.picked.ndim:
                out = out * size
        return out

    @property
    def T(self) -> Any:
        if self.ndim == 1:
            self.viewed = True
            return self
        raise needs_elements()

    @property
    def real(self) -> Any:
        return lift(np.real, self)

    @property
    def imag(self) -> Any:
        return lift(np.imag, self)

    def filled(self, filler: Any = 1) -> Traced:
        """The elements at their places, ``filler`` elsewhere."""
        number = np.asarray(filler).astype(self.dtype)[()]
        return op("select", self.mask.over(self.full.ndim), self.full, number)

    def axes_of_full(self, axis: int) -> tuple[int, ...]:
        """The axes of `full` that an axis of the array, counted from the front, stands for."""
        head, width = self.mask.head, self.mask.picked.ndim
        if axis == head:
            return tuple(range(head, head + width))
        return (axis if axis < head else axis + width - 1,)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return METHODS["__array_ufunc__"](self, ufunc, method, *inputs, **kwargs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if func in REDUCTIONS:
            return REDUCTIONS[func](*args, **kwargs)
        if func in _ELEMENTWISE:
            return lift(FUNCTIONS[func], *args, **kwargs)
        return super().__array_function__(func, types, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name, None)
        if function in REDUCTIONS:
            return lambda *args, **kwargs: REDUCTIONS[function](self, *args, **kwargs)
        if name in ("astype", "copy", "clip", "round", "conj", "conjugate"):
            return lambda *args, **kwargs: lift(METHODS[name], self, *args, **kwargs)
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            raise needs_elements()
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<traced {self.dtype} array, picked by a mask>"

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        raise needs_elements()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise needs_elements()

    def bake(self) -> Any:
        raise needs_elements()

    def __getitem__(self, key: Any) -> Any:
        """Items of the other axes; all of the elements that the mask picks."""
        items = list(key) if isinstance(key, tuple) else [key]
        used = sum(item is not None and item is not Ellipsis for item in items)
        if Ellipsis not in [i for i in items if not isinstance(i, (np.ndarray, Recording))]:
            items.append(Ellipsis)
        at = next(k for k, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * (self.ndim - used)
        whole = slice(None)
        axes = [k for k, item in enumerate(items) if item is not None]
        basic = all(i is None or isinstance(i, (slice, int, TracedScalar)) for i in items)
        if not basic or used > self.ndim or items[axes[self.mask.head]] != whole:
            raise needs_elements()
        own = axes[self.mask.head]
        head = sum(item is None or isinstance(item, slice) for item in items[:own])
        items[own : own + 1] = [whole] * self.mask.picked.ndim
        self.viewed = True
        return Masked(self.full[tuple(items)], self.mask.moved(head), viewed=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise needs_elements()

    def __pow__(self, other: Any) -> Any:
        return lift(operator.pow, self, other)

    def __imatmul__(self, other: Any) -> Any:
        raise needs_elements()

    def __matmul__(self, other: Any) -> Any:
        return REDUCTIONS[np.dot](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return REDUCTIONS[np.dot](other, self)


def needs_elements() -> TraceError:
    """The error for what only an array of as many elements as a mask picks can serve."""
    return trace_error(
        "indexing with a boolean mask gives an array whose size depends on contents",
        "use np.where(mask, x, neutral_element)",
    )


# --- elements at their places -------------------------------------------------------------------


def lift(function: Callable, *args: Any, harmless: bool = False, **kwargs: Any) -> Masked:
    """``function``, which works element by element, of operands under one mask.

    ``harmless``: it may be called with whatever is where the mask does not pick; else with ones.
    Raises TraceError for operands under several masks, or of the size of what a mask picks.
    """
    masked = [x for x in (*args, *kwargs.values()) if isinstance(x, Masked)]
    first = masked[0]
    tail = max(x.tail for x in masked)
    mask = next(x.mask for x in masked if x.mask.head == max(x.mask.head for x in masked))

    def operand(x: Any) -> Any:
        if isinstance(x, Masked):
            if not same_mask(x.mask, first.mask) or x.tail != tail:
                raise needs_elements()
            return x.full if harmless else x.filled()
        if isinstance(x, (Traced, np.ndarray, list, tuple)) and ndim(x) > tail:
            raise needs_elements()
        return x

    found = function(*map(operand, args), **{k: operand(v) for k, v in kwargs.items()})
    if isinstance(found, tuple):
        return tuple(Masked(x, mask) for x in found)  # type: ignore[return-value]
    return Masked(found, mask)


def lift_ufunc(ufunc: np.ufunc, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """A ufunc of operands under one mask; raises TraceError for all keywords but ``dtype``."""
    if kwargs.keys() - {"dtype"}:
        raise needs_elements()
    return lift(ufunc, *inputs, harmless=ufunc.__name__ in HARMLESS, **kwargs)


def same_mask(one: Mask, two: Mask) -> bool:
    """Whether two masks pick the same places, as far as the graph tells."""
    a, b = one.picked.value, two.picked.value
    rec, memory, since = one.picked.rec, set[int](), min(one.values, two.values)
    todo, ops = [(a, b)], 0
    while todo:
        a, b = todo.pop()
        memory |= {memory_of(rec, a), memory_of(rec, b)}
        if a == b:
            continue
        made, other = rec.defs.get(a), rec.defs.get(b)
        ops += 1
        if made is None or other is None or made.op is not other.op or ops > _MOST_OPS:
            return False
        if made.blocks or not made.op.pure or len(made.results) != 1 or made.attrs != other.attrs:
            return False
        if len(made.operands) != len(other.operands):
            return False
        since = min(since, a, b)
        todo += zip(made.operands, other.operands, strict=True)
    return memory.isdisjoint(written_since(rec, since))


def memory_of(rec: Recorder, value: int) -> int:
    """The value whose memory a view shows, or the value itself."""
    while (made := rec.defs.get(value)) is not None:
        shared = made.op.shared_operands(made.results.index(value), len(made.operands))
        if not shared:
            break
        value = made.operands[shared[0]]
    return value


def written_since(rec: Recorder, since: int) -> Iterator[int]:
    """The memory that was written after the value ``since`` was made."""
    for block in rec.blocks:
        for instr in block.walk():
            if instr.op.writes and instr.results and instr.results[0] >= since:
                yield from (memory_of(rec, instr.operands[k]) for k in instr.op.writes)


# --- reading and writing ------------------------------------------------------------------------


def under_mask(x: Traced, key: Any) -> tuple[Traced, Mask] | None:
    """The view of ``x`` and the mask that pick what ``x[key]`` does; None for other keys.

    A key may have slices, numbers and newaxes beside one mask. Raises BoundsError for a mask that
    does not fit, and TraceError where NumPy's rule for several index arrays moves axes.
    """
    items = list(key) if isinstance(key, tuple) else [key]
    places = [k for k, item in enumerate(items) if is_mask(item)]
    if len(places) != 1:
        return None
    (at,) = places
    mask = as_traced(items[at])
    others = [i for k, i in enumerate(items) if k != at]
    if not all(
        i is None or i is Ellipsis or isinstance(i, (slice, TracedScalar)) or type(i) is int
        for i in others
    ):
        return None
    used = mask.ndim + sum(i is not None and i is not Ellipsis for i in others)
    if used > x.ndim:
        raise BoundsError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed",
            loc=user_loc(),
        )
    numbers = [k for k, i in enumerate(items) if type(i) is int or isinstance(i, TracedScalar)]
    if numbers and max(*numbers, at) - min(*numbers, at) != len(numbers):
        return None  # NumPy moves the axis of the picked elements to the front
    width = [slice(None)] * mask.ndim
    basic = [*items[:at], *width, *items[at + 1 :]]
    ellipsis = [k for k, i in enumerate(items) if i is Ellipsis]
    before = items[:at]
    if ellipsis and ellipsis[0] < at:
        rest = [slice(None)] * (x.ndim - used)
        before = [*items[: ellipsis[0]], *rest, *items[ellipsis[0] + 1 : at]]
        basic = [*before, *width, *items[at + 1 :]]
    head = sum(i is None or isinstance(i, slice) for i in before)
    plain = all(isinstance(i, slice) and i == slice(None) for i in basic if i is not Ellipsis)
    view = x if plain else x[tuple(basic)]
    _check_mask(view, mask, head)
    return view, Mask(mask, head)


def _check_mask(x: Traced, mask: Traced, head: int) -> None:
    for axis in range(mask.ndim):
        a, b = mask.hint[axis], x.hint[head + axis]
        if None in (a, b):
            continue
        # The sizes are compared for later calls, too: an axis of size 1 would broadcast.
        if a != b or not bool(mask.shape[axis] == x.shape[head + axis]):
            raise size_error(
                BoundsError,
                f"boolean index did not match indexed array along axis {head + axis}; size of axis "
                f"is {b} but size of corresponding boolean axis is {a}",
            )


def read_masked(x: Traced, mask: Mask) -> Masked:
    """``x[mask]``, ones at all places that the mask does not pick."""
    load_all()
    return Masked(Masked(x, mask).filled(), mask)


def assign_masked(array: Traced, mask: Mask, value: Any) -> None:
    """``array[mask] = value`` for what was computed under the same mask, or what broadcasts."""
    check_owner(array)
    if isinstance(value, Masked):
        if not same_mask(value.mask, mask) or value.tail != mask.tail(array.ndim):
            raise needs_elements()
        value = value.full if value.dtype == array.dtype else value.filled()
    elif ndim(value) > mask.tail(array.ndim):
        raise trace_error(
            "assignment of an array to the elements of a mask is not supported while tracing",
            "use x[...] = np.where(mask, values, x) with values of the shape of x",
        )
    elif isinstance(value, (Traced, np.ndarray, np.generic)) and not ndim(value):
        # NumPy casts even a single element of its own here, where ``x[...] = value`` converts it as
        # a number, and raises for one out of range.
        value = op("expand_dims", value, axes=(0,))
    new = op("conform", value, array, assign=True)
    write(array, op("select", mask.over(array.ndim), new, array), strict=False)


# --- operators ----------------------------------------------------------------------------------

_SAFE_OPS = frozenset({"add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"})


def _operator(python: str, safe: bool) -> Callable:
    function = getattr(operator, f"__{python}__")
    return lambda *xs: lift(function, *xs, harmless=safe)


def _reflected(python: str, safe: bool) -> Callable:
    function = getattr(operator, f"__{python}__")
    return lambda self, other: lift(function, other, self, harmless=safe)


def _in_place(python: str) -> Callable:
    function = getattr(operator, f"__{python}__")

    def method(self: Masked, other: Any) -> Masked:
        if self.viewed:
            raise needs_elements()
        found = lift(function, self, other)
        like = found.full
        # The result has to fit the array, whose shape and dtype stay.
        self.full = like if like.dtype == self.dtype else op("conform", found.filled(), self.full)
        return self

    return method


for _python in UNARY:
    setattr(Masked, f"__{_python}__", _operator(_python, True))
for _python, _name in OPERATORS.items():
    _safe = _name in _SAFE_OPS
    if _python != "pow":
        setattr(Masked, f"__{_python}__", _operator(_python, _safe))
    setattr(Masked, f"__r{_python}__", _reflected(_python, _safe))
for _name in COMPARISONS:
    setattr(Masked, f"__{_name}__", _operator(_name, True))
for _python in OPERATORS:
    setattr(Masked, f"__i{_python}__", _in_place(_python))

__all__ = ["Mask", "Masked", "assign_masked", "lift", "lift_ufunc", "read_masked", "under_mask"]
