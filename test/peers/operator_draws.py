"""Random operands and attributes of ONNX's operators: one maker for each kind of operator.

A maker is given a `Draws` and gives a `Drawn`. Shapes have zero to four axes, some of them empty or of one element;
dtypes are those that the operator's schema names and that NumPy or ml_dtypes has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx

NEWEST = onnx.defs.onnx_opset_version()
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"
DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(bfloat16)": ml_dtypes.bfloat16,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


class Fixed:
    """An operand that is a constant of the model."""

    def __init__(self, value: Any, dtype: Any = np.int64) -> None:
        self.value = np.asarray(value, dtype)


@dataclass
class Drawn:
    """One node: its operator, operands (arrays, `Fixed` ones, None for those left out), attributes, number of results.

    Attributes:
        first: the least version of the operators in which the node is as it is.
        last: the greatest one.
        tolerance: a factor of the tolerances.
    """

    op: str
    operands: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    results: int = 1
    first: int = 7
    last: int = NEWEST
    domain: str = ""
    tolerance: float = 1.0


Maker = Callable[["Draws"], Drawn | None]
MAKERS: list[Maker] = []


def maker(function: Maker) -> Maker:
    MAKERS.append(function)
    return function


class Draws:
    """Random choices."""

    def __init__(self, seed: Any) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both counted."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, low: int = 0, high: int = 4, empty: float = 0.06) -> tuple[int, ...]:
        rank = self.number(low, high)
        return tuple(0 if self.chance(empty) else self.one_of([1, 2, 3, 4, 5, 7]) for _ in range(rank))

    def floats(self, shape: Sequence[int], dtype: Any = np.float32, scale: float = 1.0) -> np.ndarray:
        return np.asarray(self.rng.normal(size=tuple(shape)) * scale).astype(dtype)

    def integers(self, shape: Sequence[int], low: int, high: int, dtype: Any = np.int64) -> np.ndarray:
        return np.asarray(self.rng.integers(low, high + 1, tuple(shape))).astype(dtype)

    def truths(self, shape: Sequence[int]) -> np.ndarray:
        return np.asarray(self.rng.random(tuple(shape)) < 0.5)

    def array(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.truths(shape)
        if kind in "iu":
            return self.integers(shape, 0 if kind == "u" else -9, 9, dtype)
        return self.floats(shape, dtype, 2.0)

    def axis(self, shape: Sequence[int]) -> int:
        return self.number(-len(shape), len(shape) - 1)

    def axes(self, shape: Sequence[int], most: int = 3) -> list[int]:
        """Different axes, some of them counted from the end; at least one."""
        count = self.number(1, max(1, min(most, len(shape))))
        chosen = self.rng.permutation(len(shape))[:count]
        return [int(k) - (len(shape) if self.chance(0.3) else 0) for k in chosen]

    def dtype(self, op: str, operand: int = 0, domain: str = "", *, narrow: bool = True, first: int = NEWEST) -> Any:
        """A dtype that the operator takes in this place, f32 more often than others."""
        schema = onnx.defs.get_schema(op, first, domain)
        types = sorted(t for t in schema.inputs[operand].types if t in DTYPES)
        dtypes = [DTYPES[t] for t in types]
        if not narrow:
            dtypes = [t for t in dtypes if np.dtype(t).kind != "V" and np.dtype(t) != np.float16]
        return np.float32 if np.float32 in dtypes and self.chance(0.5) else self.one_of(dtypes)

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts against ``shape``."""
        cut = self.number(0, len(shape)) if self.chance(0.4) else 0
        return tuple(1 if self.chance(0.25) else n for n in shape[cut:])


_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh", "Erf", "Exp"),
    *("Floor", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan"),
    *("Tanh", "Relu", "HardSwish", "Softplus", "Softsign", "Mish", "Identity"),
)
_INSIDE = ("Acos", "Asin", "Atanh")
_POSITIVE = ("Log", "Sqrt", "Reciprocal")


@maker
def unary(d: Draws) -> Drawn:
    op = d.one_of(_UNARY)
    dtype = d.dtype(op)
    x = d.array(d.shape(), dtype)
    if op in _INSIDE:
        x = np.clip(x.astype(np.float32) / 4, -0.9, 0.9).astype(dtype)
    elif op in _POSITIVE:
        x = (np.abs(x.astype(np.float64)) + 0.1).astype(dtype)
    elif op == "Acosh":
        x = (np.abs(x.astype(np.float64)) + 1.1).astype(dtype)
    elif op == "Tan":
        x = np.clip(x.astype(np.float32), -1.2, 1.2).astype(dtype)
    elif op == "IsNaN":
        x = np.where(d.truths(x.shape), x, np.nan).astype(dtype)
    elif np.dtype(dtype).kind == "f" and x.size and d.chance(0.1) and op not in ("Round",):
        x.flat[0] = d.one_of([np.inf, -np.inf, np.nan, -0.0])
    return Drawn(op, [x], first=onnx.defs.get_schema(op).since_version, tolerance=2.0)


@maker
def unary_with_attributes(d: Draws) -> Drawn:
    a, b = (round(float(v), 3) for v in d.rng.uniform(0.1, 2.0, 2))
    op, attributes = d.one_of(
        [
            ("LeakyRelu", {"alpha": a}),
            ("Elu", {"alpha": a}),
            ("Selu", {"alpha": a, "gamma": b}),
            ("Celu", {"alpha": a}),
            ("ThresholdedRelu", {"alpha": a}),
            ("HardSigmoid", {"alpha": a, "beta": b}),
            ("Shrink", {"bias": a, "lambd": b}),
            ("Gelu", {"approximate": d.one_of(["none", "tanh"])}),
            ("Swish", {"alpha": a}),
            ("IsInf", {"detect_negative": d.number(0, 1), "detect_positive": d.number(0, 1)}),
        ]
    )
    x = d.array(d.shape(), d.dtype(op))
    if op == "IsInf":
        x = np.where(d.truths(x.shape), x, d.one_of([np.inf, -np.inf])).astype(x.dtype)
    if d.chance(0.3):
        attributes = {}
    return Drawn(op, [x], attributes, first=onnx.defs.get_schema(op).since_version, tolerance=2.0)


_BINARY = ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "PRelu", "Equal", "Greater", "GreaterOrEqual", "Less")
_BITS = ("LessOrEqual", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")


@maker
def binary(d: Draws) -> Drawn:
    op = d.one_of(_BINARY + _BITS)
    dtype = d.dtype(op)
    kind = np.dtype(dtype).kind
    shape = d.shape()
    x, y = d.array(shape, dtype), d.array(d.broadcast(shape), dtype)
    attributes: dict[str, Any] = {}
    if op in ("Div", "Mod"):
        y = np.where(y == 0, np.ones((), dtype), y)
    if op == "Mod":
        if kind not in "iu" or d.chance(0.3):
            attributes["fmod"] = 1
        if kind in "fV":
            x, y = x.astype(np.float32), y.astype(np.float32)
    if op == "Pow":
        x = np.abs(x) if kind != "u" else x
        other = d.one_of([np.float32, np.int64, np.int32, np.float64])
        y = d.one_of([d.array(y.shape, other), d.integers((), 0, 3, other)])
        y = np.clip(y, 0, 3) if kind in "iu" else np.clip(y, -2, 3)
        x = np.where(x == 0, np.ones((), dtype), x)
    if op == "BitShift":
        attributes["direction"] = d.one_of(["LEFT", "RIGHT"])
        y = np.minimum(y, 7).astype(dtype)
    if op != "PRelu" and op != "Pow" and op != "BitShift" and d.chance(0.3):
        x, y = (x, y) if op in ("Div", "Mod") else (y, x)
    first = onnx.defs.get_schema(op).since_version
    return Drawn(op, [x, y], attributes, first=first, tolerance=3.0)


@maker
def variadic(d: Draws) -> Drawn:
    op = d.one_of(["Max", "Min", "Sum", "Mean", "Where"])
    shape = d.shape()
    if op == "Where":
        dtype = d.dtype(op, 1)
        operands = [d.truths(d.broadcast(shape)), d.array(d.broadcast(shape), dtype), d.array(shape, dtype)]
        return Drawn(op, operands, first=16)
    dtype = d.dtype(op)
    return Drawn(op, [d.array(d.broadcast(shape), dtype) for _ in range(d.number(1, 4))], first=13)


@maker
def clip(d: Draws) -> Drawn:
    dtype = d.dtype("Clip")
    low, high = d.array((), dtype), d.array((), dtype)
    operands = [d.array(d.shape(), dtype), low if d.chance(0.8) else None, high if d.chance(0.7) else None]
    return Drawn("Clip", operands, first=13)


@maker
def clip_of_attributes(d: Draws) -> Drawn:
    low, high = sorted(float(v) for v in d.rng.normal(size=2))
    return Drawn("Clip", [d.floats(d.shape())], {"min": low, "max": high}, last=10)


@maker
def cast(d: Draws) -> Drawn:
    kinds = [*DTYPES.values()]
    source, target = d.one_of(kinds), d.one_of(kinds)
    x = d.array(d.shape(), source)
    if np.dtype(target).kind == "u" and np.dtype(source).kind != "u":
        x = np.abs(x)
    if d.chance(0.3):
        return Drawn("CastLike", [x, d.array(d.shape(), target)], first=19)
    return Drawn("Cast", [x], {"to": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target))}, first=13)


@maker
def filled(d: Draws) -> Drawn:
    op = d.one_of(["ConstantOfShape", "EyeLike", "Range"])
    kinds = [np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]
    if op == "ConstantOfShape":
        value = onnx.numpy_helper.from_array(d.array((1,), d.one_of(kinds)))
        return Drawn(op, [np.array(d.shape(), np.int64)], {"value": value} if d.chance(0.7) else {}, first=9)
    if op == "EyeLike":
        attributes: dict[str, Any] = {"k": d.number(-3, 3)}
        if d.chance():
            attributes["dtype"] = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(d.one_of(kinds[:5])))
        return Drawn(op, [d.array(d.shape(2, 2), d.one_of(kinds[:5]))], attributes, first=9)
    dtype = d.one_of([np.float32, np.float64, np.int64, np.int32, np.int16])
    step = d.one_of([1, 2, -1, -3] if np.dtype(dtype).kind == "i" else [0.5, 1.0, -0.25])
    return Drawn(
        op, [np.array(d.number(-5, 5), dtype), np.array(d.number(-5, 9), dtype), np.array(step, dtype)], first=11
    )


_REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd"),
    *("ReduceLogSum", "ReduceLogSumExp"),
)


@maker
def reduction(d: Draws) -> Drawn:
    op = d.one_of(_REDUCTIONS)
    dtype = d.dtype(op, narrow=False)
    if np.dtype(dtype).kind == "u":
        dtype = np.int64  # the evaluator makes u64 of other unsigned numbers
    shape = d.shape(1, 4, empty=0.03)
    x = d.array(shape, dtype)
    if op == "ReduceLogSum":
        x = (np.abs(x) + 1).astype(dtype)
    attributes: dict[str, Any] = {"keepdims": d.number(0, 1)}
    axes = d.axes(shape)
    if d.chance(0.3):
        return Drawn(
            op, [x], attributes | ({"axes": axes} if d.chance(0.8) else {}), last=12 if op == "ReduceSum" else 17
        )
    if d.chance(0.2):
        return Drawn(op, [x, Fixed([])], attributes | {"noop_with_empty_axes": d.number(0, 1)}, first=18)
    return Drawn(op, [x, Fixed(axes)] if d.chance(0.8) else [x], attributes, first=18, tolerance=2.0)


@maker
def places(d: Draws) -> Drawn:
    shape = d.shape(1, 4, empty=0.0)
    op = d.one_of(["ArgMax", "ArgMin"])
    attributes = {"axis": d.axis(shape), "keepdims": d.number(0, 1), "select_last_index": d.number(0, 1)}
    return Drawn(op, [d.array(shape, d.dtype(op))], attributes, first=13)


@maker
def cumulative(d: Draws) -> Drawn:
    shape = d.shape(1, 4)
    flags = {"exclusive": d.number(0, 1), "reverse": d.number(0, 1)}
    op = d.one_of(["CumSum", "CumSum", "CumProd"])
    dtype = d.one_of([np.float32, np.float64, np.int32, np.int64])
    x = d.array(shape, dtype)
    return Drawn(op, [x, Fixed(d.axis(shape))], flags, first=26 if op == "CumProd" else 14, tolerance=3.0)


@maker
def top(d: Draws) -> Drawn:
    shape = d.shape(1, 3, empty=0.0)
    axis = d.axis(shape)
    dtype = d.one_of([np.float32, np.float64, np.int64, np.int32, np.uint8])
    x = d.rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)  # of equal elements any may come first
    attributes = {"axis": axis, "largest": d.number(0, 1), "sorted": 1}
    return Drawn("TopK", [x, np.array([d.number(0, shape[axis])])], attributes, results=2, first=11)


@maker
def chosen_elements(d: Draws) -> Drawn:
    op = d.one_of(["Unique", "NonZero", "Compress"])
    shape = d.shape(1, 3, empty=0.0)
    if op == "Unique":
        attributes: dict[str, Any] = {"sorted": d.number(0, 1)}
        if d.chance():
            attributes["axis"] = d.axis(shape)
        x = d.integers(shape, 0, 2, d.one_of([np.float32, np.int64, np.int8]))
        return Drawn(op, [x], attributes, results=4, first=11)
    if op == "NonZero":
        return Drawn(op, [d.integers(d.shape(1, 4), 0, 1, d.one_of([np.float32, np.int64, np.bool_]))], first=13)
    axis = d.axis(shape)
    x = d.array(shape, d.one_of([np.float32, np.int32]))
    if d.chance(0.3):
        return Drawn(op, [x, d.truths((d.number(1, int(np.prod(shape))),))], first=11)
    return Drawn(op, [x, d.truths((d.number(1, shape[axis]),))], {"axis": axis}, first=11)


@maker
def one_hot(d: Draws) -> Drawn:
    shape = d.shape(0, 3)
    depth = d.number(1, 6)
    indices = d.integers(shape, -depth - 1, depth, d.one_of([np.int64, np.int32, np.float32]))
    values = d.array((2,), d.one_of([np.float32, np.int64]))
    count = np.array(depth) if d.chance() else np.array([depth], np.float32)
    return Drawn("OneHot", [indices, count, values], {"axis": d.number(-len(shape) - 1, len(shape))}, first=11)


@maker
def softmax(d: Draws) -> Drawn:
    op = d.one_of(["Softmax", "LogSoftmax", "Hardmax"])
    shape = d.shape(1, 4, empty=0.0)
    is_old = d.chance(0.3)
    axis = d.number(0, len(shape) - 1) if is_old else d.axis(shape)
    # Of old versions the evaluator knows none, and onnxruntime has f32 alone.
    x = d.array(shape, np.float32 if is_old else d.dtype(op))
    # Equal elements of narrow floats would be a tie, of which the first counts.
    return Drawn(op, [x], {"axis": axis}, first=7 if is_old else 13, last=12 if is_old else NEWEST)
