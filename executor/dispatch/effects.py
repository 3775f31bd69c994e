"""Leaves for functions that write to arrays: what kernels have made is copied there behind them.

Until then nothing has been written: a leaf that gives up leaves the whole call to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..memory.placement import Refused, bytes_of
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE
from .leaf_spec import ArrayValue, Noting, Test, Value
from .number_values import NumberValue
from .refs import position_of

if TYPE_CHECKING:
    from ...dialect.importers.tracing.tracer import Trace


def effects_of(trace: Trace, inputs: Sequence[Value]) -> tuple[Noting, list[Test]]:
    """What writes to the arrays, and the conditions on them, for `Leaf.noting` and `Leaf.final`.

    The arrays have to be writable and contiguous, and to overlap nothing that the graph reads: a
    write to one would be seen there.

    Raises Refused for functions that assign attributes and items.
    """
    if trace.stores or trace.slots:
        raise Refused("the function assigns attributes or items")
    tests, flags = [], C_CONTIGUOUS | ALIGNED | WRITEABLE
    for k in trace.writes:
        written = inputs[k]
        assert isinstance(written, ArrayValue)
        tests.append(Test(("flags", written.ref, flags), flags))
        nbytes = bytes_of(written.dtype.itemsize, written.sizes)
        for j, value in enumerate(inputs):
            if j != k and isinstance(value, ArrayValue):
                there = (value.ref, len(value.sizes), value.dtype.itemsize)
                tests.append(Test(("apart", written.ref, nbytes, *there), 1))
    sources = trace.sources or ()
    if any(~source >= len(inputs) for source in sources):
        raise Refused("the function returns a container that it is given")
    returned = [~source for source in sources if source < 0]
    given = tuple(_object(inputs[k]) for k in (*trace.writes, *returned))
    count = len(sources)
    function = _writer(len(trace.writes), len(returned), sources)
    return Noting(function, given, tuple(range(count)), count), tests


def _object(value: Value) -> Any:
    assert isinstance(value, (ArrayValue, NumberValue))
    return value.position if isinstance(value, NumberValue) else position_of(value.ref)


def _writer(written: int, returned: int, sources: Sequence[int]) -> Callable[..., Any]:
    """A function of the written arrays, the inputs that are results, and what kernels have made.

    It returns the results of the call, bare if there is one.
    """
    places = iter(range(written, written + returned))
    first = written + returned
    chosen = [first + source if source >= 0 else next(places) for source in sources]
    only = chosen[0] if len(chosen) == 1 else None

    def write(*objects: Any) -> Any:
        for k in range(written):
            np.copyto(objects[k], objects[k - written])
        if only is not None:
            return objects[only]
        return tuple([objects[k] for k in chosen])

    return write


__all__ = ["effects_of"]
