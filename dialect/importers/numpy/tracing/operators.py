"""Recording one op, and the operators that traced arrays and numbers have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.device import is_foreign
from ....ir.types import ScalarType, TensorType
from ....ops.elementwise.operator_names import COMPARISONS, OPERATORS, UNARY
from ....trees.leaves import NUMBERS, TraceValue
from ..python.pausing import HARMLESS, unwatched
from .current import current, evaluator, trace_error
from .handler_tables import CREATION, METHODS, function_handler
from .recorder import Recorder
from .unsupported import unsupported_call

IN_PLACE = {**OPERATORS, "matmul": "matmul"}
_CLASSES: dict[type, type[Recording]] = {}  # type -> the class that stands for its values


@unwatched
def op(name: str, *operands: Any, view_of: Any = None, **attrs: Any) -> Any:
    """Record one op on anything array-like and return its traced result, or a tuple of several.

    ``view_of``: the array whose memory the result shares under NumPy.
    """
    rec = recorder_of(operands)
    if rec.evaluates:
        return rec.evaluate(name, operands, attrs)
    values = [as_value(rec, x) for x in operands]
    results = rec.emit(name, values, attrs)
    if len(results) != 1:
        return tuple(wrap(rec, r) for r in results)
    out = wrap(rec, results[0])
    if isinstance(view_of, np.ndarray):
        rec.captures.note_view(view_of)
    if isinstance(view_of, Recording):
        out.share(view_of)
    return out


def recorder_of(operands: Any = ()) -> Recorder:
    """The trace in progress, or what evaluates at once where there is none.

    Raises TraceError if there is neither, or operands are of another trace.
    """
    rec = current() or evaluator()
    for x in operands:
        if isinstance(x, Recording):
            x.check_live()
    if rec is None:
        raise trace_error("no function is being traced")
    return rec


def wrap(rec: Recorder, value: int) -> Any:
    """The traced object of a graph value."""
    if rec.evaluates:
        return value
    stands_for = ScalarType if isinstance(rec.hints[value], ScalarType) else TensorType
    return _CLASSES[stands_for](rec, value)


def as_value(rec: Recorder, x: Any) -> int:
    """The graph value of an operand: traced, a number, or an array the function closes over."""
    if isinstance(x, Recording):
        return x.value
    if type(x) in NUMBERS or isinstance(x, np.generic):
        return rec.constant(x)
    if isinstance(x, np.ndarray):
        return rec.captures.take(x)
    if is_foreign(x):
        return rec.captures.take_raw(x)
    if isinstance(x, (list, tuple)):
        return as_value(rec, CREATION["array"](x))
    raise trace_error(f"an object of type {type(x).__name__} is no operand of an array operation")


def is_operand(x: Any) -> bool:
    """True for what `as_value` takes."""
    kinds = (Recording, *NUMBERS, np.generic, np.ndarray, list, tuple)
    return isinstance(x, kinds) or is_foreign(x)


class Recording(TraceValue):
    """Operators shared by traced arrays and numbers.

    Class keyword: ``of``, the class of the types whose values a subclass stands for in traces.
    """

    __slots__ = ("__weakref__", "_value", "rec")
    __array_priority__ = 1000.0
    lifts = False  # True if operators and functions of this and a traced array are this one's

    def __init_subclass__(cls, *, of: type[ScalarType] | type[TensorType] | None = None) -> None:
        super().__init_subclass__()
        if of is not None:
            _CLASSES[of] = cls
            HARMLESS.add(cls)

    def __init__(self, rec: Recorder, value: int | None) -> None:
        self.rec = rec
        self._value = value

    @property
    def value(self) -> int:
        """The graph value this stands for."""
        assert self._value is not None
        return self._value

    @unwatched
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return METHODS["__array_ufunc__"](self, ufunc, method, *inputs, **kwargs)

    @unwatched
    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if not self.lifts and any(getattr(kind, "lifts", False) for kind in types):
            return NotImplemented
        handler = function_handler(func)
        if handler is None:
            raise unsupported_call(self.rec, func)
        return handler(*args, **kwargs)

    def takes(self, other: Any) -> bool:
        """True if operators combine this with ``other``.

        Raises TraceError for arrays of other libraries, whose own operators would take this apart.
        """
        if is_operand(other):
            return self.lifts or not getattr(type(other), "lifts", False)
        if getattr(type(other), "__array_ufunc__", None) is not None:
            raise trace_error(
                f"an object of type {type(other).__name__} is no operand while tracing: it gives "
                "NumPy's functions a meaning of their own",
                "make a plain array of it outside: np.asarray(x)",
            )
        return False

    def check_live(self) -> None:
        """Raise TraceError outside of the trace that this belongs to."""
        if self.rec is not current():
            raise trace_error(
                "a traced value is used outside of the trace that made it",
                "return it from the traced function instead of storing it elsewhere",
            )

    def share(self, base: Recording) -> None:
        """Note that this has the memory of ``base``; numbers have none."""

    def __repr__(self) -> str:
        from .texts import shown  # few functions make texts

        return shown(self)

    def __str__(self) -> str:
        from .texts import text

        return text(self, str)

    def __format__(self, spec: str) -> str:
        from .texts import text

        return text(self, lambda value: format(value, spec))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __bool__(self) -> bool:
        return bool(self.bake())

    def __int__(self) -> int:
        return int(self.bake())

    def __float__(self) -> float:
        return float(self.constant())

    def __complex__(self) -> complex:
        return complex(self.constant())

    def __index__(self) -> int:
        number = self.bake()
        if not isinstance(number, int):
            raise TypeError(f"{type(number).__name__!r} object cannot be interpreted as an integer")
        return number

    @property
    def is_open(self) -> bool:
        """True if only a run tells the contents, or the number."""
        return not self.rec.evaluates and self.value not in self.rec.known

    def bake(self) -> Any:
        """The number for the example arguments, guarded; raises TraceError if none is known."""
        self.check_live()
        return self.rec.numbers.bake(self.value)

    def constant(self) -> Any:
        """`bake` for code that computes with the number.

        Raises TraceError if a gradient is asked for that would not see this.
        """
        if self.rec.numbers.varies(self.value):
            raise trace_error(
                "a differentiated number is needed as a constant here, which has no gradient",
                "compute with operators and functions of np or math, or pass np.float64(x)",
            )
        return self.bake()


def _operator(name: str) -> tuple[Callable, Callable]:
    def forward(self: Any, other: Any) -> Any:
        return op(name, self, other) if self.takes(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return op(name, other, self) if self.takes(other) else NotImplemented

    return unwatched(forward), unwatched(reflected)


def _unary(name: str) -> Callable:
    return unwatched(lambda self: op(name, self))


for _python, _name in UNARY.items():
    setattr(Recording, f"__{_python}__", _unary(_name))
for _python, _name in OPERATORS.items():
    _forward, _reflected = _operator(_name)
    setattr(Recording, f"__{_python}__", _forward)
    setattr(Recording, f"__r{_python}__", _reflected)
for _name in COMPARISONS:
    setattr(Recording, f"__{_name}__", _operator(_name)[0])
