"""What a caller must know to run a fusion function on a GPU: plain values.

A function is a sequence of steps: kernel launches, library products, and choices between two
sequences. Sizes are size expressions in text, over the size symbols and the names of run-time
strides (`stride_name`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Union

from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import evaluate
from ..abi import KernelABI

# One argument of a kernel, in order of its parameters:
#   ("input", k)                 pointer to the data of input k
#   ("output", k)                pointer to the data of output k
#   ("workspace", offset, dtype) pointer into the workspace, at a byte offset (size expression)
#   ("size", expression)         i64
#   ("stride", k, axis)          i64, in elements: of input k
#   ("scalar", k)                the Python number that is input k, i64 or f64
Argument = tuple


@dataclass(frozen=True)
class Condition:
    """Something to test before a launch.

    Attributes:
        kind: ``"aligned"``: the data of input ``subject`` starts at a multiple of ``number`` bytes;
            ``"divisible"``: the size ``subject`` is a multiple of ``number``;
            ``"below"``: the size ``subject`` is less than ``number``.
    """

    kind: str
    subject: int | str
    number: int


@dataclass(frozen=True)
class Launch:
    """One kernel launch; none is made where the grid has a size of 0.

    Attributes:
        kernel: name of the ``gpu.func``.
        grid, block: x, y and z, as size expressions.
        arguments: in order of the kernel's parameters.
        shared: bytes of dynamic shared memory.
    """

    kernel: str
    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    arguments: tuple[Argument, ...]
    shared: str = "0"


@dataclass(frozen=True)
class Matrix:
    """An operand of a library product.

    Attributes:
        argument: where its data starts, as an argument of a kernel.
        offset: elements to skip.
        dims: sizes, of rank 1 to 3 (a batch first).
        strides: in elements, one per axis.
    """

    argument: Argument
    offset: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]


@dataclass(frozen=True)
class LibraryProduct:
    """``output = left @ right``, added to what ``output`` holds if ``accumulate``.

    ``dtype`` is that of all three; with ``wide``, operands are halves and ``output`` is f32. Halves
    are summed up in f32, and rounded once.
    ``kind`` is ``"matmul"``, ``"batch_matmul"``, ``"matvec"``, ``"vecmat"`` or ``"dot"``.
    ``bias``: an epilogue of ``"matmul"`` and ``"batch_matmul"`` that do not accumulate: a vector
    without gaps, of the output's dtype, added to each row of what the library has summed up.
    """

    kind: str
    dtype: str
    left: Matrix
    right: Matrix
    output: Matrix
    accumulate: bool = False
    wide: bool = False
    bias: Matrix | None = None

    @property
    def output_dtype(self) -> str:
        return "f32" if self.wide else self.dtype

    @property
    def operands(self) -> tuple[Argument, ...]:
        """Where the operands begin, as a library that stores matrices by columns takes them: right
        and left change places; then the output, and the bias if there is one."""
        found = (self.right, self.left, self.output, self.bias)
        return tuple(matrix.argument for matrix in found if matrix is not None)


@dataclass(frozen=True)
class Choice:
    """``then`` if all conditions hold, else ``otherwise``; both may choose again."""

    conditions: tuple[Condition, ...]
    then: tuple[Launch | Choice, ...]
    otherwise: tuple[Launch | Choice, ...]


Step = Union[Launch, LibraryProduct, Choice]


@dataclass(frozen=True)
class LaunchPlan:
    """How to run one fusion function.

    Attributes:
        name: of the fusion function.
        abi: inputs, outputs, symbols, run-time strides and workspace, as for CPU kernels (the
            caller allocates outputs, C-contiguous, and the workspace, both 64-byte aligned).
        steps: in order, each complete before the next begins.
    """

    name: str
    abi: KernelABI
    steps: tuple[Step, ...]

    def launches(
        self, values: Mapping[str, int], aligned: Callable[[int, int], bool]
    ) -> Iterator[Launch | LibraryProduct]:
        """The steps to run, choices made, grids and blocks as numbers.

        Args:
            values: of the size symbols and of run-time strides by `stride_name`.
            aligned: whether the data of an input starts at a multiple of so many bytes.
        """
        waiting: list[Step] = list(reversed(self.steps))
        while waiting:
            step = waiting.pop()
            if isinstance(step, LibraryProduct):
                yield step
            elif isinstance(step, Choice):
                met = all(holds(c, values, aligned) for c in step.conditions)
                waiting += reversed(step.then if met else step.otherwise)
            else:
                grid = _sizes(step.grid, values)
                if "0" not in grid:
                    yield replace(step, grid=grid, block=_sizes(step.block, values))

    def conditions(self) -> Iterator[Condition]:
        """All that choices may test."""
        waiting: list[Step] = list(self.steps)
        while waiting:
            step = waiting.pop()
            if isinstance(step, Choice):
                yield from step.conditions
                waiting += (*step.then, *step.otherwise)


def _sizes(dims: tuple[str, str, str], values: Mapping[str, int]) -> tuple[str, str, str]:
    x, y, z = (str(evaluate(parse_dim(d), values)) for d in dims)
    return x, y, z


def holds(
    condition: Condition, values: Mapping[str, int], aligned: Callable[[int, int], bool]
) -> bool:
    """Whether a condition is met; arguments as of `LaunchPlan.launches`."""
    if condition.kind == "aligned":
        return aligned(int(condition.subject), condition.number)
    return size_holds(condition, evaluate(parse_dim(str(condition.subject)), values))


def size_holds(condition: Condition, size: int) -> bool:
    """Whether a condition on a size is met by this one."""
    return size < condition.number if condition.kind == "below" else size % condition.number == 0


def stride_name(number: int, axis: int) -> str:
    """The name of a run-time stride in size expressions."""
    return f"stride{number}_{axis}"
