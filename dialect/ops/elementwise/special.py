"""Elementwise functions that NumPy itself does not have: SciPy's and those of neural networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

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
    """A ufunc of `scipy.special`, imported at its first use; its loops are d, f and maybe D, F.

    Everything that is not f32 is computed in double, as SciPy does.
    """

    loops: ClassVar[Mapping[str, DType]]

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        if dtype.kind == "c" and C128 not in cls.loops.values():
            raise DTypeError(f"{cls.name} has no loop for {dtype.numpy}")
        wide = cls.loops.get(dtype.name, F64)
        return wide, wide


class Erf(_SciPy, name="erf"):
    """Error function."""

    loops = {"f32": F32, "c64": C64, "c128": C128}
    partials = staticmethod(lambda x, y: (np.exp(-x * x) * (2 / math.sqrt(math.pi)),))

    @staticmethod
    def numpy(x: Any) -> Any:
        from scipy.special import erf

        return erf(x)

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return xs[0].math("erf")


class Sigmoid(_SciPy, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""

    loops = {"f32": F32}
    partials = staticmethod(lambda x, y: (y * (1 - y),))

    @staticmethod
    def numpy(x: Any) -> Any:
        from scipy.special import expit

        return expit(x)

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
