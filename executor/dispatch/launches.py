"""Launch plans of GPU kernels as emitted code follows them: sizes instead of size expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ...dialect.symbolic import parse_dim
from ...lowering.abi import KernelABI
from ...lowering.gpu.abi import Choice, Condition, Launch, LibraryProduct, Step, stride_name
from ..memory_plan import Refused, Size, size_of

if TYPE_CHECKING:
    from ..cuda.driver import Direct

MOST_GRID = 2**31 - 1
# Launches of one call up to which each is made by itself; more are a CUDA graph's, which Python
# keeps: written anew for every call, it costs the host some tens of microseconds.
MOST_LAUNCHES = 8


@dataclass(frozen=True)
class Start:
    """One kernel launch; none is made where the grid has a size of 0.

    Attributes:
        function: the driver's handle.
        grid, block, shared: as of `lowering.gpu.abi.Launch`.
        arguments: in order of the kernel's parameters; sizes as ``("size", size)``, places in the
            workspace as ``("workspace", size)``, the rest as in `lowering.gpu.abi`.
    """

    function: int
    grid: tuple[Size, ...]
    block: tuple[Size, ...]
    shared: Size
    arguments: tuple[tuple, ...]


@dataclass(frozen=True)
class Pick:
    """One sequence or the other.

    Attributes:
        conditions: (kind, subject, number) as of `lowering.gpu.abi.Condition`; the subject is a
            size, or the number of an input.
        then: if all of them hold.
        otherwise: if not.
    """

    conditions: tuple[tuple[str, Size, int], ...]
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]


@dataclass(frozen=True, eq=False)
class Multiply:
    """One product of the library, which Python starts.

    Attributes:
        start: see `DeviceKernel`.
        operands: as `Start.arguments`.
        values: of size symbols and run-time strides.
    """

    start: Callable[..., None]
    operands: tuple[tuple, ...]
    values: tuple[Size, ...]


Action = Union[Start, Pick, Multiply]


@dataclass(frozen=True, eq=False)
class DeviceKernel:
    """What runs a fusion function on a device.

    Attributes:
        abi: of the function.
        steps: of its launch plan.
        device: such as ``"cuda:0"``.
        handle: (kernel, bytes of dynamic shared memory or None) -> the driver's handle of a kernel
            that may have so much, or as much as there is.
        direct: functions of the driver.
        starter: product -> what starts it, given the stream, where its operands begin, and the
            values of size symbols and run-time strides.
    """

    abi: KernelABI
    steps: tuple[Step, ...]
    device: str
    handle: Callable[[str, int | None], int]
    direct: Direct
    starter: Callable[[LibraryProduct], Callable[..., None]]

    def actions(self, symbols: Mapping[str, Size], strides: Mapping[str, Size]) -> tuple:
        """What is to be done, given what size symbols and run-time strides stand for.

        Raises Refused for what emitted code leaves to Python.
        """
        found = _Actions(self, {**symbols, **strides}).all(self.steps)
        if launches_of(found) > MOST_LAUNCHES:
            raise Refused(f"a call launches more than {MOST_LAUNCHES} kernels: they are a graph")
        return found

    def strides(self) -> dict[str, tuple[int, int]]:
        """Per name of a run-time stride, the input and the axis."""
        return {stride_name(k, axis): (k, axis) for k, axis in self.abi.strides}


class _Actions:
    def __init__(self, kernel: DeviceKernel, symbols: Mapping[str, Size]) -> None:
        self._kernel, self._symbols = kernel, dict(symbols)

    def all(self, steps: Sequence[Any]) -> tuple[Action, ...]:
        found = (self._action(step) for step in steps)
        return tuple(action for action in found if action is not None)

    def _action(self, step: Step) -> Action | None:
        if isinstance(step, LibraryProduct):
            return self._multiply(step)
        if isinstance(step, Launch):
            return self._start(step)
        conditions = tuple(map(self._condition, step.conditions))
        known = [_known(c) for c in conditions]
        if False in known:
            return self._sequence(step.otherwise)
        left = tuple(c for c, k in zip(conditions, known, strict=True) if k is None)
        if not left:
            return self._sequence(step.then)
        return Pick(left, self.all(step.then), self.all(step.otherwise))

    def _sequence(self, steps: Sequence[Launch | Choice]) -> Pick:
        """What a choice that is no choice does."""
        return Pick((), self.all(steps), ())

    def _condition(self, condition: Condition) -> tuple[str, Size, int]:
        subject = condition.subject
        found = int(subject) if condition.kind == "aligned" else self._size(str(subject))
        return condition.kind, found, condition.number

    def _multiply(self, product: LibraryProduct) -> Multiply | None:
        if 0 in map(self._size, product.output.dims):
            return None
        found = (product.right, product.left, product.output, product.bias)  # as `Gemm` has them
        operands = tuple(self._argument(m.argument) for m in found if m is not None)
        return Multiply(self._kernel.starter(product), operands, tuple(self._symbols.values()))

    def _start(self, launch: Launch) -> Start | None:
        grid = tuple(map(self._size, launch.grid))
        if 0 in grid:
            return None
        if any(isinstance(size, int) and size > MOST_GRID for size in grid):
            raise Refused(f"a grid of {grid} blocks is more than a launch can have")
        shared = self._size(launch.shared)
        function = self._kernel.handle(launch.kernel, shared if isinstance(shared, int) else None)
        arguments = tuple(map(self._argument, launch.arguments))
        return Start(function, grid, tuple(map(self._size, launch.block)), shared, arguments)

    def _argument(self, argument: tuple) -> tuple:
        if argument[0] in ("size", "workspace"):
            return argument[0], self._size(argument[1])
        if argument[0] == "stride":
            return "size", self._size(stride_name(argument[1], argument[2]))
        return argument[:2]

    def _size(self, text: str) -> Size:
        return size_of(parse_dim(text), self._symbols)


def _known(condition: tuple[str, Size, int]) -> bool | None:
    """What a condition of constants comes to; None for any other."""
    kind, subject, number = condition
    if kind == "aligned" or not isinstance(subject, int):
        return None
    return subject < number if kind == "below" else subject % number == 0


def launches_of(actions: Sequence[Action]) -> int:
    """The most launches that a sequence may make."""
    return sum(
        max(launches_of(a.then), launches_of(a.otherwise))
        if isinstance(a, Pick)
        else isinstance(a, Start)
        for a in actions
    )
