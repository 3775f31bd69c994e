"""Conformance cases: every op with every dtype and shape class, and what NumPy says of each.

Elementwise ops are covered by being declared (`elementwise_cases`). Other ops register a generator
and a reference, in a module ``*_cases.py`` beside this one::

    @register("transpose", reference=lambda attrs, x: np.transpose(x, attrs["axes"]))
    def transpose(dtype, rng):
        yield {"axes": (1, 0)}, (array(dtype, (3, 4), rng),)

`all_cases` yields the cases of everything; they serve the tests of tier 0 and of kernels.
"""

from __future__ import annotations

import importlib
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401  (fills OPS)
from profuse.dialect.ir.dtypes import BOOL, DTYPES, DType
from profuse.dialect.ir.op import OPS, Op, op_named

Attrs = dict[str, Any]
Generator = Callable[[DType, np.random.Generator], Iterable[tuple[Attrs, tuple]]]
Reference = Callable[..., Any]  # (attrs, *args) -> result, or a tuple of results


@dataclass(frozen=True)
class Case:
    """One call of one op, and its result according to NumPy.

    Attributes:
        dtype: the dtype the case was generated for (operands may have others besides).
        reference: the result (a tuple for several), or the TypeError/ValueError NumPy raises.
        tolerance: units in the last place that a kernel may be off by.
        added: how large the terms are whose sum may cancel; units are those of the larger one of
            these and of the result. None: of the result.
    """

    op: type[Op]
    dtype: DType
    attrs: Attrs
    args: tuple
    reference: Any
    tolerance: float
    added: np.ndarray | None = None

    def __str__(self) -> str:
        args = ", ".join(
            f"{a.dtype}{list(a.shape)}" if isinstance(a, (np.ndarray, np.generic)) else repr(a) for a in self.args
        )
        return f"{self.op.name}({args}){self.attrs or ''}"


@dataclass(frozen=True)
class Suite:
    """How the cases of one op are made.

    Attributes:
        generate: ``(dtype, rng)`` to pairs of attributes and operands.
        reference: ``(attrs, *operands)`` to the result, without calling the op.
        dtypes: those that cases are made for.
        tolerance: see `Case`; tier 0 must agree to the last bit whatever it is.
        complex_tolerance: the same for complex operands, where it is larger.
        symbolic: type inference on symbolic sizes must find the result's shape.
        added: gives `Case.added` of the operands.
    """

    generate: Generator
    reference: Reference
    dtypes: tuple[DType, ...] = DTYPES
    tolerance: float = 0
    symbolic: bool = True
    complex_tolerance: float = 0
    added: Callable[..., np.ndarray] | None = None


SUITES: dict[str, Suite] = {}


def register(
    *names: str,
    reference: Reference,
    dtypes: tuple[DType, ...] = DTYPES,
    tolerance: float = 0,
    symbolic: bool = True,
    complex_tolerance: float = 0,
    added: Callable[..., np.ndarray] | None = None,
) -> Callable[[Generator], Generator]:
    """Decorator: cases of the ops ``names`` (full or short); ``reference(attrs, *args)``."""

    def decorate(generate: Generator) -> Generator:
        for name in names:
            full = name if "." in name else f"profuse.{name}"
            assert op_named(full)
            assert full not in SUITES, f"{full} has two suites"
            SUITES[full] = Suite(generate, reference, dtypes, tolerance, symbolic, complex_tolerance, added)
        return generate

    return decorate


def load_suites() -> None:
    """Import every ``*_cases.py`` beside this file, which fills SUITES."""
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    for path in sorted(Path(folder).glob("*_cases.py")):
        importlib.import_module(path.stem)


def cases_of(name: str, dtype: DType, keep: Callable[[int], bool] = lambda number: True) -> Iterator[Case]:
    """Cases of one op for one dtype; always the same ones. ``keep``: which, by number."""
    load_suites()
    suite, op = SUITES[name], OPS[name]
    rng = np.random.default_rng(zlib.crc32(f"{name} {dtype}".encode()))
    for number, (attrs, args) in enumerate(suite.generate(dtype, rng)):
        if not keep(number):
            continue
        with silent():
            try:
                reference = suite.reference(attrs, *args)
            except (TypeError, ValueError, ArithmeticError) as error:
                reference = error
            fails = isinstance(reference, Exception)
            added = None if suite.added is None or fails else suite.added(*args)
        tolerance = suite.tolerance
        if any(np.asarray(x).dtype.kind == "c" for x in args):
            tolerance = max(tolerance, suite.complex_tolerance)
        yield Case(op, dtype, attrs, args, reference, tolerance, added)


@contextmanager
def silent() -> Iterator[None]:
    """Without NumPy's warnings about nan, overflow, division by zero, dropped imaginary parts."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def all_suites() -> list[tuple[str, DType]]:
    """(op name, dtype) of everything that has cases, in the order of the op table."""
    load_suites()
    return [(n, d) for n in OPS if n in SUITES for d in SUITES[n].dtypes]


def all_cases() -> Iterator[Case]:
    """Every case of every op."""
    for name, dtype in all_suites():
        yield from cases_of(name, dtype)


# --- operands ---------------------------------------------------------------------------------


def edge_values(dtype: DType) -> np.ndarray:
    """Values at which implementations go wrong: zeros, extremes, ties, infinities, nan."""
    if dtype is BOOL:
        return np.array([False, True])
    if dtype.is_int:
        low, high = int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)
        ints = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, high - 1, high]
        if dtype.kind == "i":
            ints += [-1, -2, -3, -7, low, low + 1]
        return np.array(ints, dtype.numpy)
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -2.5, np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype.numpy)
    import ml_dtypes

    limits = ml_dtypes.finfo(dtype.numpy)
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 0.1, 10.25, 80.0, np.inf, np.nan]
    values = np.array(sizes, np.float64).astype(dtype.numpy)
    extremes = np.array([limits.max, limits.tiny, limits.smallest_subnormal], dtype.numpy)
    values = np.concatenate([values, extremes])
    return np.concatenate([values, -values])


def array(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random values of moderate size, C-contiguous."""
    if dtype is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_int:
        low = 0 if dtype.kind == "u" else -100
        return rng.integers(low, 100, shape).astype(dtype.numpy)
    values = rng.standard_normal(shape) * 3
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape) * 3
    return np.asarray(values).astype(dtype.numpy)


def laid_out(kind: str, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator):
    """`array` in another layout: ``"strided"``, ``"reversed"``, ``"transposed"``."""
    if kind == "strided":
        odd = tuple(slice(1, None, 2) for _ in shape)
        return array(dtype, tuple(2 * d for d in shape), rng)[odd]
    if kind == "reversed":
        return array(dtype, shape, rng)[tuple(slice(None, None, -1) for _ in shape)]
    assert kind == "transposed"
    return array(dtype, shape[::-1], rng).T


def python_number(dtype: DType) -> Any:
    """A Python number of the kind of ``dtype``."""
    return {"b": True, "i": 3, "u": 3, "f": 2.5, "c": 1 - 2j}[dtype.kind]


# --- comparison -------------------------------------------------------------------------------


def difference(actual: Any, expected: Any, tolerance: float = 0, added: np.ndarray | None = None) -> str | None:
    """How ``actual`` differs from ``expected``: kind, dtype, shape, values; None = it does not.

    ``tolerance`` is in units in the last place of the expected value, for complex numbers of the
    larger of its two parts; with 0 the sign of zero counts as well. ``added``: see `Case`.
    """
    if isinstance(expected, tuple):
        pairs = zip(actual, expected, strict=True)
        return next((d for d in (difference(a, e, tolerance) for a, e in pairs) if d), None)
    python = (bool, int, float, complex)
    if type(expected) in python or type(actual) in python:
        if type(actual) is not type(expected):
            return f"is a {type(actual).__name__}, not a {type(expected).__name__}"
        return None if repr(actual) == repr(expected) else f"is {actual!r}, not {expected!r}"
    a, e = np.asarray(actual), np.asarray(expected)
    if a.dtype != e.dtype:
        return f"has dtype {a.dtype}, not {e.dtype}"
    if a.shape != e.shape:
        return f"has shape {a.shape}, not {e.shape}"
    if e.dtype.kind in "biu":
        wrong = a != e
    elif e.dtype.kind == "c":
        wrong = _complex_differ(a, e, tolerance)
    else:
        wrong = _floats_differ(a, e, tolerance)
        if added is not None:
            with np.errstate(all="ignore"):
                size = np.where(np.isfinite(added), added, 0).astype(e.dtype)
                wrong &= ~(np.abs(a - e) <= tolerance * np.spacing(size))
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"is {a[at]!r}, not {e[at]!r}, at {at} ({int(wrong.sum())} of {wrong.size} wrong)"


def _complex_differ(a: np.ndarray, e: np.ndarray, tolerance: float) -> np.ndarray:
    parts = (np.real, np.imag)
    wrong = [_floats_differ(f(a), f(e), tolerance) for f in parts]
    if tolerance:
        with np.errstate(all="ignore"):
            sizes = [np.where(np.isfinite(f(e)), np.abs(f(e)), 0) for f in parts]
            slack = tolerance * np.spacing(np.maximum(*sizes))
            wrong = [w & ~(np.abs(f(a) - f(e)) <= slack) for w, f in zip(wrong, parts, strict=True)]
    return wrong[0] | wrong[1]


def _floats_differ(a: np.ndarray, e: np.ndarray, tolerance: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        same = (a == e) | (np.isnan(a) & np.isnan(e))
        if tolerance == 0:
            return ~same | ((e == 0) & (np.signbit(a) != np.signbit(e)))
        # Functions of C libraries may underflow inside, where the result has no such need.
        tiny = np.finfo(e.dtype).tiny if e.itemsize > 2 else 0
        small = (np.abs(a) < tiny) & (np.abs(e) < tiny)
        return ~same & ~small & ~(_ulps(a, e) <= tolerance)


def _ulps(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; infinite between a number and nan."""
    ints = np.dtype(f"i{e.itemsize}")
    ordered = []
    for x in (a, e):
        bits = np.ascontiguousarray(x).view(ints).reshape(x.shape).astype(np.int64)
        ordered.append(np.where(bits < 0, np.iinfo(ints).min - bits, bits))
    high, low = np.maximum(*ordered), np.minimum(*ordered)
    distance = (high.view(np.uint64) - low.view(np.uint64)).astype(np.float64)
    return np.where(np.isnan(a) != np.isnan(e), np.inf, distance)
