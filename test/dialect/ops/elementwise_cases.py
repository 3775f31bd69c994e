"""Cases of every elementwise op: by arity, over the shape classes, with edge values.

A new elementwise op whose name is that of a NumPy function needs nothing here; others add one
entry to NUMPY (and to PYTHON if they work on Python numbers).
"""

from __future__ import annotations

import cmath
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special
from cases import SUITES, array, edge_values, laid_out, python_number, register
from profuse.dialect.ir.dtypes import BOOL, C64, C128, DTYPES, F16, F32, F64, I8, I64, U8, U64, DType, dtype_of
from profuse.dialect.ir.op import OPS, Op
from profuse.dialect.ops.elementwise.families import PYTHON_NUMBERS, Elementwise

# What each op is in NumPy, where the names differ; not read from the op, so that it can fail.
NUMPY: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floor_div": np.floor_divide,
    "pow": np.power,
    "bitwise_not": np.invert,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": np.where,
    "erf": scipy.special.erf,
    "sigmoid": scipy.special.expit,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "relu": lambda x: np.maximum(x, np.zeros_like(x)),
    "absorbing_mul": lambda a, b: _absorbing(a, b),
    "stop_gradient": lambda x: x,
    "flat_at_zero": lambda x: x,
}

# What each op is on Python numbers alone, where that is Python's and not NumPy's business.
PYTHON: dict[str, Callable[..., Any]] = {
    "positive": lambda x: +x,
    "neg": lambda x: -x,
    "abs": abs,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "logical_not": lambda x: not x,
    "bitwise_not": lambda x: ~x,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_div": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "maximum": max,
    "minimum": min,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "select": lambda c, a, b: a if c else b,
    "clip": lambda x, lo, hi: min(max(x, lo), hi),
}

# Units in the last place that a kernel may be off by; the ops not listed are exact.
TOLERANCE: dict[str, float] = {
    **dict.fromkeys(
        [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "erf",
            "sigmoid",
            "pow",
            "atan2",
            "hypot",
            "logaddexp",
        ],
        4,
    ),
    **dict.fromkeys(["maximum", "minimum", "clip", "relu"], 0.5),  # which zero wins is open
}

# How large the terms are whose sum cancels, in NumPy as well.
ADDED: dict[str, Callable[..., np.ndarray]] = {
    "logaddexp": lambda a, b: np.maximum(np.abs(a), np.abs(b))  # the larger one + log1p(…)
}

# Of complex numbers. NumPy itself fuses multiplications and additions of arrays, not of scalars.
COMPLEX_TOLERANCE: dict[str, float] = {"abs": 2, "mul": 4, "square": 4, "sqrt": 4, "tan": 8, "tanh": 8}

MIXED = (BOOL, I8, U8, I64, U64, F16, F32, F64, C64)


def _absorbing(a: Any, b: Any) -> Any:
    product = np.multiply(a, b)
    return np.where(np.equal(a, 0) & np.isnan(product), np.zeros_like(product), product)[()]


def reference(name: str) -> Callable[..., Any]:
    """``(attrs, *args)`` to the result, in Python for numbers and else in NumPy."""
    in_numpy = NUMPY.get(name) or getattr(np, name, None)
    assert in_numpy is not None, f"NumPy has no {name}: say in NUMPY what the op computes"
    in_python = PYTHON.get(name)

    def call(attrs: dict[str, Any], *args: Any) -> Any:
        if in_python is not None and all(type(a) in PYTHON_NUMBERS for a in args):
            return in_python(*args)
        return in_numpy(*args)

    return call


def operands(op: type[Op], dtype: DType, rng: np.random.Generator) -> Iterator[tuple]:
    """Operands of every shape class, for any arity."""
    count = len(op.operands)
    edges, number = edge_values(dtype), python_number(dtype)

    def arrays(*shapes: tuple[int, ...]) -> tuple:
        return tuple(array(dtype, shapes[k % len(shapes)], rng) for k in range(count))

    # Every combination of edge values: operand k along axis k.
    yield tuple(edges.reshape([-1 if j == k else 1 for j in range(count)]) for k in range(count))
    yield arrays(())
    yield tuple(a[()] for a in arrays(()))
    yield arrays((0, 3))
    yield arrays((1, 1))
    yield arrays((4, 1, 3), (5, 1), ())
    yield arrays((0, 3), (1, 3))
    for layout in ("strided", "reversed", "transposed"):
        yield tuple(laid_out(layout, dtype, (4, 5), rng) for _ in range(count))
    yield arrays((1000, 37), (37,), (1000, 1))
    yield (number,) * count
    for k in range(count if count > 1 else 0):
        yield tuple(number if j == k else a for j, a in enumerate(arrays((3, 4))))
        yield tuple(a if j == k else number for j, a in enumerate(arrays((3, 4))))
        for weak in {True, 2, -1.5, 1j} if dtype.kind != "u" else {True, 2, 1.5}:
            yield tuple(weak if j == k else a for j, a in enumerate(arrays((2,))))
        for other in MIXED:
            mixed = array(other, (4,), rng)
            yield tuple(mixed if j == k else a for j, a in enumerate(arrays((2, 4))))


def limited(name: str, args: tuple) -> tuple:
    """``args`` without what NumPy leaves undefined or makes an error of the whole call."""
    if name == "pow" and np.result_type(*args).kind in "iu":
        base, exponent = args
        if isinstance(exponent, int):
            return base, abs(exponent)
        return base, np.asarray(np.abs(exponent.astype(np.int64)) % 9).astype(exponent.dtype)
    if name == "reciprocal" and np.result_type(*args).kind in "iub":
        return tuple(a if isinstance(a, int) else a | a.dtype.type(1) for a in args)
    return args


def _register(op: type[Op]) -> None:
    def generate(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[dict, tuple]]:
        for args in operands(op, dtype, rng):
            try:
                yield {}, limited(op.name, args)
            except TypeError:
                yield {}, args

    register(
        op.full_name(),
        reference=reference(op.name),
        tolerance=TOLERANCE.get(op.name, 0),
        complex_tolerance=COMPLEX_TOLERANCE.get(op.name, 0),
        added=ADDED.get(op.name),
    )(generate)


def _cast_cases(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[dict, tuple]]:
    for to in DTYPES:
        for (x,) in operands(OPS["profuse.cast"], dtype, rng):
            if to.is_int and dtype.kind in "fc" and isinstance(x, np.ndarray):
                # Beyond the integer's range the result depends on the instructions NumPy picked.
                fits = (x.real > -1.0) if to.kind == "u" else (abs(x.real) < 100.0)
                with np.errstate(invalid="ignore"):
                    x = np.where(fits & (abs(x) < 100.0), x, np.ones_like(x))
            yield {"dtype": to}, (x,)


register("cast", reference=lambda attrs, x: np.array(x).astype(attrs["dtype"].numpy))(_cast_cases)


def _bitcast_cases(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[dict, tuple]]:
    for to in DTYPES:
        if to.bits == dtype.bits and not {to.kind, dtype.kind} & {"b", "c"}:
            for (x,) in operands(OPS["profuse.bitcast"], dtype, rng):
                if isinstance(x, np.ndarray):
                    yield {"dtype": to}, (x,)


register("bitcast", reference=lambda attrs, x: x.view(attrs["dtype"].numpy).copy())(_bitcast_cases)


def _register_of_numbers(op: type[Elementwise]) -> None:
    """Suite of an op whose operands are Python numbers, of which Python's function is the model."""
    module, _, name = op.name.rpartition("_")
    in_python = complex if op.name == "to_complex" else getattr({"math": math, "cmath": cmath}[module], name)

    def generate(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[dict, tuple]]:
        if dtype not in (BOOL, I64, F64, C128) or (dtype is C128) != (module == "cmath"):
            return
        values = [False, True, 0, 2, -3, 0.5, -0.25, 1.75, -0.0, 1e-300, 700.0]
        if dtype is C128:
            values = [1j, 0.5 - 2j, -1 + 0j, complex(-0.0, 0.5), 3 + 1e-8j]
        for args in itertools.product(values, repeat=len(op.operands)):
            try:
                in_python(*args)
            except (ValueError, OverflowError):
                continue
            if any(dtype_of(type(a)) is dtype for a in args):
                yield {}, args

    register(op.full_name(), reference=lambda attrs, *args: in_python(*args), tolerance=4, complex_tolerance=8)(
        generate
    )


for _op in tuple(OPS.values()):
    if issubclass(_op, Elementwise) and _op.of_numbers:
        _register_of_numbers(_op)
    shipped = _op.__module__.startswith("profuse.dialect.ops.")
    if shipped and issubclass(_op, Elementwise) and _op.full_name() not in SUITES:
        _register(_op)
