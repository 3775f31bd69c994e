"""Launch plans: all that a caller needs to run a fusion function on a GPU, as plain values.

A plan is a sequence of steps: kernel launches, library products, and choices between two sequences.
Sizes are texts of size expressions over the size symbols and the names of run-time strides
(`stride_name`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Union

from ...dialect.dataclass import dataclass
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
    """A condition that is tested before a launch.

    Attributes:
        kind: ``"aligned"`` = the data of input ``subject`` starts at a multiple of ``number``
            bytes; ``"divisible"`` = the size ``subject`` is a multiple of ``number``; ``"below"`` =
            the size ``subject`` is less than ``number``.
        subject: number of an input, or a size expression.
        number: the number with which the subject is compared.
    """

    kind: str
    subject: int | str
    number: int


@dataclass(frozen=True)
class Launch:
    """One kernel launch; it is skipped if the grid has a size of 0.

    Attributes:
        kernel: name of the ``gpu.func``.
        grid: numbers of blocks along x, y and z, as size expressions.
        block: numbers of threads along x, y and z, as size expressions.
        arguments: the arguments, in order of the kernel's parameters.
        shared: bytes of dynamic shared memory, as a size expression.
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
        argument: the start of its data, in the form of a kernel's argument.
        offset: number of elements from there to the first element of the matrix.
        dims: sizes, of rank 1 to 3 (the batch comes first).
        strides: strides in elements, one per axis.
    """

    argument: Argument
    offset: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]


@dataclass(frozen=True)
class LibraryProduct:
    """``output = left @ right``.

    Attributes:
        kind: ``"matmul"``, ``"batch_matmul"``, ``"matvec"``, ``"vecmat"`` or ``"dot"``.
        dtype: dtype of the operands, and of the output unless ``wide``. Products of halves are
            added up in f32 and rounded once.
        left: the left operand.
        right: the right operand.
        output: the result.
        accumulate: True = add the product to the present contents of ``output``.
        wide: True = the operands are halves and the output is f32.
        bias: a contiguous vector of the output's dtype that is added to each row, or None; only for
            ``"matmul"`` and ``"batch_matmul"`` without ``accumulate``.
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
        """The starts of the operands in the order right, left, output, and bias if there is one.

        Right and left are exchanged, because the library stores matrices by columns.
        """
        matrices = (self.right, self.left, self.output, self.bias)
        return tuple(matrix.argument for matrix in matrices if matrix is not None)


@dataclass(frozen=True)
class Choice:
    """``then`` runs if all conditions hold, else ``otherwise``; both may contain choices."""

    conditions: tuple[Condition, ...]
    then: tuple[Launch | Choice, ...]
    otherwise: tuple[Launch | Choice, ...]


Step = Union[Launch, LibraryProduct, Choice]


@dataclass(frozen=True)
class LaunchPlan:
    """The plan by which one fusion function runs.

    Attributes:
        name: name of the fusion function.
        abi: inputs, outputs, symbols, run-time strides and workspace, as for CPU kernels. The
            caller allocates C-contiguous outputs and the workspace, both 64-byte aligned.
        steps: the steps, in order; each is complete before the next begins.
    """

    name: str
    abi: KernelABI
    steps: tuple[Step, ...]

    def launches(
        self, values: Mapping[str, int], aligned: Callable[[int, int], bool]
    ) -> Iterator[Launch | LibraryProduct]:
        """The steps to run for given sizes: choices are made, grids and blocks are numbers.

        Args:
            values: size symbol or `stride_name` of a run-time stride -> number.
            aligned: (input, bytes) -> True if the input's data starts at a multiple of ``bytes``.
        """
        waiting: list[Step] = list(reversed(self.steps))
        while waiting:
            step = waiting.pop()
            if isinstance(step, LibraryProduct):
                yield step
            elif isinstance(step, Choice):
                is_met = all(holds(c, values, aligned) for c in step.conditions)
                waiting += reversed(step.then if is_met else step.otherwise)
            else:
                grid = _sizes(step.grid, values)
                if "0" not in grid:
                    yield replace(step, grid=grid, block=_sizes(step.block, values))

    def conditions(self) -> Iterator[Condition]:
        """All conditions of all choices."""
        waiting: list[Step] = list(self.steps)
        while waiting:
            step = waiting.pop()
            if isinstance(step, Choice):
                yield from step.conditions
                waiting += (*step.then, *step.otherwise)


def _sizes(dims: tuple[str, str, str], values: Mapping[str, int]) -> tuple[str, str, str]:
    x, y, z = (str(evaluate(parse_dim(d), values)) for d in dims)
    return x, y, z


def holds(condition: Condition, values: Mapping[str, int], aligned: Callable[[int, int], bool]) -> bool:
    """True if a condition holds; `LaunchPlan.launches` explains the arguments."""
    if condition.kind == "aligned":
        return aligned(int(condition.subject), condition.number)
    return size_holds(condition, evaluate(parse_dim(str(condition.subject)), values))


def size_holds(condition: Condition, size: int) -> bool:
    """True if a size meets a condition of kind "below" or "divisible"."""
    return size < condition.number if condition.kind == "below" else size % condition.number == 0


def stride_name(number: int, axis: int) -> str:
    """The name of a run-time stride in size expressions."""
    return f"stride{number}_{axis}"
