"""What one specialisation needs to run without Python: tests, kernel calls, outputs.

A *size* is an int, ``("dim", ref, axis)`` or ``(operator, size, size)``; a *ref* names an array:
the position of an argument, or a `Held` array that the graph captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from ...dialect.symbolic import BINARY, Dim
from ...lowering.abi import KernelABI, KernelArtifact
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE, dtype_word

Size = Union[int, tuple]


class Refused(Exception):
    """The plan cannot be dispatched natively; the text says why."""


class Held:
    """An array that the emitted code knows by address; compared by identity."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)


Ref = Union[int, Held]


@dataclass(frozen=True)
class Test:
    """One condition: what ``field`` reads has to be ``value`` (an int or a Python object).

    Fields: ``("type", ref)``, ``("dtype", ref)``, ``("nd", ref)``, ``("flags", ref, mask)``,
    ``("stride", ref, axis)``, ``("size", size)``; true or false are ``("positive", size)``,
    ``("same", size, size)``, ``("step", ref, axis, bytes)`` (that stride, or only one element) and
    ``("multiple", ref, axis, bytes)`` and ``("apart", ref, size, ref, rank, bytes)`` (the first
    array, contiguous and of so many bytes, lies outside of where the second has its elements)
    and ``("view", ref)``.
    """

    field: tuple
    value: Any


@dataclass(frozen=True)
class ArrayValue:
    """An array argument or a captured array."""

    ref: Ref
    dtype: np.dtype
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class NumberValue:
    """A Python number among the arguments."""

    position: int
    kind: type


@dataclass(frozen=True)
class MadeValue:
    """An output of a kernel, C-contiguous."""

    dtype: np.dtype
    sizes: tuple[Size, ...]


Value = Union[ArrayValue, NumberValue, MadeValue]


@dataclass(frozen=True)
class Step:
    """One kernel call.

    Attributes:
        artifact, address: the kernel.
        operands: values of the graph, in slot order.
        results: values of the graph; fewer than outputs where the kernel reports violations.
        guard: index of the guard whose hits are timed with this call, or None.
    """

    artifact: KernelArtifact
    address: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    guard: int | None

    @property
    def abi(self) -> KernelABI:
        return self.artifact.abi


@dataclass
class Leaf:
    """One specialisation.

    Attributes:
        arity: number of arguments.
        tests: what must hold, in an order in which each may rely on those before it.
        values: what is known of each value of the graph.
        steps: kernel calls in order.
        outputs: values that are returned.
        container: ``"leaf"`` (one output as it is), ``"tuple"`` or ``"list"``.
        missed: what the guards of outer specialisations check, which have sent the call here.
        targets: outputs -> arguments that they are written into.
        donated: how many of them are donated arguments.
        remembered: weak reference to the plan, what `last_graph.LAST.plan` is to hold.
    """

    arity: int = 0
    tests: list[Test] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    container: str = "leaf"
    missed: tuple[tuple[ArrayValue, ...], ...] = ()
    targets: dict[int, ArrayValue] = field(default_factory=dict)
    donated: int = 0
    remembered: Any = None

    def finish(self, inputs: Sequence[Value], arity: int, container: str) -> None:
        """Complete the leaf of a graph with these inputs; raises Refused."""
        self.arity, self.container = arity, container
        if container == "leaf" and len(self.outputs) != 1:
            raise Refused("the outputs are nested")
        # Cheap and common ones first, stable: the types of all arguments before any of their sizes.
        order = {"type": 0, "nd": 1, "dtype": 1, "flags": 1}
        tests = dict.fromkeys([*tests_of(inputs), *self.tests])
        self.tests = sorted(tests, key=lambda test: order.get(test.field[0], 2))

    def write_to(self, position: int, inputs: Sequence[Value]) -> None:
        """Have the only output written into the argument at a position; raises Refused."""
        if self.container != "leaf":
            raise Refused("into is given several arrays")
        self._aim(self.outputs[0], position, inputs)

    def donate(self, pairs: Sequence[tuple[int, int]], inputs: Sequence[Value]) -> None:
        """Have outputs made in inputs' memory, as `donation.donations` allows; raises Refused.

        Nothing may go wrong afterwards that the Python dispatcher would have to do over.
        """
        for output, k in pairs:
            value, given = self.outputs[output], inputs[k]
            if not isinstance(given, ArrayValue) or not isinstance(given.ref, int):
                raise Refused("what is donated is no array argument")
            if value not in self.steps[-1].results:
                raise Refused("a donated argument is overwritten before the last kernel")
            self._aim(value, given.ref, [v for n, v in enumerate(inputs) if n != k])
            self.tests.append(Test(("view", given.ref), 0))
        self.donated = len(pairs)

    def _aim(self, output: int, position: int, others: Sequence[Value]) -> None:
        """Fit only arguments that are of the output's type, contiguous, writable, and apart."""
        made = self.values[output]
        assert isinstance(made, MadeValue)
        if not made.sizes:
            raise Refused("an array of rank 0 is written to")
        target = self.targets[output] = _array(position, made.dtype, len(made.sizes))
        flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
        self.tests += [*tests_of([target]), Test(("flags", position, flags), flags)]
        for have, want in zip(target.sizes, made.sizes, strict=True):
            same = Test(("same", have, want), 1)
            self.tests.append(Test(("size", have), want) if isinstance(want, int) else same)
        nbytes = bytes_of(made.dtype.itemsize, target.sizes)
        for value in others:
            if isinstance(value, ArrayValue):
                there = (value.ref, len(value.sizes), value.dtype.itemsize)
                self.tests.append(Test(("apart", position, nbytes, *there), 1))

    def checked(self) -> list[ArrayValue]:
        """The arrays that the guards of outer specialisations check."""
        return list(dict.fromkeys(value for missed in self.missed for value in missed))

    def strides(self) -> list[tuple[Ref, int]]:
        """The strides that kernels take or that are kept of missed guards, as (array, axis)."""
        operands = [(self.values[s.operands[k]], a) for s in self.steps for k, a in s.abi.strides]
        kept = [(v, axis) for v in self.checked() for axis in range(len(v.sizes))]
        found = {(v.ref, a): None for v, a in (*operands, *kept) if isinstance(v, ArrayValue)}
        return list(found)

    def sizes(self, step: Step) -> dict[str, Size]:
        """What the size symbols of a kernel stand for."""
        out = {}
        for name, (index, axis) in step.abi.symbols.items():
            value = self.values[step.operands[index]]
            assert not isinstance(value, NumberValue)
            out[name] = value.sizes[axis]
        return out


def inputs_of(arguments: Sequence[Any], captured: Sequence[Any], first: int = 0) -> list[Value]:
    """The inputs of a traced graph as values; raises Refused.

    Args:
        arguments: per argument a (dtype, rank) pair or the type of a Python number.
        captured: the inputs after the arguments.
        first: position of the first argument.
    """
    out: list[Value] = []
    for position, given in enumerate(arguments, first):
        if given is complex:
            raise Refused("a complex Python number is an argument")
        if isinstance(given, type):
            out.append(NumberValue(position, given))
        else:
            out.append(_array(position, *given))
    for held in captured:
        if type(held) is not np.ndarray:
            raise Refused(f"a {type(held).__name__} is captured")
        out.append(_array(Held(held), held.dtype, held.ndim))
    return out


def _array(ref: Ref, dtype: np.dtype, rank: int) -> ArrayValue:
    return ArrayValue(ref, dtype, tuple(("dim", ref, axis) for axis in range(rank)))


def tests_of(inputs: Sequence[Value]) -> list[Test]:
    """What makes objects the values that they are taken for."""
    tests = []
    for value in inputs:
        if isinstance(value, NumberValue):
            tests.append(Test(("type", value.position), value.kind))
        elif isinstance(value, ArrayValue):
            if isinstance(value.ref, int):
                tests.append(Test(("type", value.ref), np.ndarray))
            tests += [
                Test(("nd", value.ref), len(value.sizes)),
                Test(("dtype", value.ref), dtype_word(value.dtype)),
                Test(("flags", value.ref, ALIGNED), ALIGNED),
            ]
    return tests


def bytes_of(itemsize: int, sizes: tuple[Size, ...]) -> Size:
    """Bytes of an array."""
    known, rest = itemsize, []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            rest.append(size)
    total: Size = known
    for size in rest:
        total = ("*", total, size)
    return total if known else 0


def size_of(dim: Dim, symbols: dict[str, Size]) -> Size:
    """A size expression over symbols that stand for sizes; raises Refused."""
    if isinstance(dim, int):
        return dim

    def binary(op: str, a: Size, b: Size) -> Size:
        if op in ("//", "%") and not (isinstance(b, int) and b > 0):
            raise Refused(f"a size is divided by another one ({dim})")
        return BINARY[op](a, b) if isinstance(a, int) and isinstance(b, int) else (op, a, b)

    try:
        return dim.fold(lambda name: symbols[name], int, binary)
    except KeyError as error:
        raise Refused(f"size symbol {error} is not bound") from None
