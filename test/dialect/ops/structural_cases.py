"""Cases of the ops that make, move, cut, join, index and query tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Attrs, array, laid_out, python_number, register
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import DTYPES, F32, I8, I64, U64, DType, dtype_of
from profuse.dialect.ops.indexing.slicing import ABSENT
from reduction_cases import Args, shapes

FEW = tuple(d for d in DTYPES if d.name in ("bool", "i8", "u64", "bf16", "f32", "c128"))


# --- axes and sizes ---------------------------------------------------------------------------


def sizes(values: tuple[int, ...], dynamic: tuple[int, ...]) -> tuple[int, ...]:
    """``values`` with each DYNAMIC replaced by the next of ``dynamic``."""
    rest = iter(dynamic)
    return tuple(next(rest) if v == DYNAMIC else v for v in values)


@register("reshape", reference=lambda a, x, *d: np.reshape(x, sizes(a["shape"], d)), dtypes=FEW)
def reshape(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {"shape": (-1,)}, (x,)
        yield {"shape": (x.size,)}, (x,)
        yield {"shape": (DYNAMIC, 1)}, (x, x.size)
        yield {"shape": (*x.shape[::-1], 1)}, (x,)
        yield {"shape": (4, -1)}, (x,)
        yield {"shape": (-1, DYNAMIC)}, (x, 3)
        yield {"shape": (DYNAMIC, -1)}, (x, -1)


@register("transpose", reference=lambda a, x: np.transpose(x, a.get("perm")), dtypes=FEW)
def transpose(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)
        yield {"perm": tuple(np.roll(range(x.ndim), 1).tolist())}, (x,)
    yield {"perm": (-1, 0, 1)}, (array(dtype, (2, 3, 4), rng),)


@register("swapaxes", reference=lambda a, x: np.swapaxes(x, a["axis1"], a["axis2"]), dtypes=FEW)
def swapaxes(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {"axis1": 0, "axis2": -1}, (x,)


@register("moveaxis", reference=lambda a, x: np.moveaxis(x, a["source"], a["destination"]), dtypes=FEW)
def moveaxis(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (2, 3, 4, 5), rng)
    for source, destination in (((0,), (-1,)), ((3, 1), (0, 1)), ((0, 1), (2, 0)), ((), ())):
        yield {"source": source, "destination": destination}, (x,)
    for small in shapes(dtype, rng):
        yield {"source": (0,), "destination": (-1,)}, (small,)


@register("squeeze", reference=lambda a, x: np.squeeze(x, a.get("axes")), dtypes=FEW)
def squeeze(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in [*shapes(dtype, rng), array(dtype, (1, 3, 1, 2), rng)]:
        yield {}, (x,)
        yield {"axes": (0,)}, (x,)
        yield {"axes": (-2, 0)}, (x,)


@register("expand_dims", reference=lambda a, x: np.expand_dims(x, a["axes"]), dtypes=FEW)
def expand_dims(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {"axes": (0,)}, (x,)
        yield {"axes": (-1, 0)}, (x,)
        yield {"axes": ()}, (x,)


@register("broadcast_to", reference=lambda a, x, *d: np.broadcast_to(x, sizes(a["shape"], d)), dtypes=FEW)
def broadcast_to(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {"shape": x.shape}, (x,)
        yield {"shape": (2, *x.shape)}, (x,)
        yield {"shape": (DYNAMIC, *x.shape)}, (x, 0)
        yield {"shape": (3, 4)}, (x,)


@register("flip", reference=lambda a, x: np.flip(x, a.get("axes")), dtypes=FEW)
def flip(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)
        yield {"axes": (-1,)}, (x,)


# --- parts ------------------------------------------------------------------------------------


def slice_reference(attrs: Attrs, x: np.ndarray, *dynamic: int) -> np.ndarray:
    count = len(attrs["starts"])
    steps = attrs.get("steps") or (1,) * count
    values = sizes((*attrs["starts"], *attrs["stops"], *steps), dynamic)
    key: list[Any] = [slice(None)] * x.ndim
    for k, axis in enumerate(attrs.get("axes") or range(count)):
        bounds = (None if v == ABSENT else v for v in (values[k], values[count + k]))
        key[axis] = slice(*bounds, values[2 * count + k])
    return x[tuple(key)]


BOUNDS = (ABSENT, 0, 1, 3, 9, -1, -2, -9)


@register("slice", reference=slice_reference, dtypes=FEW)
def slices(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (5, 4), rng), array(dtype, (1, 3), rng), array(dtype, (0, 2), rng)):
        for start in BOUNDS:
            for stop in BOUNDS:
                for step in (1, 2, -1, -3):
                    yield {"starts": (start,), "stops": (stop,), "steps": (step,)}, (x,)
    x = laid_out("strided", dtype, (6, 5, 4), rng)
    yield {"starts": (), "stops": ()}, (x,)
    yield {"starts": (1, -3), "stops": (ABSENT, 5), "axes": (-1, 0)}, (x,)
    yield {"starts": (DYNAMIC, 1), "stops": (DYNAMIC, DYNAMIC)}, (x, -4, 6, -1)
    yield {"starts": (DYNAMIC,), "stops": (ABSENT,), "steps": (DYNAMIC,)}, (x, -1, -2)


@register(
    "windows",
    reference=lambda a, x, *d: np.lib.stride_tricks.sliding_window_view(x, sizes(a["shape"], d), a["axes"]),
    dtypes=FEW,
)
def windows(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (5, 4), rng), array(dtype, (1, 3), rng), array(dtype, (0, 2), rng)):
        yield {"shape": (1,), "axes": (0,)}, (x,)
        yield {"shape": (2, 3), "axes": (-1, 0)}, (x,)
        yield {"shape": (0,), "axes": (1,)}, (x,)
        yield {"shape": (DYNAMIC,), "axes": (1,)}, (x, 2)
    x = laid_out("strided", dtype, (6, 5, 4), rng)
    yield {"shape": (2, 3), "axes": (0, 2)}, (x,)
    yield {"shape": (2, DYNAMIC, 4), "axes": (0, 1, 2)}, (x, 5)
    yield {"shape": (), "axes": ()}, (x,)


def pick_reference(attrs: Attrs, x: np.ndarray, *dynamic: int) -> Any:
    (index,) = sizes((attrs["index"],), dynamic)
    return x[(slice(None),) * (attrs["axis"] % max(x.ndim, 1)) + (index,)]


@register("pick", reference=pick_reference, dtypes=FEW)
def picks(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        for axis in (0, -1)[: x.ndim]:
            if x.shape[axis]:
                yield {"axis": axis, "index": 0}, (x,)
                yield {"axis": axis, "index": -1}, (x,)
                yield {"axis": axis, "index": DYNAMIC}, (x, -x.shape[axis])


def split_reference(attrs: Attrs, x: np.ndarray) -> tuple:
    where = attrs["sections"] if attrs.get("indices") is None else list(attrs["indices"])
    function = np.split if attrs.get("even", True) else np.array_split
    return tuple(function(x, where, attrs.get("axis", 0)))


@register("split", reference=split_reference, dtypes=FEW)
def splits(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (6, 4), rng), array(dtype, (0, 4), rng), array(dtype, (7,), rng)):
        yield {"sections": 1}, (x,)
        yield {"sections": 3}, (x,)
        yield {"sections": 2, "axis": -1}, (x,)
        yield {"sections": 4, "even": False}, (x,)
        for indices in ((), (2,), (1, 4), (4, 1), (-2, 20), (3, 3)):
            yield {"indices": indices}, (x,)


def chunk_reference(attrs: Attrs, x: np.ndarray) -> tuple:
    axis, count = attrs.get("axis", 0), attrs["chunks"]
    piece = -(-x.shape[axis] // count)
    return tuple(np.split(x, [piece * k for k in range(1, count)], axis))


@register("chunk", reference=chunk_reference, dtypes=FEW)
def chunks(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in (array(dtype, (7, 4), rng), array(dtype, (6, 2), rng)):
        yield {"chunks": 3}, (x,)
        yield {"chunks": 2, "axis": 1}, (x,)
        yield {"chunks": 1, "axis": -1}, (x,)


# --- joins ------------------------------------------------------------------------------------


@register("concatenate", reference=lambda a, *xs: np.concatenate(xs, a.get("axis", 0)))
def concatenate(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)
        yield {"axis": -1}, (x, x, x)
    a, b = array(dtype, (2, 3), rng), laid_out("reversed", dtype, (2, 5), rng)
    yield {"axis": 1}, (a, b, array(dtype, (2, 0), rng))
    yield {}, (a, array(dtype, (4, 3), rng))
    for other in (I8, U64, F32):
        yield {}, (a, array(other, (1, 3), rng))
    yield {}, (a, b)


@register("stack", reference=lambda a, *xs: np.stack(xs, a.get("axis", 0)), dtypes=FEW)
def stack(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)
        yield {"axis": -1}, (x, array(dtype, x.shape, rng))
    yield {"axis": 1}, (array(dtype, (2, 3), rng), array(I64, (2, 3), rng))


def pad_reference(attrs: Attrs, x: np.ndarray, value: Any) -> np.ndarray:
    widths = attrs["widths"]
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    return np.pad(x, pairs * (x.ndim if len(pairs) == 1 else 1), constant_values=value)


@register("pad", reference=pad_reference, dtypes=FEW)
def pads(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        if x.ndim:
            yield {"widths": (1, 2)}, (x, python_number(dtype))
            yield {"widths": (0, 0)}, (x, python_number(dtype))
    x = array(dtype, (2, 3), rng)
    yield {"widths": (1, 0, 0, 4)}, (x, np.array(python_number(dtype), dtype.numpy))


@register("tile", reference=lambda a, x: np.tile(x, a["reps"]), dtypes=FEW)
def tiles(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        for reps in ((), (2,), (2, 1), (3, 2, 1), (0, 2)):
            yield {"reps": reps}, (x,)


@register("repeat", reference=lambda a, x: np.repeat(x, a["repeats"], a.get("axis")), dtypes=FEW)
def repeats(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {"repeats": 3}, (x,)
        yield {"repeats": 0}, (x,)
        if x.ndim:
            yield {"repeats": 2, "axis": -1}, (x,)


# --- indices ----------------------------------------------------------------------------------

INDEX_DTYPES = tuple(d for d in DTYPES if d.name in ("i8", "i32", "i64", "u8", "u32"))


def indices(shape: tuple[int, ...], size: int, rng: np.random.Generator, dtype: DType = I64):
    """Indices into an axis of ``size``, negative ones too where the dtype has them."""
    low = -size if dtype.kind == "i" else 0
    return rng.integers(low, size, shape).astype(dtype.numpy)


@register("take", reference=lambda a, x, i: np.take(x, i, a.get("axis")), dtypes=FEW)
def takes(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = laid_out("strided", dtype, (4, 5, 3), rng)
    for axis in (None, 0, 1, -1):
        size = x.size if axis is None else x.shape[axis]
        attrs = {} if axis is None else {"axis": axis}
        for shape in ((), (0,), (6,), (2, 3)):
            yield attrs, (x, indices(shape, size, rng))
        yield attrs, (x, -1)
        for narrow in INDEX_DTYPES:
            yield attrs, (x, indices((2,), size, rng, narrow))
    yield {}, (array(dtype, (), rng), np.zeros(3, int))


def gather_reference(attrs: Attrs, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, index, attrs.get("axis"))


@register("gather", reference=gather_reference, dtypes=FEW)
def gathers(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = laid_out("transposed", dtype, (4, 5), rng)
    yield {"axis": 0}, (x, indices((7, 5), 4, rng))
    yield {"axis": 0}, (x, indices((2, 1), 4, rng))
    yield {"axis": -1}, (x, indices((4, 1), 5, rng))
    yield {"axis": -1}, (array(dtype, (1, 5), rng), indices((3, 2), 5, rng))
    yield {}, (x, indices((6,), 20, rng))
    for narrow in INDEX_DTYPES:
        yield {"axis": 1}, (x, indices((4, 2), 5, rng, narrow))


def index_reference(attrs: Attrs, x: np.ndarray, *given: Any) -> np.ndarray:
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(attrs["axes"], given, strict=True):
        key[axis] = np.asarray(index)
    return x[tuple(key)]


@register("index", reference=index_reference, dtypes=FEW)
def index(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    x = array(dtype, (4, 5, 3, 2), rng)
    for axes in ((0,), (2,), (0, 1), (1, 2), (0, 2), (1, 3), (-1, 0), (0, 1, 2, 3)):
        for shape in ((), (6,), (2, 3)):
            yield {"axes": axes}, (x, *(indices(shape, x.shape[a], rng) for a in axes))
    rows = np.arange(4)
    yield {"axes": (0, 1)}, (x, rows, indices((4,), 5, rng))
    yield {"axes": (0, 1)}, (x, rows[:, None], indices((3,), 5, rng))
    yield {"axes": (1, 2)}, (x, indices((3,), 5, rng), 2)


# --- creation and queries ---------------------------------------------------------------------


@register("constant", reference=lambda a: a["value"])
def constants(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"value": python_number(dtype)}, ()
    for x in shapes(dtype, rng):
        yield {"value": x}, ()


def full_reference(attrs: Attrs, value: Any, *dynamic: int) -> np.ndarray:
    dtype = attrs["dtype"].numpy if attrs.get("dtype") else None
    return np.full(sizes(attrs["shape"], dynamic), value, dtype)


@register("full", reference=full_reference)
def full(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape in ((), (0,), (3,), (2, 3)):
        yield {"shape": shape}, (python_number(dtype),)
        yield {"shape": shape, "dtype": dtype}, (1,)
        yield {"shape": shape}, (array(dtype, (), rng),)
    yield {"shape": (DYNAMIC, 3)}, (array(dtype, (3,), rng), 2)


def iota_reference(attrs: Attrs, *dynamic: int) -> np.ndarray:
    shape = sizes(attrs["shape"], dynamic)
    return np.indices(shape)[attrs.get("axis", 0)].astype(attrs["dtype"].numpy)


@register("iota", reference=iota_reference)
def iota(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape, axis in (((0,), 0), ((1,), 0), ((9,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 4), 1)):
        yield {"shape": shape, "dtype": dtype, "axis": axis}, ()
    yield {"shape": (DYNAMIC, 2), "dtype": dtype, "axis": 0}, (5,)


@register("size", reference=lambda a, x: x.size, dtypes=FEW)
@register("rank", reference=lambda a, x: x.ndim, dtypes=FEW)
@register("dtype_code", reference=lambda a, x: DTYPES.index(dtype_of(x.dtype)))
def queries(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        yield {}, (x,)


@register("dtype_constant", reference=lambda a: DTYPES.index(a["dtype"]))
def dtypes(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {"dtype": dtype}, ()


@register("dim", reference=lambda a, x: x.shape[a["axis"]], dtypes=FEW)
def dims(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        for axis in range(-x.ndim, x.ndim):
            yield {"axis": axis}, (x,)


@register("count", reference=lambda a, x: x, dtypes=(I64,), symbolic=False)
def counts(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for number in (0, 1, 7, 2**31 - 1):
        yield {"symbol": "n0"}, (number,)
    yield {"symbol": "n0", "least": 3}, (3,)
    yield {"symbol": "n0", "equals": "7"}, (7,)
    yield {"symbol": "n0", "equals": "s0"}, (7,)


@register("item", reference=lambda a, x: x.item())
def items(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape in ((), (1,), (1, 1), (2,), (0,)):
        yield {}, (array(dtype, shape, rng),)


@register("truth", reference=lambda a, x: bool(x))
def truths(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for shape in ((), (1,), (1, 1), (2,), (0,)):
        yield {}, (array(dtype, shape, rng),)
        yield {}, (np.zeros(shape, dtype.numpy),)
    yield {}, (python_number(dtype),)


def to_tensor_reference(attrs: Attrs, x: Any) -> np.ndarray:
    return np.asarray(x, attrs["dtype"].numpy if attrs.get("dtype") else None)


@register("to_tensor", reference=to_tensor_reference)
def to_tensor(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    yield {}, (python_number(dtype),)
    yield {"dtype": dtype}, (python_number(dtype),)
    yield {"dtype": dtype}, (operator.index(1),)
