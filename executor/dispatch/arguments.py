"""What arguments have to be for a graph to take them, and how its inputs are found among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.ir.dtypes import dtype_of
from ..memory.output_pool import unreadable
from ..memory.placement import Refused
from .leaf_spec import ArrayValue, MadeValue, NumberValue, Test, Value, array_of, tests_of
from .refs import Held, Inside, OnDevice, Position, Ref

if TYPE_CHECKING:
    from ...dialect.importers.tracing.pytree import TreeDef
    from ..cuda.exchange.dlpack_exchange import Exchange

_CONTAINERS = {"tuple": tuple, "list": list, "dict": dict}


@dataclass
class Arguments:
    """The arguments of a call.

    Attributes:
        arity: how many are passed by position.
        values: inputs of the graph.
        tests: what makes arguments these values; each may rely on those before.
    """

    arity: int
    values: list[Value] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)


def arguments_of(
    tree: TreeDef,
    kinds: Sequence[Any],
    captured: Sequence[tuple[Any, Any]],
    *,
    first: int = 0,
    exchange: Exchange | None = None,
) -> Arguments:
    """The arguments of calls of a structure; raises Refused for what only Python takes.

    Args:
        tree: structure of positional arguments and keywords.
        kinds: per leaf its `pytree.leaf_kind`.
        captured: arrays that the graph takes besides, and dtype and shape that it holds for.
        first: position of the first argument.
        exchange: of the library that device arrays are of.
    """
    (_, _, positional), (_, names, named) = tree.spec[2]
    made = _Finder(first + len(positional), kinds, exchange)
    made.found.tests.append(Test(("keywords", tuple(names)), 1))
    for position, spec in enumerate((*positional, *named), first):
        made.argument(position, spec)
    if exchange is not None:  # which describes its arrays by code of its own
        lent = tuple(p for v in made.found.values if isinstance(p := _position(v), Inside))
        made.found.tests += [Test(("owned", lent), 1)] if lent else []
    held = captured_of(captured, exchange)
    made.found.values += held
    made.found.tests += tests_of(made.found.values)
    for value, (_, (_, shape)) in zip(held, captured, strict=True):
        made.found.tests += [
            Test(("size", have), want) for have, want in zip(value.sizes, shape, strict=True)
        ]
    return made.found


def _position(value: Value) -> Ref:
    assert not isinstance(value, MadeValue)
    given = value.position if isinstance(value, NumberValue) else value.ref
    return given.position if isinstance(given, OnDevice) else given


def flat_arguments(given: Sequence[Any], exchange: Exchange | None = None) -> Arguments:
    """Arguments by position, none of them a container: per argument its `pytree.leaf_kind`."""
    made = _Finder(len(given), given, exchange)
    for position in range(len(given)):
        made.argument(position, ("leaf",))
    made.found.tests += tests_of(made.found.values)
    return made.found


class _Finder:
    """Goes through the arguments, whose leaves are of these kinds."""

    def __init__(self, arity: int, kinds: Sequence[Any], exchange: Exchange | None) -> None:
        self.found = Arguments(arity)
        self._kinds: Iterator[Any] = iter(kinds)
        self._exchange = exchange

    def argument(self, position: Position, spec: tuple) -> None:
        """What is at a position, which has this structure."""
        if spec[0] == "leaf":
            self.found.values.append(self._leaf(position, next(self._kinds)))
        elif spec[0] == "static":
            self.found.tests.append(Test(("static", position, Held(spec[2])), 1))
        elif spec[0] in _CONTAINERS or spec[0] == "namedtuple":
            kind, meta, items = _CONTAINERS.get(spec[0], spec[1]), spec[1], spec[2]
            keys = meta if kind is dict else range(len(items))
            self.found.tests.append(Test(("opened", position, kind, tuple(map(Held, keys))), 1))
            for index, item in enumerate(items):
                self.argument(Inside(position, index), item)
        else:
            raise Refused(f"an argument is a {spec[0]}, which Python takes apart")

    def _leaf(self, position: Position, kind: Any) -> Value:
        if isinstance(kind, type):
            if issubclass(kind, np.generic):
                raise Refused("a NumPy scalar is an argument")
            if kind is complex:
                raise Refused("a complex Python number is an argument")
            return NumberValue(position, kind)
        dtype, rank, *device = kind
        dtype = dtype_of(dtype).numpy
        if not device:
            return array_of(position, dtype, rank)
        if self._exchange is None:
            raise Refused("host arrays and a device's are arguments of one call")
        return array_of(OnDevice(position, dtype.itemsize, self._exchange), dtype, rank, device[0])


def captured_of(
    captured: Sequence[tuple[Any, Any]], exchange: Exchange | None = None
) -> list[ArrayValue]:
    """The arrays that a function closes over, as inputs; raises Refused."""
    for array, _ in captured:
        if not isinstance(array, np.ndarray):
            raise Refused(f"a {type(array).__name__} is captured")
        if exchange is not None:
            raise Refused("an array is captured, which is copied to the device for each call")
        if (why := unreadable(array)) is not None:
            raise Refused(f"an array is captured that is copied for each call: {why}")
    return [array_of(Held(array), dtype, len(shape)) for array, (dtype, shape) in captured]
