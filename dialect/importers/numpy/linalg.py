"""NumPy's products, norms and diagonals, as ops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ProfuseError, ShapeError
from ...ir.attrs import DYNAMIC
from ...ir.dtypes import dtype_of
from ...ops.linalg.einsum import decompose_einsum, parse_subscripts
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.outputs import note_copy
from ..tracing.traced import Traced
from .axes import as_array, axis_of, axis_tuple, dtype_like, ndim, reduced_axes, zero_of
from .creation import broadcast, eye, iota
from .joins import stack
from .reductions import max_, min_, sum_
from .registry import numpy_function


@numpy_function("dot")
def dot(a: Any, b: Any) -> Any:
    """`np.dot`."""
    ra, rb = ndim(a), ndim(b)
    if ra == 0 or rb == 0:
        return _scaled(a, b)
    if rb <= 2:
        return _product(a, b)
    return _tensordot(a, b, ((ra - 1,), (max(rb - 2, 0),)))


@numpy_function("vdot")
def vdot(a: Any, b: Any) -> Any:
    """`np.vdot`."""
    flat = op("reshape", as_array(a), shape=(-1,))
    if dtype_like(a).kind == "c":
        flat = op("conj", flat)  # np.conj makes int8 of bools
    return _product(flat, op("reshape", as_array(b), shape=(-1,)))


def _product(a: Any, b: Any) -> Any:
    """A product in the operands' own dtype: np.dot keeps bfloat16, the op does not."""
    out, dtype = op("matmul", a, b), dtype_like(a)
    if dtype_like(b) != dtype or out.dtype == dtype:
        return out
    return op("cast", out, dtype=dtype_of(dtype))


def _scaled(a: Any, b: Any) -> Any:
    """An elementwise product, to which a Python number comes with a dtype of its own."""
    return op("mul", as_array(a), as_array(b))


@numpy_function("inner")
def inner(a: Any, b: Any) -> Any:
    """`np.inner`."""
    ra, rb = ndim(a), ndim(b)
    if ra == 0 or rb == 0:
        return _scaled(a, b)
    if rb <= 2:
        return _product(a, b if rb == 1 else op("transpose", b))
    return _tensordot(a, b, ((ra - 1,), (rb - 1,)))


@numpy_function("outer")
def outer(a: Any, b: Any) -> Any:
    """`np.outer`."""
    column = op("reshape", as_array(a), shape=(-1, 1))
    return op("mul", column, op("reshape", as_array(b), shape=(1, -1)))


@numpy_function("tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """`np.tensordot`."""
    return in_memory(_tensordot(a, b, axes))


def _tensordot(a: Any, b: Any, axes: Any) -> Any:
    ra, rb = ndim(a), ndim(b)
    if isinstance(axes, (tuple, list)):
        in_a, in_b = axes
        of_a, of_b = axis_tuple(in_a), axis_tuple(in_b)
    else:
        count = operator.index(axes)
        of_a, of_b = tuple(range(ra - count, ra)), tuple(range(count))
    if len(of_a) != len(of_b):
        raise ShapeError("shape-mismatch for sum", loc=user_loc())
    of_a = tuple(axis_of(x, ra) for x in of_a)
    of_b = tuple(axis_of(x, rb) for x in of_b)
    if len(of_a) > 1:  # merged for a product, axes of unlike sizes may have one size
        x, y = as_array(a), as_array(b)
        if any(x.shape[i] != y.shape[j] for i, j in zip(of_a, of_b, strict=True)):
            raise size_error(ShapeError, "shape-mismatch for sum")
    labels = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    left = [next(labels) for _ in range(ra)]
    right = [next(labels) for _ in range(rb)]
    for x, y in zip(of_a, of_b, strict=True):
        right[y] = left[x]
    out = [s for s in left if s not in right] + [s for s in right if s not in left]
    return _einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", [a, b])


@numpy_function("einsum", raw=True)
def einsum(*operands: Any, optimize: Any = False, dtype: Any = None, out: Any = None) -> Any:
    """`np.einsum` with a subscript string."""
    if out is not None:
        raise trace_error("np.einsum(…, out=…) is not supported while tracing")
    subscripts, *arrays = operands
    if not isinstance(subscripts, str):
        raise trace_error(
            "np.einsum with lists of axis numbers is not supported while tracing",
            "write the subscripts as a string, e.g. 'ij,jk->ik'",
        )
    arrays = [as_array(a) for a in arrays]
    if dtype is not None:
        arrays = [op("cast", a, dtype=dtype_of(dtype)) for a in arrays]
    made = _einsum(subscripts, _stretched(subscripts, arrays))
    if len(arrays) == 1 and made.ndim:
        inputs, output = parse_subscripts(subscripts, [arrays[0].ndim])
        if set(inputs[0]) == set(output):
            note_copy(made, arrays[0])
    return made


def _einsum(subscripts: str, arrays: Sequence[Any]) -> Any:
    try:
        return decompose_einsum(op, subscripts, [as_array(a) for a in arrays])
    except ProfuseError as error:
        if error.loc is not None:
            raise
        raise size_error(type(error), error.what) from None


def _stretched(subscripts: str, arrays: list[Any]) -> list[Any]:
    """The operands, with axes of size 1 broadcast to what other axes of their labels have.

    Sizes are compared, which leaves trace guards, where a 1 is among the sizes of a label now, and
    where several labels are summed over at a time: merged, axes of unlike sizes may have one size.
    Raises ShapeError for sizes that do not fit.
    """
    inputs, output = parse_subscripts(subscripts, [ndim(a) for a in arrays])
    every = [label for labels in inputs for label in set(labels)]
    summed = {label for label in every if every.count(label) > 1} - {*output}
    hints = [a.hint if isinstance(a, Traced) else a.shape for a in arrays]
    whole: dict[str, tuple[Any, Any]] = {}  # of each label a size that is not 1, if there is one
    for array, labels, now in zip(arrays, inputs, hints, strict=True):
        for label, size, hint in zip(labels, array.shape, now, strict=True):
            if whole.get(label, (1, None))[0] == 1:
                whole[label] = hint, size
    out = []
    for array, labels, now in zip(arrays, inputs, hints, strict=True):
        sizes = array.shape
        stretched = [
            hint == 1 and size != whole[label][1] and size == 1
            for label, size, hint in zip(labels, sizes, now, strict=True)
        ]
        if any(stretched):
            pairs = zip(stretched, labels, sizes, strict=True)
            sizes = tuple(whole[label][1] if yes else size for yes, label, size in pairs)
            array = broadcast(array, sizes)
        for label, size, hint in zip(labels, array.shape, now, strict=True):
            known, other = whole[label]
            merged = len(summed) > 1 and label in summed
            if hint not in (1, known) or (merged and size != other):
                raise size_error(
                    ShapeError, f"operands could not be broadcast together: axes '{label}' differ"
                )
        out.append(array)
    return out


@numpy_function("linalg.norm", "linalg.vector_norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """`np.linalg.norm`: 2, 1, inf, -inf and 0 of vectors; Frobenius, 1 and inf of matrices."""
    array = as_array(x)
    if array.dtype.kind in "biu":
        array = op("cast", array, dtype=dtype_of(np.float64))
    if axis is None and (ord is None or (ord == 2 and array.ndim == 1)):
        axes: tuple[int, ...] | None = None
    elif axis is None:
        axes = tuple(range(array.ndim))
    else:
        axes = reduced_axes(axis if isinstance(axis, tuple) else int(axis))
        if len(axes or ()) not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    if ord in (None, "fro") or (ord == 2 and (axes is None or len(axes) == 1)):
        return op("sqrt", sum_(_squared(array), axes, None, keepdims))
    size = op("abs", array)
    if axes is not None and len(axes) == 1:
        if ord == np.inf:
            return max_(size, axes, keepdims)
        if ord == -np.inf:
            return min_(size, axes, keepdims)
        if ord == 0:
            return sum_(op("ne", array, 0), axes, size.dtype, keepdims)
        if ord == 1:
            return sum_(size, axes, None, keepdims)
        if isinstance(ord, (int, float)):
            total = sum_(op("pow", size, ord), axes, None, keepdims)
            return op("pow", total, 1.0 / ord)
    elif axes is not None and len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        rows, columns = (axis_of(a, array.ndim) for a in axes)
        along, then = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = sum_(size, along, None, True)
        out = (max_ if ord > 0 else min_)(sums, then, True)
        return out if keepdims else op("squeeze", out, axes=(rows, columns))
    raise trace_error(
        f"np.linalg.norm with ord={ord!r} of these axes is not supported while tracing",
        "use the Frobenius or Euclidean norm, or call it outside of the traced function",
    )


def _squared(x: Any) -> Any:
    if x.dtype.kind == "c":
        return op("add", op("square", op("real", x)), op("square", op("imag", x)))
    return op("square", x)


@numpy_function("diagonal", "linalg.diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """`np.diagonal`: the two axes become one, which is the last."""
    matrix = x = as_array(a)
    one, two = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    x = op("moveaxis", x, source=(one, two), destination=(-2, -1))
    k = operator.index(offset)
    rows, columns = x.shape[-2:]
    count = op("minimum", rows + min(k, 0), columns - max(k, 0))
    index = iota(op("maximum", count, 0), dtype_of(np.int64))
    merged = (*x.shape[:-2], rows * columns)
    flat = op("reshape", x, *merged, shape=(DYNAMIC,) * len(merged))
    start = max(k, 0) + columns * max(-k, 0)
    out = op("take", flat, op("add", op("mul", index, columns + 1), start), axis=-1)
    out.rec.unordered.add(out.value)  # NumPy's has gaps between elements
    note_copy(out, matrix)
    return out


@numpy_function("trace", "linalg.trace")
def trace_(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """`np.trace`."""
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype)


@numpy_function("diag")
def diag(v: Any, k: int = 0) -> Any:
    """`np.diag`: the diagonal of a matrix, or a matrix with this diagonal."""
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.", loc=user_loc())
    if k:
        raise trace_error(
            "np.diag of a vector off the main diagonal is not supported while tracing",
            "pad the matrix np.diag(v) gives",
        )
    mask = eye(x.shape[0], dtype=bool)
    return op("select", mask, x, zero_of(x))


@numpy_function("cross")
def cross(a: Any, b: Any, axis: Any = -1) -> Any:
    """`np.cross` of vectors of three components along ``axis``."""
    source = (operator.index(axis),)
    x, y = (op("moveaxis", as_array(v), source=source, destination=(-1,)) for v in (a, b))
    x0, x1, x2 = (x[..., k] for k in range(3))
    y0, y1, y2 = (y[..., k] for k in range(3))
    return stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], operator.index(axis))


@numpy_function("kron")
def kron(a: Any, b: Any) -> Any:
    """`np.kron` of two matrices or two vectors."""
    x, y = as_array(a), as_array(b)
    if x.ndim != y.ndim or x.ndim not in (1, 2):
        raise trace_error("np.kron of arrays of different or high rank is not supported")
    if x.ndim == 1:
        return op("reshape", outer(x, y), shape=(-1,))
    (m, n), (p, q) = x.shape, y.shape
    left = op("expand_dims", x, axes=(1, 3))
    right = op("expand_dims", y, axes=(0, 2))
    return (left * right).reshape(m * p, n * q)
