"""``x[mask]`` as a value of full size, and assignment where a mask holds.

How many elements a mask picks is known only at run time. What is read under a mask, computed
element by element and written back under the same mask needs no count: it stays an array of full
size, of which only the elements that the mask picks mean anything. What needs more, as sorting
does, has the elements themselves, which are picked on the host.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ....errors import TraceError
from ....trees.leaves import register_leaf_type
from ..tracing.current import trace_error
from ..tracing.handler_tables import FUNCTIONS, METHODS, load_all
from ..tracing.mutation import check_owner, write
from ..tracing.operators import COMPARISONS, OPERATORS, UNARY, Recording, op
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import ndim, settled_key
from .mask_keys import Mask, is_written, same_mask

# Ufuncs that neither fail nor warn, whatever the elements that no mask picks are.
HARMLESS = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "negative",
        "positive",
        "absolute",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "isnan",
        "isinf",
        "isfinite",
        "sign",
        "square",
        "conjugate",
    }
)

# Functions of NumPy that compute each element from those at its place.
_ELEMENTWISE = (
    np.where,
    np.clip,
    np.round,
    np.around,
    np.fix,
    np.nan_to_num,
    np.isclose,
    np.real,
    np.imag,
    np.angle,
    np.sinc,
    np.copy,
    np.zeros_like,
    np.ones_like,
    np.full_like,
    np.empty_like,
)

REDUCTIONS: dict[Any, Callable] = {}  # NumPy function -> handler of masked operands


@register_leaf_type
class Masked(Recording):
    """The array that ``x[mask]`` gives, with as many elements as the mask picks, one axis for them.

    Attributes:
        full: the elements at their places, and others at all other places.
        mask: which of them the array has.
        viewed: there may be views of the array, or it is one.
        source: the array of which this is a view, and the key.
    """

    __slots__ = ("_block", "_elements", "full", "mask", "source", "viewed")
    lifts = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, full: Traced, mask: Mask, source: tuple[Masked, Any] | None = None) -> None:
        super().__init__(full.rec, None)
        self.full, self.mask, self.source = full, mask, source
        self.viewed = source is not None
        self._block = self.rec.blocks[-1]
        self._elements: Traced | None = None

    @property
    def value(self) -> int:
        """The array itself, for all that needs more than elements at their places."""
        return self.elements().value

    def elements(self) -> Traced:
        """An array of as many elements as the mask picks: the same memory at every call.

        Raises TraceError in a block below that in which the mask was read, or if the mask has been
        written since then.
        """
        if self.rec.blocks[-1] is not self._block:
            raise trace_error(
                "a branch or a loop needs elements that a boolean mask has picked outside of it",
                "pick them there: x[mask] inside of the branch",
            )
        if self._elements is None:
            if self.source is not None:
                base, key = self.source
                self._elements = base.elements()[key]
            else:
                from .host import call

                self.mask.check_unwritten()
                key = (*[slice(None)] * self.mask.head, self.mask.picked)
                self._elements = call("numpy.ndarray.__getitem__", (self.full, key), {})
        return self._elements

    def hold(self, value: Any) -> bool:
        """Have the elements that were computed under the same mask; False where a view may share those of now."""
        if self.viewed or self._elements is not None or type(value) is not Masked:
            return False
        if not same_mask(value.mask, self.mask) or value.tail != self.tail:
            return False
        # These have to fit the array, whose shape and dtype stay; only elements that are numbers cannot be longer.
        fits = not self.tail and value.full.dtype == self.dtype
        self.full = value.full if fits else op("conform", value.filled(), self.full)
        return True

    def is_written(self) -> bool:
        """True if the elements, which a view may share, hold something else than `full`."""
        if self.source is not None:
            return self.source[0].is_written()
        elements = self._elements
        return elements is not None and is_written(self.rec, elements.value, elements.value)

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
        return self.elements().T

    @property
    def real(self) -> Any:
        return self._part("real", np.real)

    @property
    def imag(self) -> Any:
        return self._part("imag", np.imag)

    def _part(self, name: str, function: Callable) -> Any:
        """A part of complex numbers, which is a view; that of others is the array, or new."""
        if self.dtype.kind == "c" or self.is_written():
            return getattr(self.elements(), name)
        return lift(function, self)

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
        if method != "__call__":
            return getattr(ufunc, method)(*settled(inputs), **settled(kwargs))
        return lift_ufunc(ufunc, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if func in REDUCTIONS:
            return attempt(REDUCTIONS[func], func, args, kwargs)
        if func in _ELEMENTWISE:
            return attempt(partial(lift, FUNCTIONS[func]), func, args, kwargs)
        return func(*settled(args), **settled(kwargs))

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name, None)
        if function in REDUCTIONS and hasattr(np.ndarray, name):
            return self._method(name, REDUCTIONS[function])
        if name in ("astype", "copy", "clip", "round", "conj", "conjugate"):
            return self._method(name, partial(lift, METHODS[name]))
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            return getattr(self.elements(), name)
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def _method(self, name: str, masked: Callable) -> Callable:
        def plain(array: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(array, name)(*args, **kwargs)

        return lambda *args, **kwargs: attempt(masked, plain, (self, *args), kwargs)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.elements().__array__(dtype, copy)  # raises, as that of any traced array

    def bake(self) -> Any:
        return self.elements().bake()

    def __getitem__(self, key: Any) -> Any:
        """Items of the other axes; all of the elements that the mask picks."""
        items = list(key) if isinstance(key, tuple) else [key]
        count = sum(item is not None and item is not Ellipsis for item in items)
        if Ellipsis not in [i for i in items if not isinstance(i, (np.ndarray, Recording))]:
            items.append(Ellipsis)
        at = next(k for k, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * (self.ndim - count)
        whole = slice(None)
        axes = [k for k, item in enumerate(items) if item is not None]
        basic = all(i is None or isinstance(i, (slice, int, TracedScalar)) for i in items)
        if not basic or count > self.ndim or items[axes[self.mask.head]] != whole or self.is_written():
            return self.elements()[key]
        own = axes[self.mask.head]
        head = sum(item is None or isinstance(item, slice) for item in items[:own])
        items[own : own + 1] = [whole] * self.mask.picked.ndim
        self.viewed = True
        return Masked(self.full[tuple(items)], self.mask.moved(head), (self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.elements()[key] = settled_key(value)

    def __pow__(self, other: Any) -> Any:
        return attempt(partial(lift, operator.pow), operator.pow, (self, other), {})

    def __imatmul__(self, other: Any) -> Any:
        return operator.imatmul(self.elements(), settled_key(other))

    def __matmul__(self, other: Any) -> Any:
        return attempt(REDUCTIONS[np.dot], operator.matmul, (self, other), {})

    def __rmatmul__(self, other: Any) -> Any:
        return attempt(REDUCTIONS[np.dot], operator.matmul, (other, self), {})


class NeedsElements(TraceError):
    """Raised, and caught in `attempt`, where elements at their places do not do."""


def needs_elements() -> NeedsElements:
    """The error for what only an array of as many elements as a mask picks can serve."""
    return NeedsElements("a boolean mask gives an array whose size depends on contents")


def settled(x: Any) -> Any:
    """An argument, or several, in which the elements stand for what a mask picks."""
    if isinstance(x, Masked):
        return x.elements()
    if type(x) in (tuple, list):
        return type(x)(map(settled, x))
    if type(x) is dict:
        return {name: settled(item) for name, item in x.items()}
    return x


def attempt(masked: Callable, plain: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """``masked`` of arguments under one mask; where that does not do, ``plain`` of elements."""
    operands = [x for x in (*args, *kwargs.values()) if isinstance(x, Masked)]
    if operands and not any(x.is_written() for x in operands):
        try:
            return masked(*args, **kwargs)
        except NeedsElements:
            pass
    return plain(*settled(args), **settled(kwargs))


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

    result = function(*map(operand, args), **{k: operand(v) for k, v in kwargs.items()})
    if isinstance(result, tuple):
        return tuple(Masked(x, mask) for x in result)  # type: ignore[return-value]
    return Masked(result, mask)


def lift_ufunc(ufunc: np.ufunc, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """A ufunc of operands under one mask; of their elements for all keywords but ``dtype``."""
    if kwargs.keys() - {"dtype"}:
        return ufunc(*settled(inputs), **settled(kwargs))
    masked = partial(lift, ufunc, harmless=ufunc.__name__ in HARMLESS)
    return attempt(masked, ufunc, inputs, kwargs)


# --- reading and writing ------------------------------------------------------------------------


def read_masked(x: Traced, mask: Mask) -> Masked:
    """``x[mask]``, ones at all places that the mask does not pick."""
    load_all()
    return Masked(Masked(x, mask).filled(), mask)


def assign_masked(array: Traced, mask: Mask, value: Any) -> None:
    """``array[mask] = value`` for what was computed under the same mask, or what broadcasts."""
    check_owner(array)
    if isinstance(value, Masked):
        if value.is_written() or not same_mask(value.mask, mask) or value.tail != mask.tail(array.ndim):
            raise trace_error(
                "assignment of elements of another mask is not supported while tracing",
                "compute them under the same mask",
            )
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
    return lambda *xs: attempt(partial(lift, function, harmless=safe), function, xs, {})


def _reflected(python: str, safe: bool) -> Callable:
    function = getattr(operator, f"__{python}__")
    masked = partial(lift, function, harmless=safe)
    return lambda self, other: attempt(masked, function, (other, self), {})


def _in_place(python: str) -> Callable:
    function = getattr(operator, f"__{python}__")
    in_place = getattr(operator, f"__i{python}__")

    def method(self: Masked, other: Any) -> Masked:
        try:
            if self.viewed or self._elements is not None:
                raise needs_elements()
            result = lift(function, self, other)
        except NeedsElements:
            result = None
        if not self.hold(result):
            in_place(self.elements(), settled_key(other))  # writes to the memory that views share
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
