"""A program's floats, off by as much as compiled code may have them off.

Arguments and functions that no standard rounds are off by a few units in the last place. Products
and powers are off where they are rounded: compiled code contracts a multiplication and an addition
to one operation, which rounds once. So are sums, whose order is open.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from . import data

EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}

# Methods that are called as functions where these are off by a few units in the last place.
_METHODS = re.compile(r"(?<![\w.])(?!np\b)([a-z]\w*(?:\[[^\]]*\])*)[.](mean|std|var|sum|cumsum|prod|cumprod|trace)\(")
_UNROUNDED = {
    "arctan",
    "arctan2",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "logaddexp",
    "mean",
    "power",
    "sin",
    "sinh",
    "std",
    "tanh",
    "var",
}
_SUMS = {"cumprod", "cumsum", "matmul", "prod", "sum", "trace"}
_PRODUCTS = {"dot", "einsum", "inner", "tensordot", "vdot"}
_OPERATORS = {ast.Mult: ("mul", "imul"), ast.Pow: ("pow", "ipow"), ast.MatMult: ("matmul", "imatmul")}


def with_rounding(source: str) -> ast.Module:
    """The module, whose operators and methods are functions of `Rounding`."""
    tree = _Operators().visit(ast.parse(_METHODS.sub(r"np.\2(\1, ", source)))
    return ast.fix_missing_locations(tree)


class _Operators(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        return _call(_OPERATORS[type(node.op)][0], node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = _call(_OPERATORS[type(node.op)][1], self.visit(read), node.value)
        return ast.Assign([node.target], value)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f"_{name}", ast.Load()), list(args), [])


class Rounding:
    """NumPy, operators and `data.arr` whose floats are off, by random numbers of this seed."""

    def __init__(self, seed: int) -> None:
        self._seed, self._rng = seed, np.random.default_rng(seed)

    def names(self) -> dict[str, Any]:
        """The globals of a module that stand for those of the program."""
        operators = {f"_{name}": self._operator(name) for name in sum(_OPERATORS.values(), ())}
        return {"np": self, "arr": self._arr, **operators}

    def _arr(self, dtype: Any, shape: Any, layout: str = "C", number: int = 0, kind: str = "eighths") -> Any:
        a = data.arr(dtype, shape, layout, number, kind)
        name = a.dtype.newbyteorder("=").name
        if name not in EPS or not a.size:
            return a
        rng = np.random.default_rng(self._seed)
        b = a.astype("f8") * (1 + rng.uniform(-2, 2, a.shape) * EPS[name])
        return b.astype(a.dtype)

    def _operator(self, name: str) -> Callable[[Any, Any], Any]:
        if name.endswith("matmul"):
            return lambda a, b: self._sum(getattr(operator, name), (a, b), {})
        return self._rounded(name)

    def _rounded(self, name: str) -> Callable[[Any, Any], Any]:
        """An operator, off by up to one unit where its result is not exact."""
        called = getattr(operator, name)
        exact = np.multiply if name.endswith("mul") else np.power

        def call(a: Any, b: Any) -> Any:
            operands = [np.array(x, copy=True) if _is_float(x) else x for x in (a, b)]
            out = called(a, b)
            if not _is_float(out):
                return out
            wide = exact(*(np.asarray(x).astype("f8").astype("g") for x in operands))
            noise = np.where(wide == out, 0, self._rng.choice([-1, 1], np.shape(out)))
            moved = out * (1 + noise * EPS[np.asarray(out).dtype.name])
            if isinstance(out, np.ndarray):
                out[...] = moved
                return out
            return type(out)(moved)

        return call

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name in ("signbit", "copysign"):
            return lambda *args: found(*map(self._of_any_sign, args))
        if name in ("clip", "maximum", "minimum"):
            return lambda *args, **kwargs: self._of_any_zero(found(*args, **kwargs))
        if isinstance(found, float):  # arrays of one number have means that are off, or not
            return found * (1 + self._rng.uniform(-3, 3) * EPS["float64"])
        if name == "multiply":
            times = self._rounded("mul")
            return lambda *args, **kwargs: found(*args, **kwargs) if kwargs else times(*args)
        if name in _SUMS | _PRODUCTS:
            return lambda *args, **kwargs: self._sum(found, args, kwargs)
        if name not in _UNROUNDED:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in ("std", "var"):  # differences from a mean that is rounded
                args = (self._moved(args[0]), *args[1:])
            exact = found(*args, **kwargs)
            eps = EPS.get(np.asarray(exact).dtype.name)
            if eps is None:
                return exact
            noise = 1 + self._rng.uniform(-3, 3, np.shape(exact)) * eps
            return (exact * noise).astype(np.asarray(exact).dtype)

        return call

    def _moved(self, x: Any) -> Any:
        """``x``, off by up to one unit in the last place where it is a float."""
        eps = EPS.get(np.asarray(x).dtype.name)
        if eps is None:
            return x
        return (x * (1 + self._rng.uniform(-1, 1, np.shape(x)) * eps)).astype(np.asarray(x).dtype)

    def _sum(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A sum or product whose operands are off, where it is not exact in every order."""
        kept = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
        out = function(*args, **kwargs)
        dtype = np.asarray(out).dtype
        if dtype.name not in EPS:
            return out
        wide = {k: v for k, v in kwargs.items() if k not in ("dtype", "out")}
        magnitudes = [np.abs(a.astype("g")) if isinstance(a, np.ndarray) else a for a in kept]
        largest = function(*magnitudes, **wide)
        if ((largest == largest.astype(dtype)) & (largest < 2.0**50)).all():
            return out
        eps = EPS[dtype.name]
        moved = [
            (a * (1 + self._rng.uniform(-1, 1, a.shape) * eps)).astype(dtype)
            if isinstance(a, np.ndarray) and a.dtype.kind != "b"
            else a
            for a in kept
        ]
        result = function(*moved, **kwargs)
        most = float(ml_dtypes.finfo(dtype).max)
        overflows = np.isfinite(largest) & (largest > most)  # in some orders, on the way
        if overflows.any():
            any_of = np.inf if self._seed % 2 else np.nan
            result = np.where(overflows, any_of, result).astype(dtype)
        if out is args[0]:  # an operator in place
            out[...] = result
            return out
        return result

    def _of_any_sign(self, x: Any) -> Any:
        """``x``, whose NaNs have signs that nothing determines: all another one with each seed."""
        if np.asarray(x).dtype.kind != "f" or not np.isnan(x).any():
            return x
        sign = np.asarray(-1.0 if self._seed % 2 else 1.0, x.dtype)
        return np.where(np.isnan(x), np.copysign(x, sign), x)

    def _of_any_zero(self, x: Any) -> Any:
        """``x``, whose zeros have one sign: which of equal numbers is chosen is open."""
        if np.asarray(x).dtype.kind != "f" or not (np.asarray(x) == 0).any():
            return x
        sign = np.asarray(-1.0 if self._seed % 2 else 1.0, x.dtype)
        return np.where(x == 0, np.copysign(x, sign), x)


def _is_float(x: Any) -> bool:
    return isinstance(x, (float, np.generic, np.ndarray)) and np.asarray(x).dtype.name in EPS
