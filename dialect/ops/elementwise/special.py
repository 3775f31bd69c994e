"""Elementwise functions that NumPy itself does not have: SciPy's and those of neural networks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import C64, C128, F32, F64, DType
from ...ir.op import Rounding
from .families import Key, Unary

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar


class Rsqrt(Unary, name="rsqrt"):
    """``1 / sqrt(x)``, each step rounded; dtypes as `numpy.sqrt`."""

    rule = np.sqrt
    partials = staticmethod(lambda x, y: (y / x * -0.5,))
    singular = True

    @staticmethod
    def numpy(x: Any) -> Any:
        return np.reciprocal(np.sqrt(x))

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x.const(1) / x.math("sqrt")


class _SciPy(Unary):
    """A ufunc of `scipy.special`, imported at its first use.

    Its loops, and the order in which they are tried, are those of the SciPy that is installed: since
    1.18, small ints are computed in single precision.
    """

    @staticmethod
    def ufunc() -> np.ufunc:
        """The function of SciPy."""
        raise NotImplementedError

    @classmethod
    def numpy(cls, x: Any) -> Any:
        return cls.ufunc()(x)

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        loops = [_LOOPS[loop[0]] for loop in cls.ufunc().types if loop[0] in _LOOPS]
        for wide in (dtype, *loops):
            if wide in loops and np.can_cast(dtype.numpy, wide.numpy):
                return wide, wide
        raise DTypeError(f"{cls.name} has no loop for {dtype.numpy}")


_LOOPS = {"f": F32, "d": F64, "F": C64, "D": C128}


class Erf(_SciPy, name="erf"):
    """Error function."""

    partials = staticmethod(lambda x, y: (np.exp(-x * x) * (2 / math.sqrt(math.pi)),))

    @staticmethod
    def ufunc() -> np.ufunc:
        from scipy.special import erf

        return erf

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return xs[0].math("erf")


class Sigmoid(_SciPy, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""

    partials = staticmethod(lambda x, y: (y * (1 - y),))

    @staticmethod
    def ufunc() -> np.ufunc:
        from scipy.special import expit

        return expit

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        # exp of a non-positive number cannot overflow, so very negative x keep their tiny value.
        e = (-abs(x)).math("exp")
        return (x < 0).select(e, x.const(1)) / (e + 1)


class Relu(Unary, name="relu", rounding=Rounding.NONE):
    """``maximum(x, 0)`` in the operand's dtype; nan stays nan."""

    partials = staticmethod(lambda x, y: (lambda g: np.where((x > 0) | np.isnan(x), g, 0),))

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        return dtype, dtype

    @staticmethod
    def numpy(x: Any) -> Any:
        return np.maximum(x, np.zeros((), np.asarray(x).dtype))

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x.maximum(0)
