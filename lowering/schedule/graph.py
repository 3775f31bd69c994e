"""The scheduler's node graph: tensors and what produces them, read from a linalg function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from ..abi import TensorSpec
from .affine import AffineIndex, atom, constant, substituted

if TYPE_CHECKING:
    from .chunks import Chunks

Element = Any  # ir.Type of one stored element
Producer = Union["Source", "Compute", "RowMajorReshape", "Product"]


@dataclass(frozen=True)
class WindowLayout:
    """The place of one block of a tensor in memory.

    Attributes:
        strides: of the axes of the tensor, in elements; 0 along those of the batch.
        rows: the loops of nests over the rows that are divided into blocks.
    """

    strides: tuple[Dim, ...]
    rows: frozenset[Any]


@dataclass(eq=False)
class Buffer:
    """A region of memory.

    Attributes:
        kind: ``"input"``, ``"output"``, ``"workspace"`` or ``"constant"``.
        index: number of the argument or result (inputs, outputs), else a serial number.
        element: storage type of an element.
        dims: sizes of the axes.
        strides: strides of the axes in elements; those of inputs may be run-time symbols.
        value: the dense attribute of a constant.
        scalar: True for an input whose slot contains the value itself.
        windowed: True if the buffer holds the rows of one block (`schedule.block_steps`).
        layout: where it holds them; None = rows of a matrix follow each other.
    """

    kind: str
    index: int
    element: Element
    dims: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    value: Any = None
    scalar: bool = False
    windowed: bool = False
    layout: WindowLayout | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}{self.index}"

    def __repr__(self) -> str:
        return self.name


@dataclass(eq=False)
class Tensor:
    """One value of the function.

    Attributes:
        dims: sizes of the axes.
        element: storage type of an element.
        producer: the operation that computes the tensor.
        number: index of the tensor among the producer's results.
        buffer: the buffer that holds the whole tensor; None = not decided, or not stored.
        required: True if the tensor must be stored, whatever is fused.
        digits: True if it is made, however far back, of what is read at quotients of indices.
    """

    dims: tuple[Dim, ...]
    element: Element
    producer: Producer = None  # type: ignore[assignment]
    number: int = 0
    buffer: Buffer | None = None
    required: bool = False
    digits: bool = False

    @property
    def rank(self) -> int:
        return len(self.dims)

    def __repr__(self) -> str:
        return f"Tensor({self.producer!r}.{self.number}: {'x'.join(map(str, self.dims))})"


@dataclass(eq=False)
class Source:
    """A tensor that exists before the kernel runs: an argument or a constant."""

    buffer: Buffer


@dataclass(eq=False)
class Read:
    """One operand of a generic: the tensor and, per axis, the index over the loops."""

    tensor: Tensor
    index: tuple[AffineIndex, ...]

    @property
    def is_elementwise(self) -> bool:
        """True if the index of axis k is loop k, or 0 for an axis of size 1."""
        return all(
            i == atom(k) or (d == 1 and i == constant(0))
            for k, (i, d) in enumerate(zip(self.index, self.tensor.dims, strict=True))
        )


@dataclass
class Body:
    """Facts about the region of a generic.

    Attributes:
        block: the region's block; None for a fill.
        extracts: tensors read by ``tensor.extract`` in the region or in captured scalars.
        windows: reads of those that are only read through windows, with indices over the loops: of
            a part of the loops, outside of which the indices may be off the tensor's axes, and
            what is read is not used.
        used: numbers of the block arguments that the region uses.
        direct: numbers of the used arguments that every iteration reads, in the order of their
            first use; the other used arguments are only read in branches.
        loops: loops whose index the region reads.
        cost: rough cost of one iteration, in cycles of vector code.
        view: number of the input that is yielded unchanged; None = no such input.
        fill: the scalar that a fill stores; None = the operation is no fill.
    """

    block: Any = None
    extracts: tuple[Tensor, ...] = ()
    windows: tuple[tuple[Tensor, tuple[AffineIndex, ...]], ...] = ()
    used: frozenset[int] = frozenset()
    direct: tuple[int, ...] = ()
    loops: frozenset[int] = frozenset()
    cost: int = 0
    view: int | None = None
    fill: Any = None


@dataclass(eq=False)
class Compute:
    """A `linalg.generic` or fill.

    Attributes:
        name: the name in messages and dumps.
        extents: sizes of the loops.
        reduction: per loop, True if the operation reduces over it.
        reads: the inputs, with indices over loop numbers.
        inits: per output, the tensor of its initial values, which reductions read; or None.
        outputs: the results.
        axes: ``axes[o][k]`` is the loop of axis k of output o.
        body: facts about the region.
        combiners: per output, how a value is folded into the accumulator; None = in no known way.
        is_scan: True if output 0 contains the running values.
        extremum: for a reduction to an extremum (output 0) and its first index (output 1), the
            operation that makes the extremum of two elements, such as ``"arith.maximumf"``.
        placed: loops of a reduction to places that inputs name: an iteration in which input k
            differs from the index of loop ``placed[k]``, for some k, changes nothing.
        part: (loop, first, size): elsewhere, the result is the first input.
        partial: True if only that part is computed: the result is in the memory of the first input.
        anchor: True if the operation is computed in a place of its own; False = it is inlined into
            its consumers.
        cost: cost of the body and of the operations that are inlined into it, as in `Body`.
        location: source location, for diagnostics.
    """

    name: str
    extents: tuple[Dim, ...]
    reduction: tuple[bool, ...]
    reads: list[Read]
    inits: list[Tensor | None]
    outputs: list[Tensor]
    axes: list[tuple[int, ...]]
    body: Body
    combiners: list[Combiner | None] = field(default_factory=list)
    is_scan: bool = False
    extremum: str | None = None
    placed: tuple[int, ...] = ()
    part: tuple[tuple[int, int, int], ...] = ()
    partial: bool = False
    anchor: bool = False
    cost: int = 0
    location: Any = None

    @property
    def is_reduction(self) -> bool:
        return any(self.reduction)

    @property
    def loops(self) -> range:
        return range(len(self.extents))

    def loop_values(self, number: int, index: Sequence[AffineIndex | None]) -> list[AffineIndex | None]:
        """Per loop, its index if output ``number`` is at ``index``; None = not determined."""
        values: list[AffineIndex | None] = [None] * len(self.extents)
        for axis, loop in enumerate(self.axes[number]):
            values[loop] = index[axis]
        return values

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Combiner:
    """A reduction whose body is ``accumulator = op(accumulator, term)``.

    Attributes:
        op: operation name, such as ``"arith.addf"``.
        ordered: True if the order of evaluation must be kept.
    """

    op: str
    ordered: bool

    @property
    def is_float_sum(self) -> bool:
        return self.op == "arith.addf"


@dataclass(eq=False)
class RowMajorReshape:
    """A row-major reinterpretation.

    Attributes:
        source: the tensor that is reinterpreted.
        output: the result.
        mapping: per axis of the source, its index over the axes of the result; None if some source
            axis is no combination of result axes. Then the source has to be in memory.
    """

    source: Tensor
    output: Tensor
    mapping: tuple[AffineIndex, ...] | None
    name: str = "reshape"

    def __repr__(self) -> str:
        return self.name


@dataclass(eq=False)
class Product:
    """A library product: ``output = left @ right`` (accumulated onto ``init`` unless zero).

    Attributes:
        kind: ``"matmul"``, ``"batch_matmul"``, ``"matvec"``, ``"vecmat"`` or ``"dot"``.
        left: the left operand.
        right: the right operand.
        init: the tensor to which the product is added; None = zero.
        output: the result.
        halves: ``"f16"`` or ``"bf16"`` if the operands have that dtype. The output is then f32, or
            rounded to that dtype.
        bias: a vector that is added to each row, or None.
        left_view: the stored tensor that is read for ``left``, and the offset over its axes.
        right_view: the same for ``right``.
        bias_view: the same for ``bias``.
        chunks: how threads share the product; None = it runs on one.
    """

    kind: str
    left: Tensor
    right: Tensor
    init: Tensor | None
    output: Tensor
    name: str = "product"
    location: Any = None
    halves: str | None = None
    bias: Tensor | None = None
    left_view: tuple[Tensor, AffineIndex] = None  # type: ignore[assignment]
    right_view: tuple[Tensor, AffineIndex] = None  # type: ignore[assignment]
    bias_view: tuple[Tensor, AffineIndex] | None = None
    chunks: Chunks | None = None

    @property
    def read_through_views(self) -> list[Tensor]:
        """The stored tensors of which the operands and the bias are views."""
        views = (self.left_view, self.right_view, self.bias_view)
        return [view[0] for view in views if view is not None]

    def __repr__(self) -> str:
        return self.name


@dataclass
class Graph:
    """One function.

    Attributes:
        name: symbol name of the function.
        inputs: the tensor arguments.
        specs: the description of each tensor argument.
        symbols: size symbol -> argument value, in argument order.
        strides: name of a run-time stride -> (input, axis).
        operations: the live operations, in order.
        outputs: the results.
        output_specs: the description of each result.
        opaque: names of sizes without a closed form -> the SSA values that compute them.
        values: SSA value -> tensor.
        known_size: integer SSA value outside of regions -> size expression, or None.
    """

    name: str
    inputs: list[Tensor]
    specs: list[TensorSpec]
    symbols: dict[str, Any]
    strides: dict[str, tuple[int, int]]
    operations: list[Compute | RowMajorReshape | Product]
    outputs: list[Tensor]
    output_specs: list[TensorSpec]
    opaque: dict[str, Any]
    values: dict[Any, Tensor]
    known_size: Callable[[Any], Dim | None]

    def uses(self) -> dict[Tensor, list[Any]]:
        """Tensor -> operations that read it (``None`` stands for the function's results)."""
        uses: dict[Tensor, list[Any]] = {}
        for op in self.operations:
            for tensor in operands(op):
                uses.setdefault(tensor, []).append(op)
        for tensor in self.outputs:
            uses.setdefault(tensor, []).append(None)
        return uses


def definition(value: Any) -> Any:
    """The operation that defines an SSA value; None for block arguments."""
    owner = value.owner
    return getattr(owner, "operation", None)


def operands(op: Compute | RowMajorReshape | Product) -> list[Tensor]:
    """Tensors that an operation reads, with repetitions."""
    if isinstance(op, RowMajorReshape):
        return [op.source]
    if isinstance(op, Product):
        return [t for t in (op.left, op.right, op.init, op.bias) if t is not None]
    reads = [r.tensor for k, r in enumerate(op.reads) if k in op.body.used]
    return [*reads, *(t for t in op.inits if t is not None), *op.body.extracts]


def viewed(tensor: Tensor, index: tuple[AffineIndex, ...]) -> tuple[Tensor, tuple[AffineIndex, ...]]:
    """The same element, without the reinterpretations that have a mapping."""
    producer = tensor.producer
    while isinstance(producer, RowMajorReshape) and producer.mapping is not None and not producer.source.required:
        tensor, index = producer.source, substituted(producer.mapping, index.__getitem__)
        producer = tensor.producer
    return tensor, index


def direct_reads(op: Compute, loops: Sequence[AffineIndex]) -> Iterator[tuple[Tensor, tuple[AffineIndex, ...]]]:
    """The elements that the iteration at ``loops`` reads in any case, without those in branches."""
    body = op.body
    numbers = body.direct if body.view is None else (body.view,)
    for number in numbers:
        yield read_at(op, number, loops)


def read_at(op: Compute, number: int, loops: Sequence[AffineIndex]) -> tuple[Tensor, tuple[AffineIndex, ...]]:
    """The element that one iteration reads of input ``number``.

    Numbers after those of the inputs stand for the initial values of the outputs.
    """
    if number >= len(op.reads):
        output = number - len(op.reads)
        init = op.inits[output]
        assert init is not None
        return init, tuple(loops[k] for k in op.axes[output])
    read = op.reads[number]
    return read.tensor, substituted(read.index, loops.__getitem__)


def results(op: Compute | RowMajorReshape | Product) -> list[Tensor]:
    """Tensors that an operation defines."""
    return op.outputs if isinstance(op, Compute) else [op.output]
