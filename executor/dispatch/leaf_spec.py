"""What one specialisation needs to run without Python: tests, kernel calls, outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Union

import numpy as np

from ...dialect.importers.tracing.pytree import LEAF
from ...dialect.ir.device import HOST
from ...dialect.ir.symbolic import Dim, Dimension, symbol
from ...lowering.abi import KernelABI, KernelArtifact
from ..cuda.launching.launches import Action, DeviceKernel, Multiply
from ..memory.placement import Refused, bytes_of
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE, dtype_word
from .refs import Inside, OnDevice, Position, Ref, Stride

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from .arguments import Arguments


@dataclass(frozen=True)
class Test:
    """One condition: what ``field`` reads has to be ``value`` (an int or a type).

    Fields of arguments, true or false: ``("keywords", names)``, ``("static", position, Held)``,
    ``("fits", position)`` of an int, and ``("opened", position, type, keys)``, on which what reads
    the items relies; ``("bits", position)`` of a float; and ``("owned", positions)``, always 1.

    Of arrays: ``("type", ref)``, ``("dtype", ref)``, ``("nd", ref)``, ``("flags", ref, mask)``,
    ``("stride", ref, axis)``; true or false are ``("step", ref, axis, bytes)`` (that stride, or
    only one element), ``("multiple", ref, axis, bytes)``, ``("view", ref)``, and ``("apart", ref,
    size, ref, rank, bytes)`` (the first array, contiguous and of so many bytes, lies outside of
    where the second has its elements). Of arrays on a device also ``("described", ref)``, on which
    all others rely, ``("device", ref)`` and ``("dense", ref, rank)``.

    Of sizes: ``("size", size)``; true or false are ``("positive", size)``, ``("same", size, size)``
    and ``("less", size, size)``. Of relaxed guards, true or false: ``("profiled", size, whether 1
    was profiled)`` and ``("ordered", ref, bytes, field that tells contiguity, axes by stride, axes
    without gaps)``.
    """

    field: tuple
    value: Any


@dataclass(frozen=True)
class ArrayValue:
    """An array argument or a captured array."""

    ref: Ref
    dtype: np.dtype
    sizes: tuple[Dim, ...]
    device: str = HOST

    @property
    def contiguous(self) -> tuple:
        """The field that is nonzero if elements lie in C order without gaps."""
        if isinstance(self.ref, OnDevice):
            return "dense", self.ref, len(self.sizes)
        return "flags", self.ref, C_CONTIGUOUS

    def is_contiguous(self) -> Test:
        """The test for that."""
        return Test(self.contiguous, 1 if isinstance(self.ref, OnDevice) else C_CONTIGUOUS)

    def stride(self, axis: int) -> Dim:
        """A stride, in elements."""
        return symbol(Stride(self.ref, axis, self.dtype.itemsize))


@dataclass(frozen=True)
class NumberValue:
    """A Python number among the arguments."""

    position: Position
    kind: type


@dataclass(frozen=True)
class MadeValue:
    """An output of a kernel, C-contiguous."""

    dtype: np.dtype
    sizes: tuple[Dim, ...]
    device: str = HOST

    def stride(self, axis: int) -> Dim:
        """A stride, in elements."""
        return math.prod(self.sizes[axis + 1 :])


Value = Union[ArrayValue, NumberValue, MadeValue]


@dataclass(frozen=True, eq=False)
class HostKernel:
    """Machine code of a fusion function."""

    artifact: KernelArtifact
    address: int
    device: ClassVar[str] = HOST

    @property
    def abi(self) -> KernelABI:
        """How to call it."""
        return self.artifact.abi


Kernel = Union[HostKernel, DeviceKernel]


@dataclass(frozen=True)
class Step:
    """One kernel call.

    Attributes:
        kernel: of the host, or of a device.
        operands: values of the graph, in slot order.
        results: values of the graph; fewer than outputs where the kernel reports violations.
        guard: index of the guard whose hits are timed with this call, or None.
        workspace: bytes that the kernel needs besides.
        actions: what starts a device's kernels.
    """

    kernel: Kernel
    operands: tuple[int, ...]
    results: tuple[int, ...]
    guard: int | None
    workspace: Dim = 0
    actions: tuple[Action, ...] = ()

    @property
    def abi(self) -> KernelABI:
        return self.kernel.abi

    @property
    def library_calls(self) -> int:
        """Library products per call."""
        if isinstance(self.kernel, HostKernel):
            return self.kernel.artifact.library_calls
        return sum(isinstance(action, Multiply) for action in self.actions)


@dataclass
class Leaf:
    """One specialisation.

    Attributes:
        arity: number of arguments that are passed by position.
        tests: what must hold, in an order in which each may rely on those before it.
        final: what must hold once all of them do, or else the call is Python's: what is asked of
            arrays that are written to, of which no guard knows.
        values: what is known of each value of the graph.
        steps: kernel calls in order.
        outputs: values that are returned.
        structure: of the results, as of a `TreeDef`.
        missed: what the guards of outer specialisations check, which have sent the call here.
        targets: outputs -> arguments that they are written into.
        donated: how many of them are donated arguments.
        remembered: weak reference to the plan, which a call puts into `last_executed.LAST.plan`.
        exchange: of the library that arguments and outputs are of; None on the host.
        evaluated: ops that Python would evaluate, and a hit need not.
    """

    arity: int = 0
    tests: list[Test] = field(default_factory=list)
    final: list[Test] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    structure: tuple = LEAF
    missed: tuple[tuple[ArrayValue, ...], ...] = ()
    targets: dict[int, ArrayValue] = field(default_factory=dict)
    donated: int = 0
    remembered: Any = None
    exchange: Exchange | None = None
    evaluated: int = 0

    @property
    def device(self) -> str:
        """Where the kernels run."""
        return self.steps[0].kernel.device if self.steps else HOST

    def finish(self, arguments: Arguments, structure: tuple) -> None:
        """Complete the leaf of a graph with these arguments and results; raises Refused."""
        self.arity, self.structure = arguments.arity, structure
        _check_structure(structure)
        # What others rely on first, then what is cheap; stable.
        order = {"keywords": 0, "opened": 1, "static": 2, "type": 2, "owned": 3, "described": 4}
        order |= dict.fromkeys(("nd", "dtype", "flags", "device"), 5)
        tests = dict.fromkeys([*arguments.tests, *self.tests])
        self.tests = sorted(tests, key=lambda test: order.get(test.field[0], 6))

    def write_to(self, position: int, inputs: Sequence[Value]) -> None:
        """Have the only output written into the argument at a position; raises Refused."""
        if self.structure != LEAF:
            raise Refused("into is given several arrays")
        self._aim(self.outputs[0], position, inputs)

    def donate(self, pairs: Sequence[tuple[int, int]], inputs: Sequence[Value]) -> None:
        """Have outputs made in inputs' memory, as `donation.donations` allows; raises Refused.

        Nothing may go wrong afterwards that the Python dispatcher would have to do over.
        """
        for output, k in pairs:
            value, given = self.outputs[output], inputs[k]
            if not isinstance(given, ArrayValue) or not isinstance(given.ref, (int, Inside)):
                raise Refused("what is donated is no array argument")
            if value not in self.steps[-1].results:
                raise Refused("a donated argument is overwritten before the last kernel")
            self._aim(value, given.ref, [v for n, v in enumerate(inputs) if n != k])
            self.final.append(Test(("view", given.ref), 0))
        self.donated = len(pairs)

    def _aim(self, output: int, position: Position, others: Sequence[Value]) -> None:
        """Have an output written into an argument.

        The leaf then fits only arguments of the output's type that are contiguous, writable, and
        apart from all others.
        """
        made = self.values[output]
        assert isinstance(made, MadeValue)
        if not made.sizes:
            raise Refused("an array of rank 0 is written to")
        target = self.targets[output] = array_of(position, made.dtype, len(made.sizes))
        flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
        self.final += [*tests_of([target]), Test(("flags", position, flags), flags)]
        for have, want in zip(target.sizes, made.sizes, strict=True):
            same = Test(("same", have, want), 1)
            self.final.append(Test(("size", have), want) if isinstance(want, int) else same)
        nbytes = bytes_of(made.dtype.itemsize, target.sizes)
        for value in others:
            if isinstance(value, ArrayValue):
                there = (value.ref, len(value.sizes), value.dtype.itemsize)
                self.final.append(Test(("apart", position, nbytes, *there), 1))

    def checked(self) -> list[ArrayValue]:
        """The arrays that the guards of outer specialisations check."""
        return list(dict.fromkeys(value for missed in self.missed for value in missed))

    def strides(self) -> list[tuple[Ref, int]]:
        """The strides that kernels take or that are kept of missed guards, as (array, axis)."""
        operands = [(self.values[s.operands[k]], a) for s in self.steps for k, a in s.abi.strides]
        kept = [(v, axis) for v in self.checked() for axis in range(len(v.sizes))]
        found = {(v.ref, a): None for v, a in (*operands, *kept) if isinstance(v, ArrayValue)}
        return list(found)

    def sizes(self, step: Step) -> dict[str, Dim]:
        """What the size symbols of a kernel stand for."""
        out = {}
        for name, (index, axis) in step.abi.symbols.items():
            value = self.values[step.operands[index]]
            assert not isinstance(value, NumberValue)
            out[name] = value.sizes[axis]
        return out


def array_of(ref: Ref, dtype: np.dtype, rank: int, device: str = HOST) -> ArrayValue:
    """An array with sizes of its own."""
    return ArrayValue(
        ref, dtype, tuple(symbol(Dimension(ref, axis)) for axis in range(rank)), device
    )


def tests_of(inputs: Sequence[Value]) -> list[Test]:
    """What makes objects the values that they are taken for."""
    tests = []
    for value in inputs:
        if isinstance(value, NumberValue):
            tests.append(Test(("type", value.position), value.kind))
        elif isinstance(value, ArrayValue) and isinstance(value.ref, OnDevice):
            tests += _device_tests(value, value.ref)
        elif isinstance(value, ArrayValue):
            if isinstance(value.ref, (int, Inside)):
                tests.append(Test(("type", value.ref), np.ndarray))
            tests += [
                Test(("nd", value.ref), len(value.sizes)),
                Test(("dtype", value.ref), dtype_word(value.dtype)),
                Test(("flags", value.ref, ALIGNED), ALIGNED),
            ]
    return tests


def _device_tests(value: ArrayValue, ref: OnDevice) -> list[Test]:
    from ..cuda.exchange.dlpack_exchange import device_word, type_word

    return [
        Test(("type", ref), ref.exchange.kind),
        Test(("described", ref), 1),
        Test(("nd", ref), len(value.sizes)),
        Test(("dtype", ref), type_word(value.dtype)),
        Test(("device", ref), device_word(value.device)),
    ]


def _check_structure(spec: tuple) -> None:
    """Raise Refused unless results of this structure can be put together without Python."""
    if spec[0] in ("tuple", "list", "dict", "namedtuple"):
        for item in spec[2]:
            _check_structure(item)
    elif spec[0] not in ("leaf", "static"):
        raise Refused(f"a result is a {spec[0]}, which Python makes")
