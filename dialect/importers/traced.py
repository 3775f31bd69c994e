"""What a traced function sees in place of its arguments: arrays and numbers that record.

`Traced` stands for an ndarray (or NumPy scalar), `TracedScalar` for a Python number, sizes
included.  Both record one instruction per operation and follow NumPy's semantics; a Python number
that is needed as such (``range(n)``, ``if n > 3``) is baked into the graph under a guard.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..types import ScalarType, Shape
from .mutation import Storage, update
from .pytree import register_leaf_type
from .recorder import Recorder, current, trace_error, user_loc
from .registry import FUNCTIONS, METHODS, UFUNCS, refuse_parameter

_NUMBERS = (bool, int, float, complex)
_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_div",
    "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "shift_left", "rshift": "shift_right",
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def op(name: str, *operands: Any, view_of: Any = None, **attrs: Any) -> Any:
    """Record one op on anything array-like; the traced result (a tuple if there are several).

    ``view_of``: the array whose memory the result shares under NumPy.
    """
    rec = recorder_of(operands)
    results = rec.emit(name, [as_value(rec, x) for x in operands], attrs)
    if len(results) != 1:
        return tuple(wrap(rec, r) for r in results)
    out = wrap(rec, results[0])
    if isinstance(view_of, Traced) and isinstance(out, Traced):
        out.storage = view_of.shared_storage()
        out.storage.members.append(weakref.ref(out))
    return out


def recorder_of(operands: Any = ()) -> Recorder:
    """The trace in progress; raises TraceError if there is none or the values are another's."""
    rec = current()
    for x in operands:
        if isinstance(x, _Recording) and x.rec is not rec:
            raise trace_error(
                "a traced value is used outside of the trace that made it",
                "return it from the traced function instead of storing it elsewhere",
            )
    if rec is None:
        raise trace_error("no function is being traced")
    return rec


def wrap(rec: Recorder, value: int) -> Any:
    """The traced object of a graph value."""
    if isinstance(rec.hints[value], ScalarType):
        return TracedScalar(rec, value)
    return Traced(rec, value)


def as_value(rec: Recorder, x: Any) -> int:
    """The graph value of an operand: traced, a number, or an array the function closes over."""
    if isinstance(x, _Recording):
        return x.value
    if type(x) in _NUMBERS or isinstance(x, np.generic):
        return rec.constant(x)
    if isinstance(x, np.ndarray):
        return rec.capture(x)
    if isinstance(x, (list, tuple)):
        from .numpy_creation import array

        return as_value(rec, array(x))
    raise trace_error(f"an object of type {type(x).__name__} is no operand of an array operation")


def is_operand(x: Any) -> bool:
    """True for what `as_value` takes."""
    return isinstance(x, (_Recording, *_NUMBERS, np.generic, np.ndarray, list, tuple))


class _Recording:
    """Operators shared by traced arrays and numbers."""

    __slots__ = ("__weakref__", "_value", "rec")
    __array_priority__ = 1000.0

    def __init__(self, rec: Recorder, value: int | None) -> None:
        self.rec = rec
        self._value = value

    @property
    def value(self) -> int:
        """The graph value this stands for."""
        assert self._value is not None
        return self._value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .numpy_ufuncs import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        handler = FUNCTIONS.get(func)
        if handler is None:
            from .unsupported import unsupported_call

            raise unsupported_call(self.rec, func)
        return handler(*args, **kwargs)

    def takes(self, other: Any) -> bool:
        """True if operators combine this with ``other``."""
        return is_operand(other)

    def __neg__(self) -> Any:
        return op("neg", self)

    def __pos__(self) -> Any:
        return op("positive", self)

    def __abs__(self) -> Any:
        return op("abs", self)

    def __invert__(self) -> Any:
        return op("bitwise_not", self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return power(self, other) if self.takes(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return power(other, self) if self.takes(other) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.bake())

    def __int__(self) -> int:
        return int(self.bake())

    def __float__(self) -> float:
        return float(self.bake())

    def __complex__(self) -> complex:
        return complex(self.bake())

    def __index__(self) -> int:
        number = self.bake()
        if not isinstance(number, int):
            raise TypeError(f"{type(number).__name__!r} object cannot be interpreted as an integer")
        return number

    def bake(self) -> Any:
        """The number for the example arguments, guarded; raises TraceError if none is known."""
        return self.rec.bake(self.value)


def _operator(name: str) -> tuple[Callable, Callable]:
    def forward(self: Any, other: Any) -> Any:
        return op(name, self, other) if self.takes(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return op(name, other, self) if self.takes(other) else NotImplemented

    return forward, reflected


for _python, _name in _OPERATORS.items():
    _forward, _reflected = _operator(_name)
    setattr(_Recording, f"__{_python}__", _forward)
    setattr(_Recording, f"__r{_python}__", _reflected)
for _name in _COMPARISONS:
    setattr(_Recording, f"__{_name}__", _operator(_name)[0])


def power(a: Any, b: Any) -> Any:
    """``a ** b`` as the operator of NumPy arrays and of Python numbers computes it."""
    if isinstance(a, Traced) and type(b) in (int, float):
        # NumPy's operator takes these shortcuts, which differ from np.power in the last bit.
        kind = a.dtype.kind
        short: dict[float, str] = {2: "square", 1: "positive"} if kind in "iu" else {}
        if kind in "fc":
            short = {2: "square", 1: "positive", 0.5: "sqrt", -1: "reciprocal"}
        if b in short and not (kind in "iu" and type(b) is float):
            return op(short[b], a)
    if _is_int_number(a) and _is_int_number(b) and _is_negative(b):
        a = a * 1.0
    return op("pow", a, b)


def _is_negative(x: Any) -> bool:
    """Baked for a traced number: whether a power of ints is an int or a float hangs on it."""
    return isinstance(x, TracedScalar) and bool(x < 0)


def _is_int_number(x: Any) -> bool:
    if isinstance(x, TracedScalar):
        return x.kind in (bool, int)
    return type(x) in (bool, int)


@register_leaf_type
class TracedScalar(_Recording):
    """A Python number of the traced call: an argument, a size, or computed from those.

    A size is recorded at its first use only, by a ``dim`` op on its array.
    """

    __slots__ = ("_dim", "kind")

    def __init__(
        self, rec: Recorder, value: int | None, dim: tuple[int, int] | None = None
    ) -> None:
        super().__init__(rec, value)
        self._dim = dim
        self.kind: type = int
        if value is not None:
            self.kind = type(rec.dtype(value).type(0).item())

    @property
    def value(self) -> int:
        if self._dim is not None:
            return recorder_of((self,)).dim(*self._dim)
        assert self._value is not None
        return self._value

    def takes(self, other: Any) -> bool:
        """True if operators combine this with ``other``; sequences are not numbers."""
        return is_operand(other) and not isinstance(other, (list, tuple))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)):
            return self.__index__() * other
        return op("mul", self, other) if self.takes(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)):
            return other * self.__index__()
        return op("mul", other, self) if self.takes(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.bake())

    def __repr__(self) -> str:
        known = self.rec.known.get(self.value)
        return f"<traced {self.kind.__name__}{'' if known is None else f', here {known!r}'}>"

    def __format__(self, spec: str) -> str:
        return format(self.bake(), spec) if spec else repr(self)

    def __round__(self, digits: int | None = None) -> Any:
        if self.kind is not float:
            return self
        return round(self.bake(), digits)

    def __trunc__(self) -> int:
        return self if self.kind is int else int(self.bake())  # type: ignore[return-value]

    def __floor__(self) -> int:
        return self if self.kind is int else self.bake().__floor__()  # type: ignore[return-value]

    def __ceil__(self) -> int:
        return self if self.kind is int else self.bake().__ceil__()  # type: ignore[return-value]

    @property
    def real(self) -> Any:
        return op("real", self)

    @property
    def imag(self) -> Any:
        return op("imag", self)

    def conjugate(self) -> Any:
        """Complex conjugate; the number itself unless it is complex."""
        return complex(self.real, -self.imag) if self.kind is complex else self


@register_leaf_type
class Traced(_Recording):
    """An array of the traced call. ``shape`` holds traced sizes, ``ndim`` and ``dtype`` are
    constants of the trace.
    """

    __slots__ = ("storage",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rec: Recorder, value: int, owner: str | None = None) -> None:
        super().__init__(rec, value)
        self.storage: Storage | None = Storage(owner) if owner else None

    # --- attributes ---------------------------------------------------------------------------

    @property
    def hint(self) -> Shape:
        """Shape for the example arguments; None where it depends on array contents."""
        return self.rec.shape(self.value)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(TracedScalar(self.rec, None, (self.value, k)) for k in range(self.ndim))

    @property
    def ndim(self) -> int:
        return len(self.hint)

    @property
    def dtype(self) -> np.dtype:
        return self.rec.dtype(self.value)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> Any:
        return op("size", self) if self.ndim else 1

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        return METHODS["transpose"](self)

    @property
    def mT(self) -> Any:
        return METHODS["swapaxes"](self, -1, -2)

    @property
    def real(self) -> Any:
        return op("real", self, view_of=self)

    @property
    def imag(self) -> Any:
        return op("imag", self, view_of=self)

    @property
    def flat(self) -> Any:
        return iter(METHODS["ravel"](self))

    def __getattr__(self, name: str) -> Any:
        handler = METHODS.get(name)
        if handler is not None:
            return lambda *args, **kwargs: handler(self, *args, **kwargs)
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            from .unsupported import unsupported_method

            raise unsupported_method(self.rec, name)
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def __repr__(self) -> str:
        sizes = ", ".join("?" if d is None else str(d) for d in self.hint)
        return f"<traced {self.dtype} array, here of shape ({sizes})>"

    # --- Python protocols ---------------------------------------------------------------------

    def __bool__(self) -> bool:
        if self.value not in self.rec.known:
            if self.ndim and self.hint.count(1) != self.ndim:
                raise ShapeError(
                    "The truth value of an array with more than one element is ambiguous. "
                    "Use a.any() or a.all()", loc=user_loc(),
                )  # fmt: skip
            raise trace_error(
                "the truth of an array's contents is not known while tracing",
                "use np.where to choose elements, or pf.cond / pf.while_loop to choose what runs",
            )
        return super().__bool__()

    def bake(self) -> Any:
        if self.value not in self.rec.known:
            raise trace_error(
                "a Python number is needed here, but an array's contents are not known while "
                "tracing",
                "keep it an array (x.astype(float) instead of float(x)), or use pf.cond / "
                "pf.while_loop / np.where",
            )
        return super().bake()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise trace_error(
            "an array's contents are needed here, but are not known while tracing",
            "use NumPy functions that profuse supports, reached as np.<name>",
        )

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __getitem__(self, key: Any) -> Any:
        from .indexing import get_item

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise trace_error(
            "assignment to elements of an array is not supported while tracing",
            "build a new array with np.where, np.concatenate or np.stack",
        )

    def __matmul__(self, other: Any) -> Any:
        return op("matmul", self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return op("matmul", other, self) if is_operand(other) else NotImplemented

    # --- in-place operators -------------------------------------------------------------------

    def shared_storage(self) -> Storage:
        """The memory record that views of this array join."""
        if self.storage is None:
            self.storage = Storage()
        if not any(m() is self for m in self.storage.members):
            self.storage.members.append(weakref.ref(self))
        return self.storage

    def become(self, value: int) -> None:
        """Stand for another graph value from now on."""
        self._value = value


def _in_place(call: Callable) -> Callable:
    def method(self: Traced, other: Any) -> Any:
        result = call(self, other)
        return result if result is NotImplemented else update(self, result)

    return method


for _python in (*_OPERATORS, "pow", "matmul"):
    setattr(Traced, f"__i{_python}__", _in_place(getattr(Traced, f"__{_python}__")))

__all__ = [
    "FUNCTIONS", "UFUNCS", "Storage", "Traced", "TracedScalar", "as_value", "is_operand", "op",
    "power", "recorder_of", "refuse_parameter", "wrap",
]  # fmt: skip
