"""Launch plans of GPU kernels as emitted code follows them: sizes instead of size expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from ....dialect.dataclass import dataclass
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import Dim
from ....lowering.abi import KernelABI
from ....lowering.gpu.abi import Condition, Launch, LibraryProduct, Step, size_holds, stride_name
from ...memory.placement import Refused, size_of

if TYPE_CHECKING:
    from ..nvidia.driver_api import Direct

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
    grid: tuple[Dim, ...]
    block: tuple[Dim, ...]
    shared: Dim
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

    conditions: tuple[tuple[str, Dim, int], ...]
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
    values: tuple[Dim, ...]


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

    def actions(self, symbols: Mapping[str, Dim], strides: Mapping[str, Dim]) -> tuple:
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
    def __init__(self, kernel: DeviceKernel, symbols: Mapping[str, Dim]) -> None:
        self._kernel, self._symbols = kernel, dict(symbols)

    def all(self, steps: Sequence[Step]) -> tuple[Action, ...]:
        return tuple(action for step in steps for action in self._actions(step))

    def _actions(self, step: Step) -> Iterator[Action]:
        """The actions of a step; of a choice that known sizes decide, only the chosen branch."""
        if isinstance(step, LibraryProduct):
            yield from self._multiply(step)
        elif isinstance(step, Launch):
            yield from self._start(step)
        else:
            conditions = [(c, self._subject(c)) for c in step.conditions]
            known = [_known(*c) for c in conditions]
            left = tuple(
                (c.kind, subject, c.number)
                for (c, subject), k in zip(conditions, known, strict=True)
                if k is None
            )
            if False in known or not left:
                yield from self.all(step.otherwise if False in known else step.then)
            else:
                yield Pick(left, self.all(step.then), self.all(step.otherwise))

    def _subject(self, condition: Condition) -> Dim:
        subject = condition.subject
        return int(subject) if condition.kind == "aligned" else self._size(str(subject))

    def _multiply(self, product: LibraryProduct) -> Iterator[Multiply]:
        if 0 not in map(self._size, product.output.dims):
            operands = tuple(map(self._argument, product.operands))
            start = self._kernel.starter(product)
            yield Multiply(start, operands, tuple(self._symbols.values()))

    def _start(self, launch: Launch) -> Iterator[Start]:
        grid = tuple(map(self._size, launch.grid))
        if 0 in grid:
            return
        if any(isinstance(size, int) and size > MOST_GRID for size in grid):
            raise Refused(f"a grid of {grid} blocks is more than a launch can have")
        shared = self._size(launch.shared)
        function = self._kernel.handle(launch.kernel, shared if isinstance(shared, int) else None)
        arguments = tuple(map(self._argument, launch.arguments))
        yield Start(function, grid, tuple(map(self._size, launch.block)), shared, arguments)

    def _argument(self, argument: tuple) -> tuple:
        if argument[0] in ("size", "workspace"):
            return argument[0], self._size(argument[1])
        if argument[0] == "stride":
            return "size", self._size(stride_name(argument[1], argument[2]))
        return argument[:2]

    def _size(self, text: str) -> Dim:
        return size_of(parse_dim(text), self._symbols)


def _known(condition: Condition, subject: Dim) -> bool | None:
    """The truth of a condition on constants; None for any other condition."""
    if condition.kind == "aligned" or not isinstance(subject, int):
        return None
    return size_holds(condition, subject)


def launches_of(actions: Sequence[Action]) -> int:
    """The most launches that a sequence may make."""
    return sum(
        max(launches_of(a.then), launches_of(a.otherwise))
        if isinstance(a, Pick)
        else isinstance(a, Start)
        for a in actions
    )
