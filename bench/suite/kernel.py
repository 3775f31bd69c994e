"""A kernel of the benchmarks, and what it is measured on."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i32": np.int32,
    "u8": np.uint8,
    "c64": np.complex64,
}
# Errors relative to the largest element of the exact result. Integers have to be exact.
TOLERANCES = {"f64": 1e-12, "f32": 1e-5, "f16": 1e-2, "bf16": 6e-2, "c64": 1e-5}


class Size(NamedTuple):
    """Rows and columns of a kernel's largest array, which it may arrange otherwise."""

    name: str
    rows: int
    columns: int


# An array of float32 takes 64 KB, 2 MB and 32 MB.
SIZES = {size.name: size for size in (Size("cache", 64, 256), Size("l3", 512, 1024), Size("memory", 4096, 2048))}
TINY = Size("tiny", 6, 24)


class Draw:
    """Random arguments of one dtype, the same in every process."""

    def __init__(self, name: str, dtype: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.dtype = DTYPES[dtype]

    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal."""
        return self.rng.standard_normal(shape, np.float32).astype(self.dtype)

    def weights(self, *shape: int) -> np.ndarray:
        """Normal, divided by the root of the first axis, as of a layer's weights."""
        return (self.rng.standard_normal(shape, np.float32) / math.sqrt(shape[-2])).astype(self.dtype)

    def positive(self, *shape: int, low: float = 0.5, high: float = 2.0) -> np.ndarray:
        """Uniform between two numbers."""
        return (self.rng.random(shape, np.float32) * (high - low) + low).astype(self.dtype)

    def integers(self, high: int, *shape: int, low: int = 0, dtype: Any = None) -> np.ndarray:
        """Uniform integers below ``high``; ``dtype``: None = the case's."""
        wanted = self.dtype if dtype is None else dtype
        return self.rng.integers(low, high, shape).astype(wanted)


@dataclass(frozen=True)
class Kernel:
    """A kernel and all that is known of it.

    Attributes:
        fn: called with a module that looks like NumPy (`harness.libraries`) and with arrays.
        make: arguments of a `Draw`, a number of rows and one of columns.
        dtypes: names in `DTYPES` of what it is measured on.
        moved: bytes that have to be read and written, of the arguments and results; None = the
            memory in which all of them lie.
        tolerance: in place of that in `TOLERANCES`; for integers, how far they may be off.
        group: kernels, models, gradients or elementary, each measured by a program of its own.
        by_hand: computes the same without derivatives of a library; None = ``fn`` takes none.
    """

    name: str
    fn: Callable[..., Any]
    make: Callable[[Draw, int, int], tuple]
    dtypes: tuple[str, ...] = ("f32",)
    moved: Callable[[tuple, tuple], int] | None = None
    tolerance: float | None = None
    group: str = "kernels"
    by_hand: Callable[..., Any] | None = None

    @property
    def plain(self) -> Callable[..., Any]:
        """The function that computes the results in NumPy."""
        return self.by_hand or self.fn


KERNELS: dict[str, Kernel] = {}


def kernel(make: Callable[[Draw, int, int], tuple], dtypes: str = "f32", **more: Any) -> Callable[[Callable], Callable]:
    """Register a function by its name; ``dtypes`` are words."""

    def register(fn: Callable) -> Callable:
        name = fn.__name__
        assert name not in KERNELS, name
        KERNELS[name] = Kernel(name, fn, make, tuple(dtypes.split()), **more)
        return fn

    return register


@dataclass(frozen=True)
class Case:
    """A kernel on arguments of one dtype and size."""

    kernel: Kernel
    dtype: str
    size: Size
    _kept: dict = field(default_factory=dict, compare=False, repr=False)

    def args(self) -> tuple:
        """The arguments, the same in every process."""
        if "args" not in self._kept:
            draw = Draw(f"{self.kernel.name} {self.dtype}", self.dtype)
            self._kept["args"] = self.kernel.make(draw, self.size.rows, self.size.columns)
        return self._kept["args"]

    def exact_args(self) -> tuple:
        """The arguments in float64 or complex128; integers stay as they are."""
        return tuple(_widened(a) for a in self.args())

    def moved(self, results: tuple) -> int:
        """Bytes that have to be read and written."""
        if self.kernel.moved is not None:
            return self.kernel.moved(self.args(), results)
        return sum(_extent(a) for a in (*self.args(), *results))

    def error(self, found: tuple, exact: tuple) -> float:
        """Largest error relative to the largest element; 0 for equal integers, inf for a shape.

        The result's error counts as a multiple of what is tolerated: above 1 it is wrong.
        """
        if len(found) != len(exact):
            return math.inf
        return max(map(self._error, found, exact))

    def _error(self, found: Any, exact: Any) -> float:
        found, exact = np.asarray(found), np.asarray(exact)
        if found.shape != exact.shape:
            return math.inf
        tolerance = self.kernel.tolerance
        if exact.dtype.kind in "biu":
            off = np.abs(found.astype(np.float64) - exact).max(initial=0.0)
            return off / tolerance if tolerance else math.inf if off else 0.0
        wide = found.astype(exact.dtype)
        off = float(np.abs(wide - exact).max(initial=0.0))
        scale = float(np.abs(exact).max(initial=0.0)) or 1.0
        share = off / scale / (tolerance or TOLERANCES.get(self.dtype, 1e-5))
        return math.inf if math.isnan(share) else share


def case(name: str, dtype: str, size: Size) -> Case:
    """A kernel by name, on arguments of a dtype and size."""
    return Case(KERNELS[name], dtype, size)


def leaves(out: Any) -> tuple:
    """The results of a call, as a tuple."""
    if isinstance(out, (tuple, list)):
        return tuple(leaf for item in out for leaf in leaves(item))
    return (out,)


def _widened(a: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    return a if a.dtype.kind in "biu" else a.astype(np.float64)


def _extent(a: Any) -> int:
    """Bytes of memory in which an array lies: less than its own where a stride is 0."""
    low, high = np.lib.array_utils.byte_bounds(np.asarray(a))
    return high - low
