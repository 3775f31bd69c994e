"""Cases of ops that only gradients emit: sums to a shape, additions at indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Attrs, array, laid_out, register
from profuse.dialect.ir.dtypes import BF16, C64, DTYPES, F16, F32, F64, I8, I64, U64, DType
from reduction_cases import Args, positive

SUMMED = (F16, BF16, F32, F64, I64, U64, C64)


def sum_to_reference(attrs: Attrs, x: Any, like: Any) -> Any:
    x, shape = np.asarray(x), np.shape(like)
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(k + extra for k, n in enumerate(shape) if n != x.shape[k + extra]))
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return np.sum(x, axes, dtype=wide, keepdims=True).reshape(shape).astype(x.dtype)


@register("sum_to", reference=sum_to_reference, dtypes=SUMMED, tolerance=64)
def sums_to(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape, targets in {
        (): [()],
        (4,): [(), (4,), (1,)],
        (3, 4): [(3, 4), (4,), (1, 4), (3, 1), (1, 1), ()],
        (2, 3, 4): [(3, 1), (2, 1, 4), (4,), (1, 3, 1)],
        (0, 3): [(1, 3), (3,), (0, 1), (0, 3)],
        (1, 5): [(1, 5), (1, 1), (5,)],
    }.items():
        for target in targets:
            yield {}, (positive(dtype, shape, rng), array(I8, target, rng))
    yield {}, (laid_out("transposed", dtype, (3, 4), rng), array(dtype, (4,), rng))


def added(attrs: Attrs, x: np.ndarray, value: Any, *indices: Any) -> np.ndarray:
    out = x.copy()
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(attrs["axes"], indices, strict=True):
        key[axis] = np.asarray(index)
    np.add.at(out, tuple(key), value)
    return out


@register("index_add", reference=added, dtypes=DTYPES)
def index_adds(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    rows, columns = np.array([2, 0, 2, -1]), np.array([[1], [3]])
    for x in (array(dtype, (3, 4), rng), laid_out("reversed", dtype, (3, 4), rng)):
        yield {"axes": (0,)}, (x, array(dtype, (4, 4), rng), rows)
        yield {"axes": (1,)}, (x, array(dtype, (3, 4), rng), rows)
        yield {"axes": (0, 1)}, (x, array(dtype, (2, 4), rng), rows, columns)
        yield {"axes": (-1,)}, (x, array(dtype, (3,), rng), 1)
    wide = array(dtype, (2, 3, 4), rng)
    yield {"axes": (0, 2)}, (wide, array(dtype, (4, 3), rng), rows % 2, rows)
    yield {"axes": (0,)}, (array(dtype, (5,), rng), array(dtype, (0,), rng), rows[:0])
    yield {"axes": (0,)}, (array(dtype, (5, 0), rng), array(dtype, (4, 0), rng), rows)
    # One element, one index, one place; places that are named often, in an order that matters.
    yield {"axes": (0,)}, (array(dtype, (1,), rng), array(dtype, (1,), rng), rows[1:2])
    yield {"axes": (1,)}, (array(dtype, (3, 1), rng), array(dtype, (3, 4), rng), rows * 0)
    often = np.array([3, -1, 3, 0, -2, 3, 4] * 7)
    yield {"axes": (0,)}, (array(dtype, (5,), rng), array(dtype, (49,), rng), often)
    strided = laid_out("transposed", dtype, (49, 3), rng)
    yield {"axes": (0,)}, (array(dtype, (5, 3), rng), strided, often[::-1])
    # Indices of other dtypes, and of several axes.
    for kind in (np.int8, np.uint16, np.int32, np.uint64):
        places = (often % 5).reshape(7, 7).astype(kind)
        yield {"axes": (1,)}, (array(dtype, (2, 5), rng), array(dtype, (2, 7, 7), rng), places)


def gathered(attrs: Attrs, x: np.ndarray, value: Any, index: np.ndarray) -> np.ndarray:
    out = x.copy()
    axis = attrs["axis"] % x.ndim
    for at in np.ndindex(value.shape):
        whole = np.broadcast_to(index, value.shape)
        place = (*at[:axis], int(whole[at]), *at[axis + 1 :])
        out[place] += value[at]
    return out


@register("gather_add", reference=gathered, dtypes=SUMMED)
def gather_adds(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (3, 4), rng)
    yield {"axis": 1}, (x, array(dtype, (3, 2), rng), np.array([[1, 1], [0, 3], [2, -1]]))
    yield {"axis": 1}, (x, array(dtype, (3, 1), rng), np.array([[1], [-1], [3]]))
    yield {"axis": -2}, (x, array(dtype, (2, 4), rng), np.array([[0, 2, 1, 0], [0, -1, 1, 2]]))
    yield {"axis": 0}, (array(dtype, (5,), rng), array(dtype, (3,), rng), np.array([4, 4, 0]))


def updated(ufunc: np.ufunc | None) -> Any:
    """What updates one element after the other leave, in the order of the indices."""

    def reference(attrs: Attrs, x: np.ndarray, value: Any, *indices: Any) -> np.ndarray:
        out = x.copy()
        key: list[Any] = [slice(None)] * x.ndim
        for axis, index in zip(attrs["axes"], indices, strict=True):
            key[axis] = np.asarray(index).astype(np.int64)
        if ufunc is None:
            out[tuple(key)] = value
        else:
            ufunc.at(out, tuple(key), value)
        return out

    return reference


REAL = tuple(d for d in DTYPES if d.kind != "c")
for _name, _ufunc, _dtypes in (
    ("index_put", None, DTYPES),
    ("index_multiply", np.multiply, DTYPES),
    ("index_maximum", np.maximum, REAL),
    ("index_minimum", np.minimum, REAL),
):
    register(_name, reference=updated(_ufunc), dtypes=_dtypes)(index_adds)
