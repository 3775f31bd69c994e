"""NumPy's products, norms and diagonals, as ops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import AxisError, BoundsError, DTypeError, ProfuseError, ShapeError
from ....ir.attrs import DYNAMIC
from ....ir.dtypes import BF16, dtype_of
from ....ops.linalg.einsum import decompose_einsum, parse_subscripts
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.outputs import note_copy, note_order, write_out
from ..tracing.traced import Traced
from .axes import as_array, axis_number, axis_of, axis_tuple, check_cast, dtype_like, ndim, sizes_now, zero_of
from .joins import stack
from .progressions import eye, iota
from .reductions import max_, min_, sum_
from .registry import array_method, numpy_function, refuse_parameter


@numpy_function("dot")
def dot(a: Any, b: Any) -> Any:
    """`np.dot`."""
    ra, rb = ndim(a), ndim(b)
    if ra == 0 or rb == 0:
        return _scaled(a, b)
    if rb <= 2:
        return _product(a, b)
    return _tensordot(a, b, ((ra - 1,), (max(rb - 2, 0),)))


@array_method("dot")
def _dot(self: Traced, b: Any, out: Any = None) -> Any:
    """`ndarray.dot`."""
    result = dot(self, b)
    return result if out is None else write_out("ndarray.dot", out, result)


@numpy_function("vdot")
def vdot(a: Any, b: Any) -> Any:
    """`np.vdot`."""
    flat = op("reshape", as_array(a), shape=(-1,))
    if dtype_like(a).kind == "c":
        flat = op("conj", flat)  # np.conj makes int8 of bools
    return _product(flat, op("reshape", as_array(b), shape=(-1,)))


def _product(a: Any, b: Any) -> Any:
    """A product in the operands' common dtype: np.dot keeps bfloat16, the op does not."""
    out = op("matmul", a, b)
    try:
        dtype = np.result_type(dtype_like(a), dtype_like(b))
    except TypeError:
        return out  # NumPy multiplies Python objects: bfloat16 has nothing in common with int32
    return out if out.dtype == dtype else op("cast", out, dtype=dtype_of(dtype))


def _scaled(a: Any, b: Any) -> Any:
    """An elementwise product in which a Python number has a dtype of its own: it is not weak.

    NumPy adds it to zeros, so that no zero of it has a sign.
    """
    product = op("mul", as_array(a), as_array(b))
    return op("add", product, 0.0) if product.dtype.kind in "fc" else product


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
    if len(set(of_a)) != len(of_a) or len(set(of_b)) != len(of_b):
        raise ShapeError("duplicate axes are not allowed in tensordot", loc=user_loc())
    try:
        of_a = tuple(axis_of(x, ra) for x in of_a)
        of_b = tuple(axis_of(x, rb) for x in of_b)
    except AxisError:
        raise BoundsError("tuple index out of range", loc=user_loc()) from None  # NumPy's is no AxisError
    arrays = [as_array(a), as_array(b)]
    sizes_a, sizes_b = map(sizes_now, arrays)
    for x, y in zip((sizes_a[k] for k in of_a), (sizes_b[k] for k in of_b), strict=True):
        if x != y and None not in (x, y):  # einsum would broadcast a 1
            raise size_error(ShapeError, "shape-mismatch for sum")
    labels = iter(_LOWER + _LOWER.upper())
    left = [next(labels) for _ in range(ra)]
    right = [next(labels) for _ in range(rb)]
    for x, y in zip(of_a, of_b, strict=True):
        right[y] = left[x]
    out = [s for s in left if s not in right] + [s for s in right if s not in left]
    return _einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", arrays)


_LOWER = "abcdefghijklmnopqrstuvwxyz"
_LETTERS = _LOWER.upper() + _LOWER


def _with_text(operands: tuple) -> tuple:
    """The operands of an einsum with lists of numbers of axes, with a subscript string for these.

    Raises ValueError for numbers that NumPy does not take, and TypeError for what are none.
    """

    def text(numbers: Any) -> str:
        letters = ""
        for number in numbers:
            if number is Ellipsis:
                letters += "..."
                continue
            index = operator.index(number)
            if not 0 <= index < len(_LETTERS):
                raise ValueError("subscript is not within the valid range [0, 52)")
            letters += _LETTERS[index]
        return letters

    pairs = len(operands) // 2
    lists = ",".join(text(numbers) for numbers in operands[1 : 2 * pairs : 2])
    result = f"->{text(operands[-1])}" if len(operands) % 2 else ""
    return (lists + result, *operands[0 : 2 * pairs : 2])


@numpy_function("einsum", raw=True)
def einsum(
    *operands: Any, optimize: Any = False, dtype: Any = None, out: Any = None, order: Any = "K", casting: Any = "safe"
) -> Any:
    """`np.einsum` with a subscript string, or with a list of the numbers of each array's axes."""
    if out is not None:
        raise trace_error("np.einsum(…, out=…) is not supported while tracing")
    if order not in ("C", "A", "K"):
        raise refuse_parameter("np.einsum", "order")
    subscripts, *arrays = operands if isinstance(operands[0], str) else _with_text(operands)
    arrays = [as_array(a) for a in arrays]
    if dtype is not None or casting not in ("safe", "same_kind", "unsafe"):
        dtype = np.result_type(*map(dtype_like, arrays)) if dtype is None else dtype
        for a in arrays:
            check_cast(a, dtype, casting)
        arrays = [op("cast", a, dtype=dtype_of(dtype)) for a in arrays]
    result = _einsum(subscripts, arrays)
    keeps = False  # whether the result has every axis of a single operand
    if len(arrays) == 1:
        inputs, output = parse_subscripts(subscripts, [arrays[0].ndim])
        keeps = set(inputs[0]) == set(output)
    if not keeps and dtype_of(dtype_like(result)) is BF16:
        raise DTypeError(
            "invalid data type for einsum",
            loc=user_loc(),
            hint="NumPy multiplies bfloat16 in np.matmul, np.tensordot and ufuncs only",
        )
    if keeps and result.ndim:
        note_copy(result, arrays[0], lambda array: np.einsum(subscripts, array))
    note_order(result, lambda *samples: np.einsum(subscripts, *samples), *arrays)
    return result


def _einsum(subscripts: str, arrays: Sequence[Any]) -> Any:
    try:
        return decompose_einsum(op, subscripts, [as_array(a) for a in arrays])
    except ProfuseError as error:
        if error.loc is not None:
            raise
        raise size_error(type(error), error.what) from None


@numpy_function("linalg.matmul")
def _matmul(x1: Any, x2: Any) -> Any:
    return np.matmul(x1, x2)


@numpy_function("linalg.tensordot")
def _array_api_tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    return tensordot(x1, x2, axes)


@numpy_function("linalg.outer")
def _outer_of_vectors(x1: Any, x2: Any) -> Any:
    if ndim(x1) != 1 or ndim(x2) != 1:
        raise ShapeError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={ndim(x1)} and x2.ndim={ndim(x2)}.",
            loc=user_loc(),
        )
    return outer(x1, x2)


@numpy_function("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """`np.linalg.norm`: of a vector over one axis, of a matrix over two."""
    array = as_array(x)
    if axis is None and (ord is None or (ord == 2 and array.ndim == 1)):
        return _vector_norm(array, 2, None, keepdims)
    axes = tuple(range(array.ndim)) if axis is None else _norm_axes(axis)
    if len(axes) == 1:
        return _vector_norm(array, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(array, ord, axes, keepdims)


@numpy_function("linalg.vector_norm")
def vector_norm(x: Any, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """`np.linalg.vector_norm`: of all elements along any number of axes."""
    return _vector_norm(as_array(x), ord, None if axis is None else _norm_axes(axis), keepdims)


@numpy_function("linalg.matrix_norm")
def matrix_norm(x: Any, keepdims: Any = False, ord: Any = "fro") -> Any:
    """`np.linalg.matrix_norm`: of the last two axes."""
    return _matrix_norm(as_array(x), ord, (-2, -1), keepdims)


def _norm_axes(axis: Any) -> tuple[int, ...]:
    return tuple(map(axis_number, axis)) if isinstance(axis, tuple) else (int(axis),)


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...] | None, keepdims: Any) -> Any:
    if ord is not None and not isinstance(ord, (int, float)):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    x = _inexact(x)
    if ord in (None, 2):
        return _root(sum_(_squared(x), axes, None, keepdims))
    size = op("abs", x)
    if ord == np.inf:
        return max_(size, axes, keepdims, 0)
    if ord == -np.inf:
        return min_(size, axes, keepdims)
    if ord == 0:
        return sum_(op("ne", x, 0), axes, size.dtype, keepdims)
    if ord == 1:
        return sum_(size, axes, None, keepdims)
    norm = op("pow", sum_(op("pow", size, ord), axes, None, keepdims), 1.0 / ord)
    return op("flat_at_zero", norm)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    x = _inexact(x)
    rows, columns = (axis_of(a, x.ndim) for a in axes)
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    if ord in (None, "fro", "f"):
        return _root(sum_(_squared(x), (rows, columns), None, keepdims))
    if ord in (2, -2, "nuc"):
        from .host import call

        return call("numpy.linalg.norm", (x, ord, (rows, columns), keepdims), {})
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    along, then = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = sum_(op("abs", x), along, None, keepdims)
    axis = then if keepdims or then < along else then - 1
    return max_(sums, axis, keepdims, 0) if ord > 0 else min_(sums, axis, keepdims)


def _root(squares: Any) -> Any:
    """A norm of its sum of squares; its gradient is 0 where it is 0."""
    return op("flat_at_zero", op("sqrt", squares))


def _inexact(x: Any) -> Any:
    # NumPy takes bfloat16, of kind "V", for no float.
    return x if x.dtype.kind in "fc" else op("cast", x, dtype=dtype_of(np.float64))


def _squared(x: Any) -> Any:
    if x.dtype.kind == "c":
        return op("add", op("square", op("real", x)), op("square", op("imag", x)))
    return op("square", x)


@array_method("diagonal")
@numpy_function("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """`np.diagonal`: the two axes become one, which is the last."""
    matrix = x = as_array(a)
    if x.ndim < 2:
        raise ShapeError("diag requires an array of at least two dimensions", loc=user_loc())
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
    out.rec.layouts.unordered[out.value] = None  # NumPy's has gaps between elements
    note_copy(out, matrix, lambda array: np.diagonal(array, k, one, two))
    return out


@numpy_function("trace")
def trace_(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """`np.trace`."""
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype)


@array_method("trace")
def _trace(self: Traced, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """`ndarray.trace`."""
    result = trace_(self, offset, axis1, axis2, dtype)
    return result if out is None else write_out("ndarray.trace", out, result)


@numpy_function("linalg.diagonal")
def diagonals(x: Any, offset: int = 0) -> Any:
    """`np.linalg.diagonal`: of the last two axes."""
    return diagonal(x, offset, -2, -1)


@numpy_function("linalg.trace")
def traces(x: Any, offset: int = 0, dtype: Any = None) -> Any:
    """`np.linalg.trace`: of the last two axes."""
    return trace_(x, offset, -2, -1, dtype)


@numpy_function("diag")
def diag(v: Any, k: int = 0) -> Any:
    """`np.diag`: the diagonal of a matrix, or a matrix with this diagonal."""
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.", loc=user_loc())
    shift = operator.index(k)
    mask = eye(x.shape[0], dtype=bool)
    out = op("select", mask, x, zero_of(x))
    if not shift:
        return out
    widths = (0, shift, shift, 0) if shift > 0 else (-shift, 0, 0, -shift)
    return op("pad", out, zero_of(x), widths=widths)


@numpy_function("cross")
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """`np.cross` of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    arrays = as_array(a), as_array(b)
    if not all(v.ndim for v in arrays):
        raise ShapeError("At least one array has zero dimension", loc=user_loc())
    (x0, x1, x2), (y0, y1, y2) = map(_components, arrays, (axisa, axisb))
    cells = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    return stack(cells, operator.index(axisc))


def _components(x: Any, axis: Any) -> tuple[Any, Any, Any]:
    """The three components of vectors along ``axis``."""
    place = axis_of(axis, x.ndim)
    size = sizes_now(x)[place]
    if size == 2:
        raise trace_error(
            "np.cross of vectors of two components is not supported while tracing",
            "write x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]",
        )
    if size not in (3, None):
        raise size_error(ShapeError, "incompatible dimensions for cross product (dimension must be 2 or 3)")
    v = op("moveaxis", x, source=(place,), destination=(-1,))
    # Unlike v[..., 2], this raises in later calls whose vectors have a fourth component.
    return v[..., 0], v[..., 1], op("squeeze", v[..., 2:], axes=(-1,))


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
