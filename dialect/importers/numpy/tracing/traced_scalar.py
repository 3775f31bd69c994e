"""The numbers that a traced function sees in place of Python's, and that record what is done.

`TracedScalar` stands for a number among the arguments, for a size of an array, or for what is
computed of these.  A number that is needed as such (``range(n)``, ``if n > 3``) is baked into the
graph under a guard.  To ``isinstance`` it is an int, a float, a complex or a bool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.types import ScalarType
from ....trees.leaves import register_leaf_type
from ..python.pausing import unwatched
from .mutation import is_immutable
from .operators import Recording, op, recorder_of
from .recorder import Recorder


@register_leaf_type
class TracedScalar(Recording, of=ScalarType):
    """A Python number of the traced call: an argument, a size, or computed from those.

    A size is recorded at its first use only, by a ``dim`` op on its array.
    """

    __slots__ = ("_dim", "kind")

    def __init__(self, rec: Recorder, value: int | None, dim: tuple[int, int] | None = None) -> None:
        super().__init__(rec, value)
        self._dim = dim
        self.kind: type = int
        if value is not None:
            self.kind = type(rec.dtype(value).type(0).item())

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.kind

    @property
    def value(self) -> int:
        if self._dim is not None:
            return recorder_of((self,)).dim(*self._dim)
        assert self._value is not None
        return self._value

    def __getattr__(self, name: str) -> Any:
        # Methods such as `bit_length` need the number.
        if name.startswith("_") or not hasattr(self.kind, name):
            raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")
        return getattr(self.bake(), name)

    @property
    def is_derived(self) -> bool:
        """True if a guard of its own can hold the number, and not only guards of all arguments."""
        return self.rec.derivation.expr(self.value) is not None

    def takes(self, other: Any) -> bool:
        """True if operators combine this with ``other``; sequences are not numbers."""
        return super().takes(other) and not isinstance(other, (list, tuple))

    def __bool__(self) -> bool:
        # Whether there are elements says less than how many: it holds for more calls.
        if self.kind is int and not self.rec.evaluates and self.rec.derivation.counts_sizes(self.value):
            return bool(op("ne", self, 0))
        return super().__bool__()

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)):
            return self.__index__() * other
        return op("mul", self, other) if self.takes(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)):
            return other * self.__index__()
        return op("mul", other, self) if self.takes(other) else NotImplemented

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.bake(), *map(_known, (other, modulus)))
        return _number_power(self, other) if self.takes(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return _number_power(other, self) if self.takes(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.bake())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.constant(), dtype)

    def __round__(self, digits: int | None = None) -> Any:
        is_same = self.kind is int and (digits is None or digits >= 0)
        return self if is_same else round(self.bake(), digits)

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
        return op("to_complex", self.real, -self.imag) if self.kind is complex else self


def _number_power(a: Any, b: Any) -> Any:
    """``a ** b``, where one is a traced number.

    The sign of the exponent decides whether a power of ints is an int or a float, and the sign of
    the base whether a power of floats is complex: signs are baked, unless they follow, as of sizes.
    """
    whole = is_int(b) or (type(b) is float and b.is_integer())
    # Where contents decide the sign of the base, the graph's op refuses negative ones.
    if not whole and _is_real(a) and not _is_open(a) and _is_negative(a):
        return _known(a) ** _known(b)
    if is_int(a) and is_int(b) and isinstance(b, TracedScalar) and _is_negative(b):
        a = a * 1.0
    return op("pow", a, b)


def _is_negative(x: Any) -> bool:
    if isinstance(x, TracedScalar) and x.rec.derivation.never_negative(x.value):
        return False
    return bool(op("lt", x, 0))


def _is_open(x: Any) -> bool:
    if not isinstance(x, TracedScalar) or not x.is_open:
        return False
    return not x.rec.derivation.never_negative(x.value)


def _known(x: Any) -> Any:
    return x.constant() if isinstance(x, TracedScalar) else x


def _is_real(x: Any) -> bool:
    return is_int(x) or (x.kind if isinstance(x, TracedScalar) else type(x)) is float


def is_int(x: Any) -> bool:
    return (x.kind if isinstance(x, TracedScalar) else type(x)) in (bool, int)


def as_float(x: Any) -> Any:
    """The number for which Python's complex numbers on the left take an operand: an `np.float64` is a float."""
    if type(x) is np.float64:
        return float(x)
    is_array = isinstance(x, Recording) and type(x) is not TracedScalar and not x.rec.evaluates
    is_float = is_array and not x.ndim and x.dtype == np.float64 and is_immutable(x)
    return op("item", x) if is_float else x


def _of_complex(method: Callable) -> Callable:
    @unwatched
    def call(self: TracedScalar, other: Any, *modulus: Any) -> Any:
        return method(self, as_float(other) if self.kind is complex else other, *modulus)

    return call


# Operators for which Python takes a float beside a complex number.
OF_COMPLEX = ("add", "sub", "mul", "truediv", "pow", "eq", "ne")
for _python in OF_COMPLEX:
    _method = getattr(TracedScalar, f"__{_python}__")
    setattr(TracedScalar, f"__{_python}__", _of_complex(_method))
