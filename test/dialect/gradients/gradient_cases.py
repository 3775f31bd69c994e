"""One or more calls of every op that gradients pass, in NumPy, on operands away from kinks."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from neural_calls import CALLS
from numpy.lib.stride_tricks import sliding_window_view
from profuse.dialect.importers.numpy.capture.user_functions import op
from profuse.dialect.ir.op import find_op

RNG = np.random.default_rng(17)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def inside(*shape: int, low: float = 0.2, high: float = 0.8) -> np.ndarray:
    return RNG.uniform(low, high, shape)


def apart(*shape: int) -> np.ndarray:
    """Numbers of both signs, no two of which are near each other or 0."""
    count = int(np.prod(shape))
    values = (np.arange(count) + 0.7) * 0.4 * (-1.0) ** np.arange(count)
    return RNG.permutation(values).reshape(shape)


@dataclass(frozen=True)
class Case:
    """A function of arrays; gradients are taken by those among ``args`` that are floats."""

    op: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    label: str = ""
    second: bool = field(default=True)  # whether second derivatives are compared, too

    def __str__(self) -> str:
        return f"{self.op}{'-' if self.label else ''}{self.label}"


X, M = normal(3, 4), apart(3, 4)
MASK = X > 0
ROW, COLUMN, WIDE = normal(4), normal(3, 1), normal(2, 3, 4)
PLACES = np.array([2, 0, 2, -1])
PAIRS = np.array([[1, 1], [0, 3], [2, -1]])

UNARY = {
    "positive": X,
    "neg": X,
    "abs": M,
    "conj": X,
    "real": X,
    "imag": X,
    "exp": X,
    "exp2": X,
    "expm1": X,
    "log": inside(3, 4),
    "log2": inside(3, 4),
    "log10": inside(3, 4),
    "log1p": inside(3, 4),
    "sqrt": inside(3, 4),
    "square": X,
    "reciprocal": M,
    "sin": X,
    "cos": X,
    "tan": inside(3, 4),
    "asin": inside(3, 4),
    "acos": inside(3, 4),
    "atan": X,
    "sinh": X,
    "cosh": X,
    "tanh": X,
    "asinh": X,
    "acosh": inside(3, 4) + 1.2,
    "atanh": inside(3, 4),
    "rsqrt": inside(3, 4),
    "erf": X,
    "sigmoid": X,
    "relu": M,
    "copy": X,
    "to_tensor": X,
}
# Functions of Python's numbers -> an argument.
MATH = {
    "sqrt": 0.7,
    "exp": 0.7,
    "log": 0.7,
    "sin": 0.7,
    "cos": 0.7,
    "tan": 0.7,
    "sinh": 0.7,
    "cosh": 0.7,
    "tanh": 0.7,
    "expm1": 0.7,
    "log2": 0.7,
    "log10": 0.7,
    "log1p": 0.7,
    "asin": 0.3,
    "acos": 0.3,
    "atan": 0.3,
    "asinh": 0.3,
    "acosh": 1.7,
    "atanh": 0.3,
    "erf": 0.7,
}
CMATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")
MATH_OF_TWO = ("atan2", "hypot", "copysign", "fmod", "pow")


def of_number(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *numbers: x * function(*numbers)


def of_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, a, b: x * abs(function(complex(a, b)) * (1 - 2j) + a)


BINARY = {
    "add": X,
    "sub": X,
    "mul": X,
    "div": M,
    "maximum": M,
    "minimum": M,
    "atan2": M,
    "hypot": M,
    "logaddexp": X,
    "copysign": M,
    "remainder": M,
    "fmod": M,
    "absorbing_mul": M,
}


def _cases() -> list[Case]:
    made = [Case(name, op(name), (x,)) for name, x in UNARY.items()]
    for name, x in BINARY.items():
        other = apart(3, 4) + 0.13
        made.append(Case(name, op(name), (x, other)))
        for label, small in (("row", apart(4) + 0.17), ("column", apart(3, 1) + 0.19)):
            made.append(Case(name, op(name), (x, small), label))
            made.append(Case(name, op(name), (small, x), f"{label}-first"))
        made.append(Case(name, partial(_with_number, op(name)), (x,), "number"))
        made.append(
            Case(name, op(name), (x, x), "twice")
            if name in ("add", "mul", "sub")
            else Case(name, op(name), (x, np.float64(1.37)), "0-d")
        )
    base = inside(3, 4)
    return [
        *made,
        *(Case(f"math_{k}", of_number(getattr(math, k)), (X, s)) for k, s in MATH.items()),
        *(Case(f"math_{k}", of_number(getattr(math, k)), (X, 1.7, 0.6)) for k in MATH_OF_TWO),
        *(Case(f"cmath_{k}", of_complex(getattr(cmath, k)), (X, 0.7, 0.3)) for k in CMATH),
        Case("to_complex", lambda x, a, b: x * abs(complex(a, b) ** 2 + a), (X, 0.7, 0.3)),
        *(Case("pow", lambda x, k=k: x**k, (base,), f"{k}") for k in (0, 1, 2, 3, 0.5, -1, 2.7)),
        Case("pow", lambda x, k: x**k, (base, inside(3, 4) * 3), "arrays"),
        Case("pow", lambda x, k: x**k, (base, 2.3), "number"),
        Case("select", lambda a, c: np.where(MASK, a, c), (normal(3, 4), ROW)),
        Case("clip", np.clip, (M, apart(3, 1) - 3.05, apart(4) + 2.05)),
        Case("cast", lambda x: x.astype(np.float64) * 2.0, (X,)),
        Case("full", lambda x: np.full((2, 3), x), (np.float64(0.7),)),
        Case("item", lambda x: X * x.item(), (np.array(0.7),)),
        Case("stop_gradient", lambda x: op("stop_gradient")(x) * x, (X,), second=False),
        Case("flat_at_zero", lambda x: op("flat_at_zero")(x) * x, (X,)),
        Case("div", lambda x, k: x / k, (X, 1.7), "by an argument"),
        Case("div", lambda x, k: k / x, (M, 1.7), "of an argument"),
        Case("pow", lambda x, k: k**x, (X, 1.7), "of an argument"),
        Case("pow", lambda x, a, k: x * a**k, (X, 1.7, 2.3), "of arguments"),
        Case("reshape", lambda x: x.reshape(2, 6), (X,)),
        Case("squeeze", lambda x: x.squeeze(1), (normal(3, 1, 4),)),
        Case("expand_dims", lambda x: x[:, None, :], (X,)),
        Case("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)), (ROW,)),
        Case("flip", lambda x: np.flip(x, 1), (X,)),
        Case("flip", np.flip, (X,), "all"),
        Case("slice", lambda x: x[1:, ::-2], (X,)),
        Case("pick", lambda x: x[1], (X,)),
        Case("windows", lambda x: sliding_window_view(x, 2, 1), (X,)),
        Case("windows", lambda x: sliding_window_view(x, (3, 2), (1, 0)), (X,), "two axes"),
        Case("conform", _assigned, (X, ROW)),
        Case("slice_scatter", _sliced, (X, normal(2, 2))),
        Case("pick_scatter", _picked, (X, ROW)),
        Case("concatenate", lambda a, c: np.concatenate([a, c, a], 1), (X, normal(3, 2))),
        Case("stack", lambda a, c: np.stack([a, c], 1), (X, normal(3, 4))),
        Case("pad", lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=0.3), (X,)),
        Case("tile", lambda x: np.tile(x, (2, 3, 2)), (X,)),
        Case("repeat", lambda x: np.repeat(x, 3, 0), (X,)),
        Case("repeat", lambda x: np.repeat(x, 2), (X,), "flat"),
        Case("transpose", lambda x: x.transpose(2, 0, 1), (WIDE,)),
        Case("transpose", lambda x: x.T, (WIDE,), "reversed"),
        Case("swapaxes", lambda x: np.swapaxes(x, 0, 2), (WIDE,)),
        Case("moveaxis", lambda x: np.moveaxis(x, 0, -1), (WIDE,)),
        Case("split", lambda x: sum(k * p for k, p in enumerate(np.split(x, 2, 1), 1)), (X,)),
        Case("split", lambda x: np.split(x, [1, 3], 1)[1], (X,), "indices"),
        Case("split", lambda x: sum(map(np.sum, np.split(x, [3, 1], 1))), (X,), "overlapping"),
        Case("take", lambda x: np.take(x, PLACES), (X,), "flat"),
        Case("take", lambda x: np.take(x, PLACES, 1), (X,)),
        Case("gather", lambda x: np.take_along_axis(x, PAIRS, 1), (X,)),
        Case("index", lambda x: x[np.array([0, 2, 2]), np.array([1, 1, 1])], (X,)),
        Case("index", lambda x: x[:, PLACES], (X,), "axis"),
        Case("index_add", lambda x, v: op("index_add")(x, v, PLACES, axes=(1,)), (X, normal(3, 4))),
        *(
            Case(f"index_{name}", partial(_at_places, f"index_{name}"), (X, normal(3, 4)))
            for name in ("put", "maximum", "minimum")
        ),
        Case("require", lambda x: op("require")(x, True, message="none"), (X,)),
        Case("gather_add", lambda x, v: op("gather_add")(x, v, np.array([[1], [0], [1]]), axis=1), (X, normal(3, 1))),
        Case("sum_to", lambda x: op("sum_to")(x, COLUMN), (X,)),
        Case("sum_to", lambda x: op("sum_to")(x, ROW), (WIDE,), "leading"),
        *(
            Case(name, partial(getattr(np, name), axis=axis, keepdims=keep), (M,), f"{axis}{'-keepdims' * keep}")
            for name in ("sum", "mean", "prod", "max", "min", "var", "std")
            for axis in (None, 0, (0, 1))
            for keep in (False, True)
        ),
        Case("var", lambda x: x.var(1, ddof=1), (M,), "ddof"),
        Case("prod", lambda x: x.prod(1), (np.array([[1.0, 0, 3], [0, 0, 2], [4, 5, 6]]),), "zeros", second=False),
        Case("cumsum", lambda x: np.cumsum(x, 1), (X,)),
        Case("cumsum", lambda x: np.cumsum(x), (X,), "flat"),
        Case("cumprod", lambda x: np.cumprod(x, 0), (M,)),
        Case("cumprod", lambda x: np.cumprod(x), (np.array([2.0, 0, 3, 0, 5]),), "zeros", second=False),
        *(
            Case("matmul", lambda a, c: a @ c, (normal(*a), normal(*c)), f"{a}x{c}")
            for a, c in [
                ((3, 4), (4, 5)),
                ((4,), (4, 5)),
                ((3, 4), (4,)),
                ((4,), (4,)),
                ((2, 3, 4), (4, 5)),
                ((3, 4), (2, 4, 5)),
                ((2, 1, 3, 4), (5, 4, 2)),
                ((2, 3, 4), (4,)),
                ((4,), (2, 4, 3)),
            ]
        ),
        Case("einsum", lambda a, c: np.einsum("ij,jk->ki", a, c), (X, normal(4, 5))),
        Case("softmax", _softmax, (X,)),
        *(Case(*call) for call in CALLS),
    ]


def _with_number(fn: Callable[..., Any], x: Any) -> Any:
    return fn(x, 1.37)


def _at_places(name: str, x: Any, value: Any) -> Any:
    return op(name)(x, value, PLACES, axes=(1,))


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _assigned(x: Any, row: Any) -> Any:
    y = x * 2
    y[...] = row
    return y * x


def _sliced(x: Any, part: Any) -> Any:
    y = x * 2
    y[1:, ::2] = part
    return y * y


def _picked(x: Any, row: Any) -> Any:
    y = x * 2
    y[1] = row
    y[0] += x[2] * row
    return y * y


CASES = _cases()
# What NumPy makes of an array by itself has no gradient on the tape, and functions of Python's numbers refuse arrays.
TAPED = [
    case for case in CASES if case.op not in ("full", "item") and not getattr(find_op(case.op), "of_numbers", False)
]
