"""Launch plans of GPU kernels for emitted code: sizes of arguments in place of size symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from ....dialect.dataclass import dataclass
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import Dim
from ....lowering.abi import KernelABI
from ....lowering.gpu.launch_plan import Condition, Launch, LibraryProduct, Step, size_holds, stride_name
from ...memory.offsets import Refused, size_of

if TYPE_CHECKING:
    from ..nvidia.driver_api import Direct

MOST_GRID = 2**31 - 1
# The most launches of one fusion function that emitted code makes one by one. More are left to
# Python, which replays a CUDA graph: that pays only for many, because updating the arguments of a
# graph for a call costs the host some tens of microseconds.
MOST_LAUNCHES = 8


@dataclass(frozen=True)
class Start:
    """One kernel launch; it is skipped if the grid has a size of 0.

    Attributes:
        function: the driver's handle of the kernel.
        grid, block, shared: as in `lowering.gpu.launch_plan.Launch`.
        arguments: the arguments, in order of the kernel's parameters: sizes as ``("size", size)``,
            places in the workspace as ``("workspace", size)``, the rest as in `lowering.gpu.launch_plan`.
    """

    function: int
    grid: tuple[Dim, ...]
    block: tuple[Dim, ...]
    shared: Dim
    arguments: tuple[tuple, ...]


@dataclass(frozen=True)
class LaunchChoice:
    """A choice between two sequences of actions.

    Attributes:
        conditions: (kind, subject, number) as in `lowering.gpu.launch_plan.Condition`; the subject is a
            size, or the number of an input.
        then: the actions if all conditions hold.
        otherwise: the actions if one does not hold.
    """

    conditions: tuple[tuple[str, Dim, int], ...]
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]


@dataclass(frozen=True, eq=False)
class Multiply:
    """One library product, which a Python function starts.

    Attributes:
        start: the function, see ``starter`` of `DeviceKernel`.
        operands: the operands, in the form of `Start.arguments`.
        values: the values of size symbols and run-time strides.
    """

    start: Callable[..., None]
    operands: tuple[tuple, ...]
    values: tuple[Dim, ...]


Action = Union[Start, LaunchChoice, Multiply]


@dataclass(frozen=True, eq=False)
class DeviceKernel:
    """The kernel of a fusion function on a device, for emitted code.

    Attributes:
        abi: the function's ABI.
        steps: the steps of its launch plan.
        device: the device's name, such as ``"cuda:0"``.
        handle: (name of a GPU kernel, bytes of dynamic shared memory) -> the driver's handle of the
            kernel, which may then use so many bytes; None = as many as the device has.
        direct: functions of the driver.
        starter: library product -> function that starts it; its arguments are the stream, the
            addresses of the operands, and the values of size symbols and run-time strides.
    """

    abi: KernelABI
    steps: tuple[Step, ...]
    device: str
    handle: Callable[[str, int | None], int]
    direct: Direct
    starter: Callable[[LibraryProduct], Callable[..., None]]

    def actions(self, symbols: Mapping[str, Dim], strides: Mapping[str, Dim]) -> tuple:
        """The actions of the launch plan.

        Args:
            symbols: size symbol -> the size that it stands for.
            strides: name of a run-time stride -> the stride that it stands for, in elements.

        Raises Refused for a launch plan that emitted code leaves to Python.
        """
        actions = _Actions(self, {**symbols, **strides}).all(self.steps)
        if launches_of(actions) > MOST_LAUNCHES:
            raise Refused(f"a call launches more than {MOST_LAUNCHES} kernels: they are a graph")
        return actions

    def strides(self) -> dict[str, tuple[int, int]]:
        """Name of each run-time stride -> the number of the input, and the axis."""
        return {stride_name(k, axis): (k, axis) for k, axis in self.abi.strides}


class _Actions:
    def __init__(self, kernel: DeviceKernel, symbols: Mapping[str, Dim]) -> None:
        self._kernel, self._symbols = kernel, dict(symbols)

    def all(self, steps: Sequence[Step]) -> tuple[Action, ...]:
        return tuple(action for step in steps for action in self._actions(step))

    def _actions(self, step: Step) -> Iterator[Action]:
        """The actions of a step; if known sizes decide a choice, those of the chosen side alone."""
        if isinstance(step, LibraryProduct):
            yield from self._multiply(step)
        elif isinstance(step, Launch):
            yield from self._start(step)
        else:
            conditions = [(c, self._subject(c)) for c in step.conditions]
            truths = [_known(*c) for c in conditions]
            remaining = tuple(
                (c.kind, subject, c.number) for (c, subject), k in zip(conditions, truths, strict=True) if k is None
            )
            if False in truths or not remaining:
                yield from self.all(step.otherwise if False in truths else step.then)
            else:
                yield LaunchChoice(remaining, self.all(step.then), self.all(step.otherwise))

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
        max(launches_of(a.then), launches_of(a.otherwise)) if isinstance(a, LaunchChoice) else isinstance(a, Start)
        for a in actions
    )
