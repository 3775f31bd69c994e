"""Scheduling: a linalg function becomes nests and library products over buffers.

The steps, each with its module:

1. `read` turns operations into a node graph, and sizes into expressions.
2. `access` decides which operations are computed once, and which are recomputed at each use.
3. `groups` puts operations that share outer loops into groups, and `rows` merges groups.
4. `blocks` joins products whose results are needed row by row with what reads them, and `panels`
   those whose right operands are computed with what computes them.
5. `nests` lays out the loops, stages and temporaries of each group.
6. This module assigns buffers to outputs, and `workspace` gives temporaries places, by liveness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from ..abi import KernelABI, size_bindings
from . import affine as ix
from .access import choose_anchors, library_readable, view_root
from .biases import take_in_biases
from .block_steps import BlockStep
from .blocks import Blocks, form_blocks, share_window
from .channels import channels_innermost
from .chunks import Chunks, block_chunks, nest_chunks
from .columns import choose_rows, widen_tiles
from .graph import Body, Buffer, Compute, Graph, Product, Read, RowMajorReshape, Source, Tensor
from .groups import Grouper
from .halves import narrow_products
from .library_calls import adds_rows
from .memory import element_bytes, is_contiguous, reshape_root
from .merges import merge_loops
from .nests import Nest, Scratch, build_nest
from .panels import form_panels
from .part_writes import write_parts
from .product_chunks import product_chunks
from .read import read_graph
from .rows import share_rows
from .scans import choose_scan_tiling
from .small import is_small
from .tiles import choose_tiling
from .workspace import Life, place_buffers

STACK_BYTES = 64 * 1024  # largest size of all temporaries of one nest on the stack


@dataclass
class Schedule:
    """A scheduled function, ready to be emitted.

    Attributes:
        graph: the function.
        steps: nests, products, and blocks of both, in order.
        offsets: workspace buffer -> byte offset in the workspace.
        workspace: bytes of workspace.
    """

    graph: Graph
    steps: list[Union[Nest, Product, BlockStep]] = field(default_factory=list)
    offsets: dict[Buffer, Dim] = field(default_factory=dict)
    workspace: Dim = 0

    @property
    def library_calls(self) -> int:
        """Library products per run; a batch counts once."""
        parts = [p for s in self.steps for p in (s.parts if isinstance(s, BlockStep) else [s])]
        products = [part for part in parts if isinstance(part, Product)]
        return sum(not is_small(op) and not adds_rows(op) for op in products)

    @property
    def shared_steps(self) -> int:
        """Steps that several threads may share."""
        return sum(step.chunks is not None for step in self.steps)

    def abi(self, in_place: tuple[tuple[int, int], ...] = ()) -> KernelABI:
        """The ABI of the function, on any processor; `KernelABI` explains ``in_place``.

        Raises LoweringError for a size symbol that is the size of no argument.
        """
        graph = self.graph
        return KernelABI(
            inputs=tuple(graph.specs),
            outputs=tuple(graph.output_specs),
            symbols=size_bindings(graph.specs, list(graph.symbols)),
            strides=tuple(graph.strides.values()),
            workspace=str(self.workspace),
            in_place=in_place,
        )


def schedule(
    function: Any,
    *,
    temporaries: Callable[[Nest], list[Any]] | None = None,
    accumulate: bool = True,
    read_constants: bool = True,
    one_row: int = 0,
    halves: bool = False,
    biases: bool = False,
    tiles: bool = False,
    blocks: bool = False,
    threads: bool = False,
    places: bool = False,
    windows: bool = False,
) -> Schedule:
    """Schedule a ``func.func``.

    Args:
        function: the function, in the form of docs/cpu-lowering.md.
        temporaries: nest -> objects that need workspace while the nest runs. Each has ``element``
            and ``dims``, and its ``buffer`` is set. Default: scratch that is too large for the
            stack.
        accumulate: True = a nest may reduce over its outer loops, one iteration after the other.
        read_constants: True = library products can read constants.
        one_row: operations of at most this many elements may share a nest without a shared loop.
        halves: True = library products can take f16 and bf16.
        biases: True = library products can add a number per column of their result.
        tiles: True = nests may merge loops, and run those that cross rows of memory in tiles.
        blocks: True = two products may run in blocks of rows, with what stands between them, and one
            in blocks of columns, with what makes them and what reads its result.
        threads: True = several threads may share a step.
        places: True = additions at places that arrays name go through these places.
        windows: True = what is read through windows is known to be read at the same places, and
            small parts of arrays are written over these.

    Raises LoweringError for a function that cannot be scheduled.
    """
    graph = read_graph(function)
    if not windows:
        for op in _computes(graph):
            op.body.windows = ()
    if halves:
        narrow_products(graph)
    if biases:
        take_in_biases(graph)
    _give_outputs_buffers(graph)
    _copy_operands(graph, read_constants)
    if windows:
        write_parts(graph)
    choose_anchors(graph)
    grouper = Grouper(graph, accumulate, one_row, places)
    if accumulate:
        share_rows(grouper)
    if blocks:
        form_blocks(grouper)
        form_panels(grouper)
    result = Schedule(graph)
    lives = _assign_buffers(grouper)
    stored = set(lives) | {t for op in _computes(graph) for t in op.outputs if t.buffer}
    for number, step in enumerate(grouper.steps):
        if isinstance(step, Product):
            step.chunks = product_chunks(step) if threads else None
            _add_temporaries([], step.chunks, lives, number)
            result.steps.append(step)
            continue
        if isinstance(step, BlockStep):
            _plan_blocks(step, grouper, stored, threads)
            _add_temporaries(step.temporaries, step.chunks, lives, number)
            result.steps.append(step)
            continue
        whole = not any(op.partial for op in step.members)
        if tiles and whole:
            merge_loops(step, grouper)
        nest = build_nest(step, grouper, stored)
        if tiles and whole:
            nest.tiling = choose_tiling(nest) or choose_scan_tiling(nest)
            if nest.tiling is None:
                channels_innermost(nest, grouper)
            widen_tiles(nest)
        own = (temporaries or _large_scratch)(nest)
        nest.chunks = chunks = nest_chunks(nest, own) if threads and whole else None
        if tiles and whole:
            choose_rows(nest)
        _add_temporaries(own, chunks, lives, number)
        result.steps.append(nest)
    result.offsets, result.workspace = place_buffers(lives, graph)
    return result


def _plan_blocks(step: BlockStep, grouper: Grouper, stored: set[Tensor], threads: bool) -> None:
    for group in step.parts:
        if not isinstance(group, Product):
            step.nests[group] = build_nest(group, grouper, stored | set(step.windowed))
    if isinstance(step, Blocks):
        share_window(step, grouper)
    large = [scratch for nest in step.nests.values() for scratch in _large_scratch(nest)]
    step.temporaries = [*step.windows, *large]
    step.chunks = block_chunks(step) if threads else None


def _add_temporaries(own: list[Any], chunks: Chunks | None, lives: dict[Any, Life], number: int) -> None:
    """Give memory to the temporaries of a step, or to those of all its chunks."""
    for temporary in own if chunks is None else chunks.in_memory:
        dims = temporary.dims if chunks is None else chunks.dims(temporary)
        temporary.buffer = _workspace_buffer(temporary.element, dims, len(lives) + 1)
        lives[temporary] = Life(number, number)


def _computes(graph: Graph) -> list[Compute]:
    return [op for op in graph.operations if isinstance(op, Compute)]


# --- outputs -----------------------------------------------------------------------------------


def _give_outputs_buffers(graph: Graph) -> None:
    """Make every result a computed tensor of its own, stored in the caller's output buffer."""
    taken: set[Tensor] = set()
    for number, tensor in enumerate(graph.outputs):
        _reinterpret_product(graph, reshape_root(tensor))
        root = reshape_root(tensor)
        if isinstance(root.producer, Source) or root in taken or root.producer is None:
            root = tensor = _copy(graph, tensor)
            graph.outputs[number] = tensor
        taken.add(root)
        root.buffer = Buffer("output", number, root.element, root.dims, ix.row_major(root.dims))


def _reinterpret_product(graph: Graph, tensor: Tensor) -> None:
    """Let a view of a whole product, of more or fewer axes of size 1, be that product in memory."""
    op = tensor.producer
    if not isinstance(op, Compute) or op.body.view is None or len(op.outputs) != 1:
        return
    read = op.reads[op.body.view]
    index = {loop: ix.atom(axis) for axis, loop in enumerate(op.axes[0])}
    mapping = ix.substituted(read.index, index.get)
    if not isinstance(reshape_root(read.tensor).producer, Product) or len(mapping) != read.tensor.rank:
        return
    strides = zip(tensor.dims, ix.row_major(tensor.dims), strict=True)
    offset = ix.linear(mapping, ix.row_major(read.tensor.dims))
    same = all(offset.coefficient(axis) == s for axis, (d, s) in enumerate(strides) if d != 1)
    if same and not ix.has_digits(offset) and offset.const == 0 and _count(tensor) == _count(read.tensor):
        place = graph.operations.index(op)
        tensor.producer = graph.operations[place] = RowMajorReshape(read.tensor, tensor, mapping, op.name)
        tensor.number = 0


def _count(tensor: Tensor) -> Dim:
    return ix.product(tensor.dims)


def _copy(graph: Graph, tensor: Tensor, before: Any = None) -> Tensor:
    """Add an operation that copies a tensor."""
    rank = tensor.rank
    output = Tensor(tensor.dims, tensor.element)
    loops = tuple(range(rank))
    body = Body(view=0, used=frozenset([0]))
    if tensor.producer is None:
        # The tensor was never written, so any contents will do and nothing is read.
        body = Body(view=None, used=frozenset())
    output.producer = Compute(
        f"copy{len(graph.operations)}",
        tensor.dims,
        (False,) * rank,
        [Read(tensor, tuple(ix.atom(k) for k in loops))],
        [None],
        [output],
        [loops],
        body,
        combiners=[None],
    )
    where = graph.operations.index(before) if before is not None else len(graph.operations)
    graph.operations.insert(where, output.producer)
    return output


def _copy_operands(graph: Graph, read_constants: bool) -> None:
    """Copy arguments that lack the layout which a reinterpretation or a product needs."""

    def readable(tensor: Tensor, op: Product) -> Tensor:
        is_constant = not read_constants and _root_kind(tensor) == "constant"
        if is_constant or _is_unreadable(tensor):
            tensor = _copy(graph, tensor, before=op)
            tensor.required = is_constant  # else the copy would be treated as a view
        return tensor

    for op in list(graph.operations):
        if isinstance(op, RowMajorReshape) and op.mapping is None:
            root = op.source
            if isinstance(root.producer, Source) and not is_contiguous(root):
                op.source = _copy(graph, root, before=op)
        elif isinstance(op, Product):
            op.left, op.right = readable(op.left, op), readable(op.right, op)
            if op.bias is not None:
                op.bias = readable(op.bias, op)
            if op.init is not None:
                # The product accumulates in place: the copy and the result share a buffer.
                op.init = _copy(graph, op.init, before=op)
                op.init.buffer, op.init.required = op.output.buffer, True


def _is_unreadable(tensor: Tensor) -> bool:
    """True for an argument whose strides the product library does not support."""
    if not isinstance(tensor.producer, Source):
        return False
    return not library_readable(tensor, ix.over_axes(tensor.producer.buffer.strides))


def _root_kind(tensor: Tensor) -> str | None:
    """The buffer kind of the argument or constant of which a tensor is a view; else None."""
    producer = view_root(reshape_root(tensor))[0].producer
    return producer.buffer.kind if isinstance(producer, Source) else None


# --- buffers -----------------------------------------------------------------------------------


def _assign_buffers(grouper: Grouper) -> dict[Any, Life]:
    """Assign buffers to tensors that later steps read; returns first and last step of each."""
    last: dict[Tensor, int] = {}
    for number, step in enumerate(grouper.steps):
        for tensor in grouper.reads(step):
            home = grouper.home.get(tensor)
            if home is not None and home is not step:
                last[tensor] = number
    lives: dict[Any, Life] = {}  # by tensor, and later by temporary
    for number, step in enumerate(grouper.steps):
        apart = step.windowed if isinstance(step, BlockStep) else []
        for tensor in [step.output] if isinstance(step, Product) else step.outputs:
            if tensor.buffer is not None or tensor in apart:
                continue
            if isinstance(step, Product) and step.init is not None:
                tensor.buffer = step.init.buffer
                lives[step.init].last = last.get(tensor, number)
                continue
            if tensor in last or isinstance(tensor.producer, Product) or tensor.required:
                lives[tensor] = Life(number, last.get(tensor, number))
                tensor.buffer = _workspace_buffer(tensor.element, tensor.dims, len(lives))
    return lives


def _workspace_buffer(element: Any, dims: tuple[Dim, ...], serial: int) -> Buffer:
    return Buffer("workspace", serial, element, dims, ix.row_major(dims))


def _large_scratch(nest: Nest) -> list[Scratch]:
    """The temporaries of a nest that do not fit on the stack."""
    space = STACK_BYTES
    large = []
    for scratch in nest.scratch.values():
        bytes_ = ix.product(scratch.dims) * element_bytes(scratch.element)
        if isinstance(bytes_, int) and bytes_ <= space:
            space -= bytes_
        else:
            large.append(scratch)
    return large
