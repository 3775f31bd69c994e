"""The description of one specialisation that runs without Python: its tests, kernel calls and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from ...dialect.ir.symbolic import Dim
from ...dialect.trees.pytree import LEAF
from ...lowering.abi import KernelABI, KernelArtifact
from ..memory.offsets import Refused, bytes_of
from .layout import ALIGNED, C_CONTIGUOUS, WRITEABLE
from .leaf_values import ArrayValue, MadeValue, Test, Value, array_of, tests_of
from .refs import Inside, Position, Ref

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..cuda.launching.device_plans import Action, DeviceKernel
    from ..exchange.host_tensors import TensorClass
    from .arguments import CallArguments


@dataclass(frozen=True, eq=False)
class HostKernel:
    """Machine code of a fusion function for the host; ``address``: its entry point."""

    artifact: KernelArtifact
    address: int
    device: ClassVar[str] = HOST

    @property
    def abi(self) -> KernelABI:
        """The calling convention of the kernel."""
        return self.artifact.abi


Kernel = Union[HostKernel, "DeviceKernel"]


@dataclass(frozen=True)
class KernelStep:
    """One kernel call.

    Attributes:
        kernel: a kernel of the host or of a device.
        operands: numbers of the graph's values that the kernel reads, in slot order.
        results: numbers of the values that it makes. A kernel that reports violations has one more
            output.
        guard: index of the guard whose timed hits include this call; None = no guard.
        workspace: bytes of workspace that the kernel needs.
        actions: launches and library calls of a device kernel; empty on the host.
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
        """Number of library products (BLAS calls) per kernel call."""
        if isinstance(self.kernel, HostKernel):
            return self.kernel.artifact.library_calls
        from ..cuda.launching.device_plans import Multiply

        return sum(isinstance(action, Multiply) for action in self.actions)


@dataclass(frozen=True, eq=False)
class HostStep:
    """One call of a function of a library.

    Attributes:
        function: the function; it returns a tuple.
        operands: numbers of the graph's values that it takes.
        results: numbers of the values that it gives.
        objects: what it takes before these: positions of arguments, or `Held` objects.
        undo: takes the tuple where the leaf leaves the call to Python behind the function, which Python
            would call once more; None = the function computes and does no more.
    """

    function: Callable[..., tuple]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    objects: tuple[Any, ...] = ()
    undo: Callable[[tuple], object] | None = None


@dataclass
class Noting:
    """A call that makes the results of a leaf nodes or arrays of the tape, or views, or writes some.

    Attributes:
        function: called with the objects at ``arguments``, and then with all results of kernels; it
            returns the results of the call, bare if there is one.
        arguments: the arguments and captured arrays that it is called with: a position, or a `Held` object.
        chosen: for each result of the call, which of those that ``function`` returns it is.
        count: how many ``function`` returns.
    """

    function: Any
    arguments: tuple[Any, ...]
    chosen: tuple[int, ...]
    count: int


@dataclass
class Leaf:
    """One specialisation.

    Attributes:
        arity: number of arguments that are passed by position.
        tests: conditions for this leaf; each test may rely on those before it. If one fails, the
            next leaf is tried.
        final: conditions on arrays that the leaf overwrites, tested after ``tests``. If one fails,
            the Python dispatcher serves the call.
        values: value number -> description of the graph's value.
        steps: kernel calls, in order.
        between: calls of libraries, and tests of what they have given, each with the number of
            kernel calls before it.
        outputs: numbers of the values that are returned.
        turned: value number of an output -> the order in which its axes are returned.
        numbers: value numbers of outputs without axes that are returned as Python numbers.
        structure: structure of the results, in the format of `TreeDef`.
        missed: for each outer specialisation, the arrays that its guard checks. A call reaches this
            leaf because these guards have failed.
        targets: value number of an output -> the argument into which it is written.
        donated: number of targets that are donated arguments.
        overwrites: whether targets are what the function writes to: they may be read before.
        remembered: weak reference to the plan; a call stores it in `last_executed.LAST.plan`.
        exchange: the DLPack functions of the library of all arrays; None on the host.
        tensors: the type of the tensors that results are in place of arrays; None = they are arrays.
        evaluated: number of ops per call that a Python plan evaluates; they are counted for a hit,
            although emitted code does not run them.
        noting: what makes results of the tape of those of kernels, or views of them, or writes them
            where the function writes; None = nothing does.
    """

    arity: int = 0
    tests: list[Test] = field(default_factory=list)
    final: list[Test] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    steps: list[KernelStep] = field(default_factory=list)
    between: list[tuple[int, HostStep | list[Test]]] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    turned: dict[int, tuple[int, ...]] = field(default_factory=dict)
    numbers: frozenset[int] = frozenset()
    structure: tuple = LEAF
    missed: tuple[tuple[ArrayValue, ...], ...] = ()
    targets: dict[int, ArrayValue] = field(default_factory=dict)
    donated: int = 0
    overwrites: bool = False
    remembered: Any = None
    exchange: Exchange | None = None
    tensors: TensorClass | None = None
    evaluated: int = 0
    noting: Noting | None = None

    @property
    def host_operands(self) -> list[int]:
        """The values that functions of libraries take."""
        return [operand for step in self._host_steps() for operand in step.operands]

    @property
    def host_results(self) -> list[int]:
        """The values that functions of libraries give."""
        return [result for step in self._host_steps() for result in step.results]

    def _host_steps(self) -> list[HostStep]:
        return [part for _, part in self.between if isinstance(part, HostStep)]

    @property
    def lent(self) -> list[Any]:
        """The positions and objects that Python functions are given."""
        taken = [position for step in self._host_steps() for position in step.objects]
        return [*taken, *(self.noting.arguments if self.noting else ())]

    @property
    def device(self) -> str:
        """The device on which the kernels run."""
        return self.steps[0].kernel.device if self.steps else HOST

    def finish(self, arguments: CallArguments, structure: tuple) -> None:
        """Add arguments and result structure."""
        self.arity, self.structure = arguments.arity, structure
        # Tests on which others rely come first, then cheap tests; the sort is stable.
        order = {"keywords": 0, "mode": 1, "modes": 1, "taken": 1, "opened": 2, "static": 3, "type": 3, "untaped": 3}
        order |= {"owned": 4, "noting": 4, "taped": 4, "noted": 4, "described": 5}
        order |= dict.fromkeys(("nd", "dtype", "flags", "device"), 6)
        tests = dict.fromkeys([*arguments.tests, *self.tests])
        self.tests = sorted(tests, key=lambda test: order.get(test.field[0], 7))

    def write_to(self, position: int, inputs: Sequence[Value]) -> None:
        """Write the only output into the argument at a position; raises Refused if impossible."""
        if self.structure != LEAF:
            raise Refused("into is given several arrays")
        self._check_repeats()
        self._aim(self.outputs[0], position, inputs)

    def donate(self, pairs: Sequence[tuple[int, int]], inputs: Sequence[Value]) -> None:
        """Write outputs into donated inputs, given as (output, input) of `PlanSteps.donations`.

        Raises Refused unless the last kernel writes them: after a donated input is overwritten, the
        Python dispatcher cannot repeat the call.
        """
        self._check_repeats()
        for output, k in pairs:
            value, target = self.outputs[output], inputs[k]
            if not isinstance(target, ArrayValue) or not isinstance(target.ref, (int, Inside)):
                raise Refused("what is donated is no array argument")
            if value not in self.steps[-1].results:
                raise Refused("a donated argument is overwritten before the last kernel")
            self._aim(value, target.ref, [v for n, v in enumerate(inputs) if n != k])
            self.final.append(Test(("view", target.ref), 0))
        self.donated = len(pairs)

    def _check_repeats(self) -> None:
        if self.between:
            raise Refused("a function of a library may fail when an argument is overwritten")

    def _aim(self, output: int, position: Position, others: Sequence[Value]) -> None:
        """Write an output into an argument.

        The tests in ``final`` then require that the argument has the output's type, is contiguous
        and writable, and overlaps no other argument.
        """
        result = self.values[output]
        if not isinstance(result, MadeValue):
            raise Refused("a number is written to an array")
        if not result.sizes:
            raise Refused("an array of rank 0 is written to")
        if output in self.turned:
            raise Refused("a result that does not lie in C order is written to an array")
        target = self.targets[output] = array_of(position, result.dtype, len(result.sizes))
        flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
        self.final += [*tests_of([target]), Test(("flags", position, flags), flags)]
        for have, want in zip(target.sizes, result.sizes, strict=True):
            same = Test(("same", have, want), 1)
            self.final.append(Test(("size", have), want) if isinstance(want, int) else same)
        nbytes = bytes_of(result.dtype.itemsize, target.sizes)
        for value in others:
            if isinstance(value, ArrayValue):
                there = (value.ref, len(value.sizes), value.dtype.itemsize)
                self.final.append(Test(("apart", position, nbytes, *there), 1))

    def checked(self) -> list[ArrayValue]:
        """The arrays that the guards of outer specialisations check."""
        return list(dict.fromkeys(value for missed in self.missed for value in missed))

    def strides(self) -> list[tuple[Ref, int]]:
        """The strides that kernels take, or that `note_misses` stores, as (array, axis)."""
        operands = [(self.values[s.operands[k]], a) for s in self.steps for k, a in s.abi.strides]
        checked_axes = [(v, axis) for v in self.checked() for axis in range(len(v.sizes))]
        strides = {(v.ref, a): None for v, a in (*operands, *checked_axes) if isinstance(v, ArrayValue)}
        return list(strides)

    def sizes(self, step: KernelStep) -> dict[str, Dim]:
        """The size that each size symbol of a kernel stands for."""

        def size(index: int, axis: int) -> Dim:
            value = self.values[step.operands[index]]
            assert isinstance(value, (ArrayValue, MadeValue))
            return value.sizes[axis]

        return step.abi.sizes(size)
