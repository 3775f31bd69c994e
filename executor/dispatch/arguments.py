"""Maps the arguments of a call to the inputs of a graph, with the tests that they have to pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.importers.numpy.python.instances import is_told_by_names
from ...dialect.ir.dtypes import dtype_of
from ...dialect.trees.pytree import static_of
from ...dialect.trees.static_objects import Generator
from ..memory.offsets import Refused
from ..memory.output_pool import unreadable
from .layout import SCALARS
from .leaf_spec import HostStep, Noting
from .leaf_values import ArrayValue, Test, Value, array_of, tests_of
from .number_values import NumberValue
from .refs import DescribedRef, Held, Inside, InState, OnTape, Position, Ref, ScalarRef, position_of

if TYPE_CHECKING:
    from ...dialect.trees.pytree import TreeDef
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..exchange.host_tensors import TensorClass
    from .effect_leaf import EffectWriter

_CONTAINERS = {"tuple": tuple, "list": list, "dict": dict}
_OF_ATTRIBUTES = ("dataclass", "namespace")


@dataclass
class CallArguments:
    """The arguments of a call, as a graph expects them.

    Attributes:
        arity: number of arguments that are passed by position.
        values: the inputs of the graph, in order.
        containers: those among the arguments, outer ones first.
        generators: positions of random generators, each with its number among the different ones.
        tests: conditions on the arguments; each test may rely on those before it.
        final: conditions on those that the function writes to.
        drawing: what draws random numbers, which are the last of the values; None = nothing does.
        writing: what writes to them; None = nothing does.
        views: what makes results of what kernels give; None = they are the results.
        laid: the same, where what kernels give does not lie in C order.
        orders: for each result, if they are what kernels give, its axes from the outermost in
            memory to the innermost; None = in their order, or it has an axis at most.
    """

    arity: int
    values: list[Value] = field(default_factory=list)
    containers: list[Position] = field(default_factory=list)
    generators: dict[Position, int] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    final: list[Test] = field(default_factory=list)
    drawing: HostStep | None = None
    writing: EffectWriter | None = None
    views: Noting | None = None
    laid: Noting | None = None
    orders: Sequence[tuple[int, ...] | None] | None = None


def arguments_of(
    tree: TreeDef,
    kinds: Sequence[Any],
    captured: Sequence[tuple[Any, Any]],
    *,
    slots: Sequence[tuple[InState, Any]] = (),
    first: int = 0,
    exchange: Exchange | None = None,
    on_tape: bool = False,
    tensors: Sequence[TensorClass | None] = (),
) -> CallArguments:
    """The arguments of all calls with a given structure.

    Args:
        tree: structure of the positional and keyword arguments.
        kinds: the `pytree.leaf_kind` of each leaf.
        captured: the captured arrays, each with the dtype and shape for which the graph is valid.
        slots: what is in attributes and items that calls assign, each with its `leaf_kind`.
        first: position of the first argument.
        exchange: the DLPack functions of the library that made the device arrays; None = host.
        on_tape: arrays may be those of the tape.
        tensors: for each leaf, the type of tensors in place of the array; () = no tensors.

    Raises Refused for arguments that only the Python dispatcher can take.
    """
    (_, _, positional), (_, names, keywords) = tree.spec[2]
    every = (*kinds, *(kind for _, kind in slots))
    finder = _LeafFinder(first + len(positional), every, exchange, on_tape, tensors)
    finder.owns = _has_attributes((*positional, *keywords))
    finder.found.tests.append(Test(("keywords", tuple(names)), 1))
    for position, spec in enumerate((*positional, *keywords), first):
        finder.argument(position, spec)
    for place, _ in slots:
        finder.found.tests.append(Test(("taken", place), 1))
        finder.argument(place, ("leaf",))
    if exchange is not None or tensors:  # describing an array runs code of its library
        lent = tuple(p for v in finder.found.values if isinstance(p := _position(v), Inside))
        finder.found.tests += [Test(("owned", lent), 1)] if lent else []
    captured_values = captured_of(captured, exchange)
    finder.found.values += captured_values
    finder.found.tests += tests_of(finder.found.values)
    for value, (_, (_, shape)) in zip(captured_values, captured, strict=True):
        finder.found.tests += [Test(("size", have), want) for have, want in zip(value.sizes, shape, strict=True)]
    return finder.found


def apart_from(positions: Iterable[Position], objects: Iterable[Any]) -> list[Test]:
    """Tests that none of these objects is at any of the positions."""
    return [Test(("static", position, Held(x)), 0) for position, x in product(positions, objects)]


def _position(value: Value) -> Ref:
    assert isinstance(value, (ArrayValue, NumberValue))
    ref = value.position if isinstance(value, NumberValue) else value.ref
    return position_of(ref)


def flat_arguments(kinds: Sequence[Any], exchange: Exchange | None = None) -> CallArguments:
    """Positional arguments without containers; ``kinds``: `pytree.leaf_kind` of each argument."""
    finder = _LeafFinder(len(kinds), kinds, exchange)
    for position in range(len(kinds)):
        finder.argument(position, ("leaf",))
    finder.found.tests += tests_of(finder.found.values)
    return finder.found


class _LeafFinder:
    """Walks over the structure of the arguments; ``kinds``: the kinds of its leaves, in order.

    Attributes:
        owns: calls own what containers hold as soon as these are opened.
    """

    owns = False

    def __init__(
        self,
        arity: int,
        kinds: Sequence[Any],
        exchange: Exchange | None,
        on_tape: bool = False,
        tensors: Sequence[TensorClass | None] = (),
    ) -> None:
        self.found = CallArguments(arity)
        self._kinds: Iterator[Any] = iter(kinds)
        self._tensors: Iterator[TensorClass | None] = iter(tensors)
        self._exchange, self._on_tape = exchange, on_tape

    def argument(self, position: Position, spec: tuple) -> None:
        """Add the argument at a position; ``spec``: its structure."""
        if spec[0] == "leaf":
            self.found.values.append(self._leaf(position, next(self._kinds)))
        elif spec[0] == "static" and type(spec[2]) is Generator:
            self._generator(position, spec[1], spec[2].number)
        elif spec[0] == "static":
            self.found.tests.append(Test(("static", position, Held(static_of(spec))), 1))
        else:
            kind, keys = _kind_and_keys(spec)
            self.found.containers.append(position)
            self.found.tests.append(Test(("opened", position, kind, tuple(map(Held, keys)), self.owns), 1))
            for index, item in enumerate(spec[2]):
                self.argument(Inside(position, index), item)

    def _generator(self, position: Position, kind: type, number: int) -> None:
        """Take any generator, if the others among the arguments are the same one, or not, as they were."""
        self.found.tests.append(Test(("type", position), kind))
        self.found.tests += [
            Test(("one", position, other), int(number == its)) for other, its in self.found.generators.items()
        ]
        self.found.generators[position] = number

    def _leaf(self, position: Position, kind: Any) -> Value:
        tensor = next(self._tensors, None)
        if tensor is not None:
            dtype, rank = kind
            dtype = dtype_of(dtype).numpy
            return array_of(DescribedRef(position, dtype.itemsize, tensor), dtype, rank)
        if kind is None:
            raise Refused("an argument is None where a list of integers may be, which Python reads")
        if kind is complex and not self._on_tape:
            return array_of(ScalarRef(position, is_python=True), np.dtype(kind), 0)
        if isinstance(kind, type) and not issubclass(kind, np.generic):
            return NumberValue(position, kind)
        if isinstance(kind, type) and kind not in SCALARS:
            raise Refused(f"a scalar of {kind.__name__} is an argument")
        if self._on_tape:
            assert isinstance(position, (int, Inside))
            position = OnTape(position)
            self.found.tests.append(Test(("untaped", position), 1))
        if isinstance(kind, type):
            value = array_of(ScalarRef(position), np.dtype(kind), 0)
            return replace(value, tracked=self._on_tape)
        dtype, rank, *device = kind
        dtype = dtype_of(dtype).numpy
        if not device:
            return replace(array_of(position, dtype, rank), tracked=self._on_tape)
        if self._exchange is None:
            raise Refused("host arrays and a device's are arguments of one call")
        return array_of(DescribedRef(position, dtype.itemsize, self._exchange), dtype, rank, device[0])


def _kind_and_keys(spec: tuple) -> tuple[type, Sequence[Any]]:
    """The class of a container, and the keys of its items; raises Refused for one that Python takes apart."""
    name, meta, items = spec
    if name in _OF_ATTRIBUTES and is_told_by_names(*meta):
        return meta
    if name not in _CONTAINERS and name != "namedtuple":
        told = "an ordered dict" if name == "ordered" else f"a {name}"
        raise Refused(f"an argument is {told}, which Python takes apart")
    kind = _CONTAINERS.get(name, meta)
    return kind, meta if kind is dict else range(len(items))


def _has_attributes(specs: Iterable[tuple]) -> bool:
    """True if there is an object with attributes among arguments, or in them."""
    return any(s[0] in _OF_ATTRIBUTES or (s[0] not in ("leaf", "static") and _has_attributes(s[2])) for s in specs)


def captured_of(captured: Sequence[tuple[Any, Any]], exchange: Exchange | None = None) -> list[ArrayValue]:
    """The arrays that a function closes over, as inputs of its graph.

    Raises Refused if the Python dispatcher would copy one of them for each call.
    """
    return [_captured(array, dtype, len(shape), exchange) for array, (dtype, shape) in captured]


def _captured(array: Any, dtype: np.dtype, rank: int, exchange: Exchange | None) -> ArrayValue:
    if exchange is not None:
        raise Refused("an array is captured, which is copied to the device for each call")
    if isinstance(array, np.ndarray):
        if (why := unreadable(array)) is not None:
            raise Refused(f"an array is captured that is copied for each call: {why}")
        return array_of(Held(array), dtype, rank)
    from ..exchange.host_tensors import tensor_type

    tensor = tensor_type(type(array))
    if tensor is None:
        raise Refused(f"a {type(array).__name__} is captured")
    return array_of(DescribedRef(Held(array), dtype.itemsize, tensor), dtype, rank)
