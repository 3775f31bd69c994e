"""Leaves for functions with effects: Python assigns and copies what kernels have made behind them.

Until then nothing has been written: a leaf that gives up leaves the whole call to Python. Only the
last kernel may write to arrays of the caller's itself, if it leaves them as they were where its run
is void.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.trees.containers import container_of
from ...dialect.trees.pytree import LEAF
from ..memory.offsets import Refused, bytes_of
from .host_calls import drawn_number
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE
from .leaf_spec import HostKernel, KernelStep, Leaf, Noting
from .leaf_values import ArrayValue, MadeValue, Test, Value
from .number_values import NumberValue
from .refs import DescribedRef, FromHost, Held, Inside, Position, position_of

if TYPE_CHECKING:
    from ...dialect.importers.numpy.capture.trace import Trace
    from ...dialect.importers.numpy.world.given import Containers
    from .arguments import CallArguments

_ASSIGNED = (
    "list",
    "dict",
    "dataclass",
    "namespace",
)  # kinds of containers that emitted code takes apart, and may change
_MOST_OTHERS = 64  # objects from outside that a container is compared with


@dataclass
class EffectWriter(Noting):
    """A call behind kernels that writes where a function writes.

    Attributes:
        trace: the graph.
        returned: how many arguments are results, or assigned.
        holders: how many containers are assigned to.
        arrays: those that are written, in the order of the graph's last outputs.
    """

    trace: Trace
    returned: int
    holders: int
    arrays: tuple[ArrayValue, ...]


def effects_of(trace: Trace, arguments: CallArguments) -> tuple[EffectWriter, list[Test]]:
    """The call that has the effects of a function, and the conditions on what it writes to.

    They are for `Leaf.noting` and `Leaf.final`. Arrays that are written have to be writable and
    contiguous, and to overlap nothing that the graph reads: a write to one would be seen there.
    Containers that are assigned to have to be objects of their own, for the same reason.

    Raises Refused for effects that only the Python dispatcher has.
    """
    tests, flags = [], C_CONTIGUOUS | ALIGNED | WRITEABLE
    inputs, positions = arguments.values, arguments.containers
    for k in trace.writes:
        target = inputs[k]
        assert isinstance(target, ArrayValue)
        if isinstance(target.ref, DescribedRef):
            tests.append(target.is_contiguous())  # tensors have no flag that forbids to write
        else:
            tests.append(Test(("flags", target.ref, flags), flags))
        nbytes = bytes_of(target.dtype.itemsize, target.sizes)
        for j, value in enumerate(inputs):
            if j != k and isinstance(value, ArrayValue):
                there = (value.ref, len(value.sizes), value.dtype.itemsize)
                tests.append(Test(("apart", target.ref, nbytes, *there), 1))
    if trace.containers is not None:
        tests += _apart(trace.containers, positions)
    sources = trace.sources or ()
    draws = [FromHost(drawn_number(k)) for k in range(len(trace.draws))]
    objects = [*map(object_at, inputs), *draws, *positions]
    returned = [objects[~source] for source in sources if source < 0]
    holders = [positions[node] for s in trace.stores if (node := s.place.node) is not None]
    operands = (*(objects[k] for k in trace.writes), *returned, *holders)
    count = trace.out_tree.leaves
    counts = len(returned), len(holders)
    function = _writer(trace, *counts)
    arrays = tuple(v for k in trace.writes if isinstance(v := inputs[k], ArrayValue))
    return EffectWriter(function, operands, tuple(range(count)), count, trace, *counts, arrays), tests


def write_in_place(leaf: Leaf, writing: EffectWriter) -> None:
    """Have the last kernel of a leaf write arrays of the caller's, where it can, without a copy."""
    last, step, trace = len(leaf.steps), leaf.steps[-1:], writing.trace
    # What may fail comes first, such as an assignment: the call cannot be repeated behind a write.
    if not step or trace.stores or any(number == last for number, _ in leaf.between):
        return
    outputs = leaf.outputs[len(leaf.outputs) - len(writing.arrays) :]
    in_place = {
        number: output
        for number, (output, array) in enumerate(zip(outputs, writing.arrays, strict=True))
        if _may_write(leaf, step[0], output, array)
    }
    for number, output in in_place.items():
        value, array = leaf.values[output], writing.arrays[number]
        assert isinstance(value, MadeValue)
        leaf.targets[output], leaf.overwrites = array, True
        for have, want in zip(array.sizes, value.sizes, strict=True):
            if have != want:
                is_static = isinstance(want, int)
                test = Test(("size", have), want) if is_static else Test(("same", have, want), 1)
                leaf.final.append(test)
    function = _writer(trace, writing.returned, writing.holders, in_place)
    leaf.noting = replace(writing, function=function)
    if len(in_place) < len(outputs):
        return  # the others are copied behind the kernel
    sources = trace.sources or ()
    targets = dict(zip(trace.writes, outputs, strict=True))
    if all(source >= 0 or _is_returned(leaf, targets.get(~source)) for source in sources):
        results = [leaf.outputs[s] if s >= 0 else targets[~s] for s in sources]
        leaf.outputs, leaf.noting = tuple(results), None


def _is_returned(leaf: Leaf, target: int | None) -> bool:
    """True if what an output is written to is returned as it is: a tensor where tensors are returned, else an array."""
    is_tensor = target is not None and isinstance(leaf.targets[target].ref, DescribedRef)
    return target is not None and is_tensor == (leaf.tensors is not None)


def _may_write(leaf: Leaf, step: KernelStep, output: int, array: ArrayValue) -> bool:
    """True if a step may make an output of a leaf in the array to which the function writes it.

    No other input is in that memory (`effects_of`).
    """
    value, abi = leaf.values[output], step.abi
    if not isinstance(position_of(array.ref), (int, Inside, Held)) or not isinstance(step.kernel, HostKernel):
        return False
    if output not in step.results or not isinstance(value, MadeValue) or not value.sizes:
        return False
    if leaf.outputs.count(output) != 1 or output in leaf.turned or value.dtype != array.dtype:
        return False
    if len(value.sizes) != len(array.sizes):
        return False
    operands = [leaf.values[v] for v in step.operands]
    reads = [k for k, v in enumerate(operands) if isinstance(v, ArrayValue) and v.ref == array.ref]
    if abi.can_violate and not (abi.ends_early or (abi.restores and reads)):
        return False  # a void run is Python's, which has to find what the array held
    kinds = [spec.kind for spec in abi.outputs]
    places = [number for number, kind in enumerate(kinds) if kind != "violation"]
    place = places[step.results.index(output)]
    return not reads or (len(reads) == 1 and (place, reads[0]) in abi.in_place)


def object_at(value: Value) -> Any:
    """The position of an argument, or a captured array."""
    assert isinstance(value, (ArrayValue, NumberValue))
    return value.position if isinstance(value, NumberValue) else position_of(value.ref)


def _apart(containers: Containers, positions: Sequence[Position]) -> Iterator[Test]:
    """Tests that no container which is assigned to is another one, or an object from outside."""
    kinds = containers.kinds
    for k in containers.written:
        if kinds[k] not in _ASSIGNED:
            raise Refused(f"a {kinds[k]} among the arguments is assigned to")
        others = [x for x in containers.reached if _kind_of(x) == kinds[k]]
        if len(others) > _MOST_OTHERS:
            raise Refused("a container is assigned to that may be one of many from outside")
        yield from (Test(("static", positions[k], Held(x)), 0) for x in others)
        for j, other in enumerate(kinds):
            if other == kinds[k] and (j < k or j not in containers.written) and j != k:
                yield Test(("one", positions[k], positions[j]), 0)
    for holder in {id(x): x for x in containers.assigned}.values():
        for k, name in enumerate(kinds):
            if containers.is_mutable(k) and _kind_of(holder) == name:
                yield Test(("static", positions[k], Held(holder)), 0)


def _kind_of(value: Any) -> str | None:
    """The kind of container that an object would be as an argument; None for others."""
    container = container_of(value)
    return None if container is None else container.kind


def _itself(value: Any) -> Any:
    return value


def _writer(trace: Trace, returned: int, holders: int, in_place: Container[int] = ()) -> Callable[..., Any]:
    """A function of what effects need, and of what kernels have made.

    It is given the written arrays, the inputs and containers that are results or assigned, the
    containers that are assigned to, and then the outputs of the graph. It returns the results of
    the call, bare if there is one. Kernels have written the arrays of the numbers ``in_place``. What is
    put into containers among the arguments goes through ``stored`` first.
    """
    writes, sources = len(trace.writes), trace.sources or ()
    copied = [k for k in range(writes) if k not in in_place]
    places = iter(range(writes, writes + returned))
    first = writes + returned + holders
    chosen = [first + source if source >= 0 else next(places) for source in sources]
    numbers = iter(range(writes + returned, first))
    results, rest = chosen[: trace.out_tree.leaves], iter(chosen[trace.out_tree.leaves :])
    stores = []
    for store in trace.stores:
        number = None if store.place.node is None else next(numbers)
        stores.append((store, number, [next(rest) for _ in range(store.count)]))
    plain = [
        (store.place.put_to, store.place.key, store.place.holder, number, leaves[0])
        for store, number, leaves in stores
        if store.tree is not None and store.tree.spec == LEAF
    ]
    nested = stores if len(plain) != len(stores) else []
    only = results[0] if len(results) == 1 else None

    def write(*objects: Any, stored: Callable[[Any], Any] = _itself) -> Any:
        for k in copied:
            np.copyto(objects[k], objects[k - writes])
        for put, key, holder, number, k in () if nested else plain:
            if number is None:
                put(holder, key, objects[k])
            else:
                put(objects[number], key, stored(objects[k]))
        for store, number, leaves in nested:
            values = [objects[k] for k in leaves]
            if number is None:
                store.place.put(store.place.holder, store.value(values))
            else:
                store.place.put(objects[number], store.value([stored(x) for x in values]))
        if only is not None:
            return objects[only]
        return tuple([objects[k] for k in results])

    return write
