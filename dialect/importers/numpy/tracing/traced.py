"""The arrays that a traced function sees in place of its arguments, and that record what is done.

`Traced` stands for an ndarray, or a NumPy scalar; `TracedScalar` stands for a Python number.  It
records one instruction per operation and follows NumPy's semantics.

To ``isinstance`` it is what it stands for: otherwise, code that asks would silently take another
branch.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ShapeError
from ....ir.types import Shape, TensorType
from ....trees.leaves import register_leaf_type
from ..python.pausing import bound_method, unwatched
from . import operators
from .current import contents_error, evaluator, size_error, trace_error
from .flat import Flat
from .handler_tables import METHODS, method_handler
from .mutation import Storage, filled_array, is_immutable, operate
from .operators import COMPARISONS, IN_PLACE, Recording, op
from .recorder import Recorder
from .traced_scalar import OF_COMPLEX, TracedScalar, as_float, is_int
from .unsupported import unsupported_method

# Parts of arrays that are recorded one by one, unless the function has to become a graph: Python
# computes with more in less time than it takes to make and compile a graph for each size.
_ELEMENTS, _ROWS = 256, 2048


class Traced(Recording):
    """An array that records: one of a traced call (`TracedArray`), or of the tape.

    ``shape`` of traced arrays has traced sizes, ``ndim`` and ``dtype`` are constants of the trace.
    """

    __slots__ = ("storage",)
    __hash__ = None  # type: ignore[assignment]
    storage: Storage | None

    if TYPE_CHECKING:  # subclasses have the methods of ndarrays

        def __getattr__(self, name: str) -> Any: ...

    # --- attributes ---------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        if self.ndim:
            return np.ndarray
        if self.rec.evaluates:
            return np.ndarray if self.storage else self.dtype.type
        # NumPy's functions return scalars for rank 0; arrays of rank 0 are made as such, and stay
        # so when they are written. An element that an index has picked is no view.
        definition = self.rec.defs.get(self.value)
        is_written = self.storage is not None and not (definition is not None and definition.op.aliases)
        return np.ndarray if is_written or not is_immutable(self) else self.dtype.type

    @property
    def hint(self) -> Shape:
        """Shape for the example arguments; None where it depends on array contents."""
        return self.rec.shape(self.value)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(TracedScalar(self.rec, None, (self.value, k)) for k in range(self.ndim))

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise trace_error("the shape of an array cannot be assigned while tracing", "write x = x.reshape(shape)")

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
        return Flat(self)

    # --- Python protocols ---------------------------------------------------------------------

    def __bool__(self) -> bool:
        self.check_live()
        if self.value not in self.rec.known:
            self._note_use()
            if self.ndim and self.hint.count(1) != self.ndim:
                raise size_error(
                    ShapeError,
                    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
                )
            raise contents_error(
                "the truth of an array's contents is not known while tracing",
                "use np.where to choose elements, or pf.cond / pf.while_loop to choose what runs",
            )
        return super().__bool__()

    def bake(self) -> Any:
        self.check_live()
        if self.value not in self.rec.known:
            self._note_use()
            raise contents_error(
                "a Python number is needed here, but an array's contents are not known while tracing",
                "keep it an array (x.astype(float) instead of float(x)), or use pf.cond / pf.while_loop / np.where",
            )
        return super().bake()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.check_live()
        filled = filled_array(self)
        if filled is not None:
            return filled if dtype is None else filled.astype(dtype)
        self._note_use()
        raise trace_error(
            "an array's contents are needed here, but are not known while tracing",
            "call NumPy functions as np.<name>; make one array of a list with np.stack first; "
            "assign to elements of arrays made in the function (np.zeros) or copied in it only; "
            "index arrays from outside with np.take(array, index, axis=0)",
        )

    def __int__(self) -> int:
        number = self.bake()
        frame = sys._getframe(1)
        # An array that the trace did not make asks for an int only, whatever the dtype here is;
        # NumPy casts, by dtypes, what is out of range of its elements.
        if _opname(frame) in _ASSIGNS and not 0 <= number < 128:
            self.rec.writes_new = True
            raise trace_error(
                "a computed number is written to an array of constants, which may not hold it",
                "make the array with np.zeros, np.ones or np.full, or cast the number first",
            )
        return int(number)

    def _note_use(self) -> None:
        """Note it where NumPy needs this as an element, or as an index, of an array of its own."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename in _HERE:
            frame = frame.f_back
        if frame is not None and _opname(frame) in (*_ASSIGNS, "BINARY_SUBSCR"):
            self.rec.writes_new = True

    def __len__(self) -> int:
        if not self.ndim:
            kind = self.__class__
            of_scalar = f"object of type 'numpy.{kind.__name__}' has no len()"
            raise TypeError("len() of unsized object" if kind is np.ndarray else of_scalar)
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            kind = self.__class__
            of_scalar = f"'numpy.{kind.__name__}' object is not iterable"
            raise TypeError("iteration over a 0-d array" if kind is np.ndarray else of_scalar)
        count = len(self)
        if self.rec.most_ops is not None and count > (_ROWS if self.ndim > 1 else _ELEMENTS):
            raise trace_error(
                "Python iterates over the parts of a long array, each of which would have ops of its own in the graph",
                "use a for statement, or functions of whole arrays",
            )
        return (self[k] for k in range(count))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    @unwatched
    def __getitem__(self, key: Any) -> Any:
        return METHODS["__getitem__"](self, key)

    @unwatched
    def __setitem__(self, key: Any, value: Any) -> None:
        METHODS["__setitem__"](self, key, value)

    @unwatched
    def __pow__(self, other: Any) -> Any:
        if not self.takes(other):
            return NotImplemented
        short = shortcut(self, other)
        if short:
            return op(short, self)
        power = op("pow", self, other)
        if isinstance(other, TracedScalar) and other.kind is float and self.dtype in _OWN_ROOT:
            return op("select", other == 0.5, op("sqrt", self), power)
        return power

    @unwatched
    def __mul__(self, other: Any) -> Any:
        if type(other) in _SEQUENCES and (repeated := _repeated(other, self)) is not None:
            return repeated
        return op("mul", self, other) if self.takes(other) else NotImplemented

    @unwatched
    def __rmul__(self, other: Any) -> Any:
        if type(other) in _SEQUENCES and (repeated := _repeated(other, self)) is not None:
            return repeated
        return op("mul", other, self) if self.takes(other) else NotImplemented

    @unwatched
    def __matmul__(self, other: Any) -> Any:
        return op("matmul", self, other) if _multiplies(self, other) else NotImplemented

    @unwatched
    def __rmatmul__(self, other: Any) -> Any:
        return op("matmul", other, self) if _multiplies(self, other) else NotImplemented

    # --- memory -------------------------------------------------------------------------------

    def share(self, base: Recording) -> None:
        if isinstance(base, Traced) and (base.ndim or not is_immutable(base)):
            if base.storage is None:
                base.storage = Storage()
            self.storage = base.storage


# Methods and attributes that NumPy's scalars have, and arrays lack, such as `is_integer`.
_OF_SCALARS = frozenset(
    name
    for scalar in (np.float64, np.int64)
    for name in dir(scalar)
    if not (name.startswith("_") or hasattr(np.ndarray, name))
)


# Attributes that arrays of the tape have, and ndarrays lack.
OF_TAPE = frozenset(
    {
        "backward",
        "detach",
        "grad",
        "is_leaf",
        "node",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "requires_grad",
        "retain_grad",
    }
)


@register_leaf_type
class TracedArray(Traced, of=TensorType):
    """An array of the traced call."""

    __slots__ = ()

    def __init__(self, rec: Recorder, value: int, owner: str | None = None, *, is_input: bool = False) -> None:
        super().__init__(rec, value)
        self.storage = Storage(owner, value if is_input else None) if owner else None
        if is_input:
            rec.stand_ins[id(self)] = self, value

    def __getattr__(self, name: str) -> Any:
        exists = hasattr(np.ndarray, name) and not name.startswith("__")
        if name in _OF_SCALARS:
            exists = not self.ndim and hasattr(self.dtype.type, name)
        handler = method_handler(name) if exists else METHODS.get(name)
        if handler is not None:
            return bound_method(self, name, handler)
        if exists:
            raise unsupported_method(self.rec, name)
        if name in OF_TAPE:  # the same graph serves plain arrays, which have no such attributes
            raise trace_error(
                f"{name} is known of arrays of the tape, and not while tracing",
                "read it outside of the traced function",
            )
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}", name=name)


def is_differentiated(x: Any) -> bool | None:
    """True if a traced array stands for one whose gradients are noted; None for what is not traced.

    Raises TraceError where that is not known: a graph serves arrays of the tape and plain ones.
    """
    if type(x) is not TracedArray:
        return None
    x.check_live()
    if not x.rec.numbers.variables:
        raise trace_error(
            "whether an array is one of the tape is not known while tracing", "ask outside of the traced function"
        )
    return x.rec.flow.flows(x.value)


def is_tracing(values: Iterable[Any]) -> bool:
    """True if one of these leaves belongs to a trace in progress."""
    return any(isinstance(v, Recording) and not v.rec.evaluates for v in values)


def is_on_tape(values: Iterable[Any]) -> bool:
    """True if one of these leaves is an array of the tape, whose ops are evaluated at once."""
    return evaluator() is not None and any(isinstance(v, Traced) and v.rec.evaluates for v in values)


_HERE = (__file__, operators.__file__)
_ASSIGNS = ("STORE_SUBSCR", "STORE_SLICE")


def _opname(frame: FrameType) -> str:
    """The name of the operation that the code of a frame is doing."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def _multiplies(x: Traced, other: Any) -> bool:
    """True if ``@`` is defined for two operands: not for NumPy scalars alone."""
    other_is_scalar = is_immutable if isinstance(other, Recording) else np.isscalar
    return x.takes(other) and not (is_immutable(x) and other_is_scalar(other))


_SEQUENCES = frozenset({str, bytes, bytearray, list, tuple})


def _repeated(sequence: Any, times: Traced) -> Any:
    """A sequence so many times, which is what a NumPy scalar makes of it; None if it is an operand.

    Raises TypeError for floats, and TraceError where contents decide how often.
    """
    if isinstance(times, np.integer):
        return sequence * times.__index__()
    if isinstance(times, np.generic):
        kind = f"{type(sequence).__name__} by non-int of type 'numpy.{times.dtype.name}'"
        raise TypeError(f"can't multiply sequence {kind}")
    if type(sequence) in (list, tuple):
        return None
    raise trace_error(f"an object of type {type(sequence).__name__} is no operand of an array operation")


# In these dtypes ``x ** 0.5`` is the square root, but np.power(x, 0.5) is not.
_OWN_ROOT = (np.float16, np.complex64, np.complex128)


def shortcut(base: Traced, exponent: Any) -> str | None:
    """The op that NumPy's ``**`` runs for this exponent; np.power may differ in the last bit."""
    kind = base.dtype.kind
    if kind in "iu" and type(exponent) is int:
        return {2: "square", 1: "positive"}.get(exponent)
    if kind == "b" and not is_immutable(base) and is_int(exponent) and bool(exponent == 2):
        return "square"  # of an array of bools it makes int8, where np.power makes int64
    if kind in "fc" and type(exponent) in (int, float):
        return {2: "square", 1: "positive", 0.5: "sqrt", -1: "reciprocal"}.get(exponent)
    return None


def _in_place(name: str) -> Callable:
    @unwatched
    def method(self: Traced, other: Any) -> Any:
        if not self.takes(other):
            return NotImplemented
        short = shortcut(self, other) if name == "pow" else None
        return operate(self, short) if short else operate(self, name, other)

    return method


def _by_complex(method: Callable) -> Callable:
    @unwatched
    def call(self: TracedArray, other: Any) -> Any:
        if type(other) is complex and type(number := as_float(self)) is TracedScalar:
            return method(number, other)
        return method(self, other)

    return call


for _python in OF_COMPLEX:
    if _python not in COMPARISONS:
        _method = getattr(TracedArray, f"__r{_python}__")
        setattr(TracedArray, f"__r{_python}__", _by_complex(_method))
for _python, _name in IN_PLACE.items():
    setattr(Traced, f"__i{_python}__", _in_place(_name))
