"""Updates at places that arrays name: a generic over all pairs of a place and an element."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlir import ir

from .generic import TensorValue, dims, loop_index
from .maps import broadcast_map
from .scalar import Scalar

if TYPE_CHECKING:
    from .tensor_builder import Builder

PLACED = "profuse.placed"


def update_at(
    b: Builder,
    combine: Callable[[Scalar, Scalar], Scalar],
    x: TensorValue,
    value: TensorValue,
    places: Mapping[int, TensorValue],
    start: int,
) -> TensorValue:
    """``x`` with elements replaced by ``combine(element, new)``, one after the other.

    Emits one generic that reduces over the axes of the places: each element of the result takes in
    those of ``value`` whose places name it. Its attribute `PLACED` lists the loops over the axes in
    ``places``, whose inputs come first, in this order: an iteration in which such an input differs
    from the index of its loop changes nothing, so that it need not run.

    Args:
        places: axis of ``x`` -> indices in range (i64); these broadcast.
        start: the axis of ``value`` at which those of the broadcast indices begin, one at least.
            The others are the axes of ``x`` that are not in ``places``.
    """
    axes = list(places)
    count = value.rank - (x.rank - len(axes))
    loops = dims(x.rank + count)
    over = loops[x.rank :]
    rest = [loops[k] for k in range(x.rank) if k not in axes]
    reads = [(p, broadcast_map(p.shape, over)) for p in places.values()]
    reads.append((value, [*rest[:start], *over, *rest[start:]]))

    def body(*args: Scalar) -> Scalar:
        *where, element, total = args
        here = [p.eq(loop_index(k)) for p, k in zip(where, axes, strict=True)]
        return functools.reduce(operator.and_, here).select(combine(total, element), total)

    (out,) = b.generic(
        reads,
        [(x.value, x.dtype, loops[: x.rank])],
        [k >= x.rank for k in range(x.rank + count)],
        body,
        {PLACED: ir.DenseI64ArrayAttr.get(axes)},
    )
    return TensorValue(out, x.type)
