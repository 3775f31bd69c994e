"""Leaves for functions with effects: Python assigns and copies what kernels have made behind them.

Until then nothing has been written: a leaf that gives up leaves the whole call to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.importers.tracing.pytree import LEAF
from ..memory.placement import Refused, bytes_of
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE
from .leaf_spec import ArrayValue, Noting, Test, Value
from .number_values import NumberValue
from .refs import Held, Inside, Position, position_of

if TYPE_CHECKING:
    from ...dialect.importers.python.given import Containers
    from ...dialect.importers.tracing.tracer import Trace

_TYPES = {
    "list": list,
    "dict": dict,
}  # kinds of containers that emitted code takes apart, and may change
_MOST_OTHERS = 64  # objects from outside that a container is compared with


def effects_of(trace: Trace, inputs: Sequence[Value]) -> tuple[Noting, list[Test]]:
    """What has the effects of a function, and the conditions on what it writes to.

    They are for `Leaf.noting` and `Leaf.final`. Arrays that are written have to be writable and
    contiguous, and to overlap nothing that the graph reads: a write to one would be seen there.
    Containers that are assigned to have to be objects of their own, for the same reason.

    Raises Refused for effects that only the Python dispatcher has.
    """
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
    positions: list[Position] = []
    if trace.containers is not None:
        positions = _positions(trace.containers)
        tests += _apart(trace.containers, positions)
    sources = trace.sources or ()
    objects = [*map(_object, inputs), *positions]
    returned = [objects[~source] for source in sources if source < 0]
    holders = [s for s in trace.stores if s.container is not None]
    given = (
        *(objects[k] for k in trace.writes), *returned,
        *(positions[s.container] for s in holders if s.container is not None),
    )  # fmt: skip
    count = trace.out_tree.leaves
    function = _writer(trace, len(returned), len(holders))
    return Noting(function, given, tuple(range(count)), count), tests


def _object(value: Value) -> Any:
    assert isinstance(value, (ArrayValue, NumberValue))
    return value.position if isinstance(value, NumberValue) else position_of(value.ref)


def _positions(containers: Containers) -> list[Position]:
    """Where emitted code finds the containers of a call."""
    found: list[Position] = []
    for c in containers.every:
        found.append(c.index if c.parent is None else Inside(found[c.parent], c.index))
    return found


def _apart(containers: Containers, positions: Sequence[Position]) -> Iterator[Test]:
    """Tests that no container which is assigned to is another one, or an object from outside."""
    every = containers.every
    for k in containers.written:
        kind = _TYPES.get(every[k].kind)
        if kind is None:
            raise Refused(f"a {every[k].kind} among the arguments is assigned to")
        others = [x for x in containers.reached if type(x) is kind]
        if len(others) > _MOST_OTHERS:
            raise Refused("a container is assigned to that may be one of many from outside")
        yield from (Test(("static", positions[k], Held(x)), 0) for x in others)
        for j, other in enumerate(every):
            if other.kind == every[k].kind and (j < k or j not in containers.written) and j != k:
                yield Test(("one", positions[k], positions[j]), 0)
    for holder in {id(x): x for x in containers.assigned}.values():
        for k, c in enumerate(every):
            if c.is_mutable and _TYPES.get(c.kind) in (type(holder), None):
                yield Test(("static", positions[k], Held(holder)), 0)


def _writer(trace: Trace, returned: int, holders: int) -> Callable[..., Any]:
    """A function of what effects need, and of what kernels have made.

    It is given the written arrays, the inputs and containers that are results or assigned, the
    containers that are assigned to, and then the outputs of the graph. It returns the results of
    the call, bare if there is one.
    """
    written, sources = len(trace.writes), trace.sources or ()
    places = iter(range(written, written + returned))
    first = written + returned + holders
    chosen = [first + source if source >= 0 else next(places) for source in sources]
    numbers = iter(range(written + returned, first))
    results, rest = chosen[: trace.out_tree.leaves], iter(chosen[trace.out_tree.leaves :])
    stores = []
    for store in trace.stores:
        number = None if store.container is None else next(numbers)
        leaves = [] if store.tree is None else [next(rest) for _ in range(store.tree.leaves)]
        stores.append((store, number, leaves))
    plain = [
        (store.place.put, store.place.holder, number, leaves[0])
        for store, number, leaves in stores if store.tree is not None and store.tree.spec == LEAF
    ]  # fmt: skip
    nested = stores if len(plain) != len(stores) else []
    only = results[0] if len(results) == 1 else None

    def write(*objects: Any) -> Any:
        for k in range(written):
            np.copyto(objects[k], objects[k - written])
        for put, holder, number, k in () if nested else plain:
            put(holder if number is None else objects[number], objects[k])
        for store, number, leaves in nested:
            tree, holder = store.tree, store.place.holder
            value = store.kept if tree is None else tree.unflatten([objects[k] for k in leaves])
            store.place.put(holder if number is None else objects[number], value)
        if only is not None:
            return objects[only]
        return tuple([objects[k] for k in results])

    return write


__all__ = ["effects_of"]
