"""Ops that move elements and compute nothing: what they do to values they do to poison marks too.

Arrays have a leading axis of threads, of size 1 where all threads agree; the axes after it are
those of the vector.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from .elementwise import FUNCTIONS
from .faults import SimtError
from .types import DYNAMIC, dtype_of, shape_of

Move = Callable[..., np.ndarray | tuple[np.ndarray, ...]]


def with_rank(condition: np.ndarray, rank: int) -> np.ndarray:
    """A condition per thread, shaped to broadcast against values of this rank."""
    return condition.reshape(condition.shape + (1,) * (rank - condition.ndim))


def rows(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays, each with a row for every thread if one of them has."""
    count = max(a.shape[0] for a in arrays)
    return [np.broadcast_to(a, (count, *a.shape[1:])) for a in arrays]


def _broadcast(op: ir.Operation) -> Move:
    shape = shape_of(op.results[0].type)

    def move(x: np.ndarray) -> np.ndarray:
        inner = (1,) * (len(shape) + 1 - x.ndim) + x.shape[1:]
        return np.broadcast_to(x.reshape(x.shape[0], *inner), (x.shape[0], *shape))

    return move


def _shape_cast(op: ir.Operation) -> Move:
    shape = shape_of(op.results[0].type)
    return lambda x: x.reshape(x.shape[0], *shape)


def _positions(op: ir.Operation) -> list[int | None]:
    return [None if p == DYNAMIC else p for p in op.attributes["static_position"]]


def dynamic_sizes(op: ir.Operation) -> list[int]:
    """How many positions there are along the axis of each position that is an operand."""
    shape = shape_of(op.operands[DATA_OPERANDS[op.name] - 1].type)
    return [n for n, p in zip(shape, _positions(op), strict=False) if p is None]


def _place(static: list[int | None], dynamic: list[np.ndarray], shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """An index into an array of this shape: row by row at the positions.

    Threads that do not run may hold any position.
    """
    given = iter(dynamic)
    places = [
        np.broadcast_to(np.clip(next(given), 0, size - 1) if p is None else p, shape[0])
        for p, size in zip(static, shape[1:], strict=False)
    ]
    return (np.arange(shape[0]), *places)


def _extract(op: ir.Operation) -> Move:
    static = _positions(op)

    def move(x: np.ndarray, *dynamic: np.ndarray) -> np.ndarray:
        if not dynamic:
            return x[(slice(None), *static)]
        x, *positions = rows(x, *dynamic)
        return x[_place(static, positions, x.shape)]

    return move


def _insert(op: ir.Operation) -> Move:
    static = _positions(op)

    def move(x: np.ndarray, into: np.ndarray, *dynamic: np.ndarray) -> np.ndarray:
        x, into, *positions = rows(x, into, *dynamic)
        result = into.copy()
        result[_place(static, positions, into.shape)] = x
        return result

    return move


def _integers(op: ir.Operation, name: str) -> list[int]:
    return [ir.IntegerAttr(a).value for a in op.attributes[name]]


def _slices(op: ir.Operation, sizes: list[int]) -> tuple[slice, ...]:
    offsets = _integers(op, "offsets")
    return (slice(None), *(slice(o, o + n) for o, n in zip(offsets, sizes, strict=False)))


def _extract_slice(op: ir.Operation) -> Move:
    place = _slices(op, _integers(op, "sizes"))
    return lambda x: x[place]


def _insert_slice(op: ir.Operation) -> Move:
    source, target = (v.type for v in op.operands)
    missing = len(shape_of(target)) - len(shape_of(source))
    place = _slices(op, [1] * missing + list(shape_of(source)))

    def move(x: np.ndarray, into: np.ndarray) -> np.ndarray:
        x, into = rows(x, into)
        result = into.copy()
        result[place] = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
        return result

    return move


def _shuffle(op: ir.Operation) -> Move:
    mask = np.array(list(op.attributes["mask"]))

    def move(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.concatenate(rows(a, b), axis=1)[:, mask]

    return move


def _from_elements(op: ir.Operation) -> Move:
    shape = shape_of(op.results[0].type)
    return lambda *xs: np.stack(rows(*xs), axis=1).reshape(-1, *shape)


def _to_elements(_op: ir.Operation) -> Move:
    return lambda x: tuple(np.moveaxis(x.reshape(x.shape[0], -1), 1, 0))


def _transpose(op: ir.Operation) -> Move:
    axes = (0, *(p + 1 for p in op.attributes["permutation"]))
    return lambda x: x.transpose(axes)


MOVES: dict[str, Callable[[ir.Operation], Move]] = {
    "vector.broadcast": _broadcast,
    "vector.shape_cast": _shape_cast,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.extract_strided_slice": _extract_slice,
    "vector.insert_strided_slice": _insert_slice,
    "vector.shuffle": _shuffle,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.transpose": _transpose,
}
"""How each of these ops moves its operands."""

DATA_OPERANDS = {"vector.extract": 1, "vector.insert": 2}
"""Operands that are moved; those after them are positions.  Other ops move all of theirs."""


def bitcast(op: ir.Operation) -> Callable[[np.ndarray], np.ndarray]:
    """The function of a ``vector.bitcast``, which may change the number of elements."""
    dtype = dtype_of(op.results[0].type)
    return lambda x: np.ascontiguousarray(x).view(dtype)


_COMBINERS = {
    "add": ("arith.addi", "arith.addf"),
    "mul": ("arith.muli", "arith.mulf"),
    "minui": ("arith.minui",),
    "minsi": ("arith.minsi",),
    "minnumf": ("arith.minnumf",),
    "minimumf": ("arith.minimumf",),
    "maxui": ("arith.maxui",),
    "maxsi": ("arith.maxsi",),
    "maxnumf": ("arith.maxnumf",),
    "maximumf": ("arith.maximumf",),
    "and": ("arith.andi",),
    "or": ("arith.ori",),
    "xor": ("arith.xori",),
}


def combiner(kind: str, floats: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The function that a reduction of this kind folds with; raises SimtError."""
    try:
        names = _COMBINERS[kind]
    except KeyError:
        raise SimtError(f"reductions by {kind} are not emulated") from None
    return FUNCTIONS[names[-1 if floats else 0]]


def reduction(op: ir.Operation) -> Callable[..., np.ndarray]:
    """The function of a ``vector.reduction``: from the first element to the last, in order."""
    kind = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    combine = combiner(kind, str(op.results[0].type)[0] in "fb")

    def apply(x: np.ndarray, *start: np.ndarray) -> np.ndarray:
        elements = list(np.moveaxis(x, 1, 0))
        total = start[0] if start else elements.pop(0)
        for element in elements:
            total = combine(total, element)
        return total

    return apply
