"""Cases of what in-place ops become: copies, values as they are stored, replaced elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Attrs, array, laid_out, register
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, DType
from profuse.dialect.ops.indexing.slicing import ABSENT
from reduction_cases import Args, shapes
from structural_cases import FEW, slice_reference


@register("copy", reference=lambda a, x: np.copy(x), dtypes=FEW)
def copies(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)


def required(attrs: Attrs, x: Any, condition: Any) -> Any:
    if not np.all(condition):
        raise ValueError(attrs["message"])
    return np.copy(x)


@register("require", reference=required, dtypes=FEW)
def requires(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape in ((), (3,), (2, 4)):
        x = array(dtype, shape, rng)
        for condition in (True, np.True_, np.ones(3, bool), np.array([True, False]), np.False_):
            yield {"message": "not so"}, (x, condition)


def stored(attrs: Attrs, value: Any, like: np.ndarray) -> np.ndarray:
    out = np.zeros(like.shape, like.dtype)
    if attrs.get("assign"):
        out[...] = value
    else:
        np.positive(value, out=out) if value.dtype != bool else np.copyto(out, value)
    return out


@register("conform", reference=stored, dtypes=FEW)
def conform(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    like = array(dtype, (3, 4), rng)
    for value in (like, laid_out("transposed", dtype, (3, 4), rng)):
        yield {}, (value, like)
    for shape in ((4,), (3, 1), (), (1, 1, 3, 4)):
        yield {"assign": True}, (array(dtype, shape, rng), like)
    yield {"assign": True}, (array(F32, (3, 4), rng), like)


def sliced_reference(attrs: Attrs, x: np.ndarray, value: Any, *dynamic: int) -> np.ndarray:
    out = x.copy()
    slice_reference(attrs, out, *dynamic)[...] = value
    return out


@register("slice_scatter", reference=sliced_reference, dtypes=FEW)
def slice_scatter(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (5, 4), rng), laid_out("reversed", dtype, (6, 3), rng)):
        for start in (ABSENT, 1, -2, 9):
            for stop in (ABSENT, 4, -1):
                for step in (1, 2, -1, -3):
                    attrs = {"starts": (start,), "stops": (stop,), "steps": (step,)}
                    shape = slice_reference(attrs, x).shape
                    yield attrs, (x, array(dtype, shape, rng))
    x = laid_out("strided", dtype, (6, 5, 4), rng)
    for attrs in ({"starts": (1, -3), "stops": (ABSENT, 5), "axes": (-1, 0)}, {"starts": (), "stops": ()}):
        yield attrs, (x, array(dtype, slice_reference(attrs, x).shape, rng))
    attrs = {"starts": (DYNAMIC,), "stops": (ABSENT,), "steps": (DYNAMIC,)}
    shape = slice_reference(attrs, x, -1, -2).shape
    yield attrs, (x, array(dtype, shape, rng), -1, -2)


def picked_reference(attrs: Attrs, x: np.ndarray, value: Any, *dynamic: int) -> np.ndarray:
    out = x.copy()
    index = dynamic[0] if dynamic else attrs["index"]
    np.moveaxis(out, attrs.get("axis", 0), 0)[index] = value
    return out


@register("pick_scatter", reference=picked_reference, dtypes=FEW)
def pick_scatter(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (5, 4), rng), laid_out("transposed", dtype, (3, 4), rng)):
        for axis in (0, 1, -1):
            value = array(dtype, np.delete(x.shape, axis).tolist(), rng)
            for index in (0, 2, -1):
                yield {"axis": axis, "index": index}, (x, value)
    yield {"axis": 0, "index": DYNAMIC}, (x, array(dtype, (4,), rng), 1)
    yield {"axis": 0, "index": 1}, (array(dtype, (3,), rng), array(dtype, (), rng))
