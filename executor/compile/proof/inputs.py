"""Generates inputs that fulfil a guard: sizes for symbols, layouts for strides, and values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.dtypes import DType
from ....dialect.ir.program import Program
from ....dialect.ir.size_algebra import floors_of, least_of, parse_dim, root_of
from ....dialect.ir.symbolic import evaluate
from ....dialect.ir.types import ScalarType, TensorType, contiguous_strides
from ....dialect.ops.queries import Count
from .guarded_memory import Framed

# Sizes of symbols. Each set of inputs uses one row; the last symbol gets the row's first number.
# The rows contain odd sizes, all small sizes, sizes next to the widths of vectors and of LLVM's
# interleaving, and sizes above a tile or a block of a sum (`schedule.nests.TILE`,
# `emit.reduction_loops.BLOCK`) for the first or the last axis.
_SIZES = (
    (7, 5, 11, 3),
    (1,),
    (17, 16, 15, 33),
    (2,),
    (131, 3, 2, 2),
    (3,),
    (3, 2, 67, 5),
    (4099, 2, 1, 3),
    (4, 6, 8, 10),
    (2, 4101, 2, 1),
    (2, 1, 3, 1),
    (8, 12, 4, 2),
    (9, 31, 1, 6),
    (1, 4, 2, 5),
    (5,),
    (64, 32, 1, 2),
)
# Larger arrays repeat this many elements. The number is prime, so that no two rows are equal.
_DRAWN = 16411
KINDS = ("plain", "special", "positive", "wide")
"""The kinds of values; `_floats` and `_ints` define them."""


@dataclass(frozen=True)
class InputSetting:
    """The description of one set of inputs.

    Attributes:
        sizes: symbol -> size.
        kind: the kind of values, one of `KINDS`.
        seed: seed of the random values.
        aligned: True = arrays begin at multiples of 64 bytes; False = one element behind.
        backwards: True = strides that the guard leaves open are negative.
    """

    sizes: Mapping[str, int]
    kind: str
    seed: int
    aligned: bool = True
    backwards: bool = False

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.kind} values{f', {sizes}' if sizes else ''}, seed {self.seed}"


def settings(symbols: Sequence[str], seed: int = 0) -> Iterator[InputSetting]:
    """The sets of inputs of one kernel, the most useful ones first."""
    count = len(_SIZES) if symbols else 1
    for number in range(max(count, len(KINDS))):
        row = _SIZES[number % count]
        names = list(symbols)[::-1]
        sizes = {name: max(row[k % len(row)], least_of(name)) for k, name in enumerate(names)}
        _raise_to_floors(sizes)
        kind = KINDS[number % len(KINDS)]
        yield InputSetting(
            {name: sizes[name] for name in symbols},
            kind,
            seed + number,
            aligned=number % 2 == 0,
            backwards=number % 4 in (1, 2),
        )


def _raise_to_floors(sizes: dict[str, int]) -> None:
    """Let sizes exceed others as their guard wants it; see `floors_of`."""
    by_root = {root_of(name): name for name in sizes}
    for _ in sizes:  # what exceeds another one may be exceeded itself
        for name in sizes:
            floors = (sizes[by_root[root]] + more for root, more in floors_of(name).items() if root in by_root)
            sizes[name] = max((sizes[name], *floors))


def shape_of(type_: TensorType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an operand for these sizes of symbols."""
    return tuple(evaluate(dim, sizes) for dim in type_.shape or ())  # type: ignore[arg-type]


def strides_of(type_: TensorType, shape: Sequence[int], *, backwards: bool) -> tuple[int, ...] | None:
    """Element strides that the guard allows; None = C-contiguous.

    Strides that the guard leaves open leave gaps between elements.
    """
    if type_.strides == "contiguous" or not shape:
        return None
    guard_strides = type_.strides if isinstance(type_.strides, tuple) else (None,) * len(shape)
    steps: list[int | None] = list(guard_strides)
    extent = 1 + sum(abs(s) * (n - 1) for s, n in zip(guard_strides, shape, strict=True) if s is not None and n)
    for axis in reversed(range(len(shape))):
        if guard_strides[axis] is None:
            step = extent + 1 if extent > 1 or axis == len(shape) - 1 else 1
            steps[axis] = -step if backwards else step
            extent += step * max(shape[axis] - 1, 0)
    strides = tuple(0 if s is None else s for s in steps)
    return None if strides == contiguous_strides(shape) else strides


def values(function: Program, setting: InputSetting, most: int | None = None) -> list[Any]:
    """Values of the function's inputs: arrays and Python numbers.

    ``most``: integers are within ``[-most, most)``, since any integer input may be an index; None =
    integers of the kind's whole range.
    """
    rng = np.random.default_rng(setting.seed)
    counts = {i.operands[0]: Count.full_attrs(i.attrs) for i in function.body.walk() if i.op is Count}
    out: list[Any] = []
    for value in function.inputs:
        type_ = function.type_of(value)
        if isinstance(type_, ScalarType):
            number = _of_dtype(type_.dtype, (), setting.kind, rng, most).item()
            if value in counts:
                number = _size(counts[value], number, setting.sizes)
            out.append(number)
        else:
            assert isinstance(type_, TensorType) and type_.dtype is not None
            out.append(_of_dtype(type_.dtype, shape_of(type_, setting.sizes), setting.kind, rng, most))
    return out


def _size(attrs: Mapping[str, Any], number: int, sizes: Mapping[str, int]) -> int:
    """A number as one that sizes depend on; else runs would be void."""
    if attrs["equals"]:
        return evaluate(parse_dim(attrs["equals"]), sizes)
    return attrs["least"] + abs(number) % _DRAWN


def smallest_size(function: Program, sizes: Mapping[str, int]) -> int:
    """The smallest nonzero size of any input; smaller integers are valid indices of most axes."""
    types = [function.type_of(v) for v in function.inputs]
    nonzero = [n for t in types if isinstance(t, TensorType) for n in shape_of(t, sizes) if n > 0]
    return min(nonzero, default=1)


def overlaid(args: Sequence[Any], strides: Sequence[Sequence[int] | None]) -> list[Any]:
    """The values that arrays with these strides really have, as elements may share memory."""
    out = []
    for value, steps in zip(args, strides, strict=True):
        if steps is None or not isinstance(value, np.ndarray):
            out.append(value)
            continue
        frame = Framed(value.shape, value.dtype, 0, steps)
        frame.array[...] = value
        out.append(frame.array)
    return out


def _of_dtype(
    dtype: DType, shape: tuple[int, ...], kind: str, rng: np.random.Generator, most: int | None
) -> np.ndarray:
    if math.prod(shape) > _DRAWN:
        return np.resize(_of_dtype(dtype, (_DRAWN,), kind, rng, most), shape)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_int:
        return _ints(dtype, shape, kind, rng, most)
    if dtype.is_complex:
        array = np.empty(shape, dtype.numpy)
        array.real, array.imag = (_floats(dtype.part, shape, kind, rng) for _ in range(2))
        return array
    return _floats(dtype, shape, kind, rng)


def _ints(dtype: DType, shape: tuple[int, ...], kind: str, rng: np.random.Generator, most: int | None) -> np.ndarray:
    info = np.iinfo(dtype.numpy)
    if most is not None:
        low = -most if dtype.kind == "i" and kind != "plain" else 0
        return rng.integers(max(low, info.min), min(most - 1, info.max), shape, np.int64, True).astype(dtype.numpy)
    array = rng.integers(info.min, info.max, shape, dtype.numpy, True)
    edges = np.array([info.min, info.max, 0, 1, 2, info.max - 1], dtype.numpy)
    return np.where(rng.random(shape) < 0.3, rng.choice(edges, shape), array).astype(dtype.numpy)


def _floats(dtype: DType, shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> np.ndarray:
    """Floats of a kind.

    ``plain``: distinct numbers within ±2, so far apart that rounding decides no comparison;
    ``positive``: numbers between 0.25 and 4; ``wide``: numbers of many orders of magnitude;
    ``special``: plain numbers mixed with infinities, NaN, zeros of both signs and subnormals.
    """
    count = math.prod(shape)
    places = rng.permutation(count).reshape(shape)
    spread = (places + 0.25 + 0.5 * rng.random()) / max(count, 1)
    if kind == "positive":
        return (0.25 + 3.75 * spread).astype(dtype.numpy)
    plain = 4 * spread - 2
    if kind == "wide":
        scale = 10.0 ** rng.uniform(-3, 3 if dtype.bits > 16 else 2, shape)
        return (plain * scale).astype(dtype.numpy)
    array = plain.astype(dtype.numpy)
    if kind == "special":
        tiny = np.array(1, f"u{dtype.itemsize}").view(dtype.numpy)
        listed = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]
        chosen = np.concatenate([np.array(listed, dtype.numpy), [tiny, -tiny]])
        array = np.where(rng.random(shape) < 0.3, rng.choice(chosen, shape), array)
    return np.asarray(array, dtype.numpy)
