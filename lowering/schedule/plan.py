"""Scheduling: a linalg function becomes nests and library products over buffers.

The steps, each with its module:

1. `read` turns operations into a node graph, and sizes into expressions.
2. `access` decides which operations are computed once, and which are recomputed at each use.
3. `groups` puts operations that share outer loops into groups, and `rows` merges groups.
4. `blocks` joins products whose results are needed row by row with what reads them.
5. `nests` lays out the loops, stages and temporaries of each group.
6. This module assigns buffers to outputs, and places in the workspace by liveness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError
from ...dialect.ir.size_algebra import sym_max
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ops.sizes import is_nonnegative
from ..abi import KernelABI, size_bindings
from . import index as ix
from .access import choose_anchors, library_readable, view_root
from .biases import take_in_biases
from .blocks import Blocks, form_blocks, share_window
from .channels import channels_innermost
from .chunks import Chunks, block_chunks, nest_chunks
from .columns import choose_rows, widen_tiles
from .graph import Body, Buffer, Compute, Graph, Product, Read, Reshape, Source, Tensor
from .groups import Grouper
from .halves import narrow_products
from .memory import element_bytes, is_contiguous, reshape_root
from .merges import merge_loops
from .nests import Nest, Scratch, build_nest
from .part_writes import write_parts
from .product_chunks import product_chunks
from .read import read_graph
from .rows import share_rows
from .scans import choose_scan_tiling
from .small import is_small
from .tiles import choose_tiling

ALIGNMENT = 64
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
    steps: list[Union[Nest, Product, Blocks]] = field(default_factory=list)
    offsets: dict[Buffer, Dim] = field(default_factory=dict)
    workspace: Dim = 0

    @property
    def library_calls(self) -> int:
        """Library products per run; a batch counts once."""
        parts = [p for s in self.steps for p in (s.parts if isinstance(s, Blocks) else [s])]
        return sum(isinstance(part, Product) and not is_small(part) for part in parts)

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
    function: Any, *, temporaries: Callable[[Nest], list[Any]] | None = None,
    accumulate: bool = True, read_constants: bool = True, one_row: int = 0, halves: bool = False,
    biases: bool = False, tiles: bool = False, blocks: bool = False, threads: bool = False,
    places: bool = False, windows: bool = False,
) -> Schedule:  # fmt: skip
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
        blocks: True = two products may run in blocks of rows, with what stands between them.
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
    result = Schedule(graph)
    lives = _assign_buffers(graph, grouper)
    stored = set(lives) | {t for op in _computes(graph) for t in op.outputs if t.buffer}
    for number, step in enumerate(grouper.steps):
        if isinstance(step, Product):
            step.chunks = product_chunks(step) if threads else None
            _add_temporaries([], step.chunks, lives, number)
            result.steps.append(step)
            continue
        if isinstance(step, Blocks):
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
    _plan_workspace(result, lives)
    return result


def _plan_blocks(step: Blocks, grouper: Grouper, stored: set[Tensor], threads: bool) -> None:
    if step.group is not None:
        step.nest = build_nest(step.group, grouper, stored | set(step.windowed))
        share_window(step, grouper)
    step.temporaries = [*step.windows, *([] if step.nest is None else _large_scratch(step.nest))]
    step.chunks = block_chunks(step) if threads else None


def _add_temporaries(
    own: list[Any], chunks: Chunks | None, lives: dict[Any, _Life], number: int
) -> None:
    """Give memory to the temporaries of a step, or to those of all its chunks."""
    for temporary in own if chunks is None else chunks.in_memory:
        dims = temporary.dims if chunks is None else chunks.dims(temporary)
        temporary.buffer = _workspace_buffer(temporary.element, dims, len(lives) + 1)
        lives[temporary] = _Life(number, number)


def _computes(graph: Graph) -> list[Compute]:
    return [op for op in graph.operations if isinstance(op, Compute)]


# --- outputs -----------------------------------------------------------------------------------


def _give_outputs_buffers(graph: Graph) -> None:
    """Make every result a computed tensor of its own, stored in the caller's output buffer."""
    taken: set[Tensor] = set()
    for number, tensor in enumerate(graph.outputs):
        root = reshape_root(tensor)
        if isinstance(root.producer, Source) or root in taken or root.producer is None:
            root = tensor = _copy(graph, tensor)
            graph.outputs[number] = tensor
        taken.add(root)
        root.buffer = Buffer("output", number, root.element, root.dims, ix.row_major(root.dims))


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
        f"copy{len(graph.operations)}", tensor.dims, (False,) * rank,
        [Read(tensor, tuple(ix.atom(k) for k in loops))], [None], [output], [loops], body,
        combiners=[None],
    )  # fmt: skip
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
        if isinstance(op, Reshape) and op.mapping is None:
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


@dataclass
class _Life:
    first: int
    last: int


def _assign_buffers(graph: Graph, grouper: Grouper) -> dict[Any, _Life]:
    """Assign buffers to tensors that later steps read; returns first and last step of each."""
    last: dict[Tensor, int] = {}
    for number, step in enumerate(grouper.steps):
        for tensor in grouper.reads(step):
            home = grouper.home.get(tensor)
            if home is not None and home is not step:
                last[tensor] = number
    lives: dict[Any, _Life] = {}  # by tensor, and later by temporary
    for number, step in enumerate(grouper.steps):
        apart = step.windowed if isinstance(step, Blocks) else []
        for tensor in [step.output] if isinstance(step, Product) else step.outputs:
            if tensor.buffer is not None or tensor in apart:
                continue
            if isinstance(step, Product) and step.init is not None:
                tensor.buffer = step.init.buffer
                lives[step.init].last = last.get(tensor, number)
                continue
            if tensor in last or isinstance(tensor.producer, Product) or tensor.required:
                lives[tensor] = _Life(number, last.get(tensor, number))
                tensor.buffer = _workspace_buffer(tensor.element, tensor.dims, len(lives))
    return lives


def _workspace_buffer(element: Any, dims: tuple[Dim, ...], serial: int) -> Buffer:
    return Buffer("workspace", serial, element, dims, ix.row_major(dims))


def _large_scratch(nest: Nest) -> list[Scratch]:
    """The temporaries of a nest that do not fit on the stack."""
    left = STACK_BYTES
    large = []
    for scratch in nest.scratch.values():
        bytes_ = ix.product(scratch.dims) * element_bytes(scratch.element)
        if isinstance(bytes_, int) and bytes_ <= left:
            left -= bytes_
        else:
            large.append(scratch)
    return large


# --- workspace ---------------------------------------------------------------------------------


def _plan_workspace(result: Schedule, lives: dict[Any, _Life]) -> None:
    """Assign offsets to workspace buffers; memory is reused after a buffer's last reader.

    Sizes are expressions. A free region is reused only if it is certainly large enough: both sizes
    are numbers, or both are the same expression.
    """
    regions: list[list[Any]] = []  # [bytes, step after which it is free, buffers]
    for owner, life in sorted(lives.items(), key=lambda item: item[1].first):
        buffer = owner.buffer
        if buffer.kind != "workspace":
            continue
        need = _aligned(ix.product(buffer.dims) * element_bytes(buffer.element))
        fitting = [r for r in regions if r[1] < life.first and _suffices(r[0], need)]
        region = min(fitting, key=lambda r: r[0] if isinstance(r[0], int) else 0, default=None)
        if region is None:
            grown = [r for r in regions if r[1] < life.first and isinstance(r[0], int)]
            if grown and isinstance(need, int):
                region = max(grown, key=lambda r: r[0])
                region[0] = need
            else:
                region = [need, 0, []]
                regions.append(region)
        region[1] = life.last
        region[2].append(buffer)
    offset: Dim = 0
    for size, _, buffers in regions:
        for buffer in buffers:
            result.offsets[buffer] = offset
        offset = offset + size
    if isinstance(offset, Sym) and offset.symbols & set(result.graph.opaque):
        raise LoweringError("a workspace size has no closed form over the size symbols")
    if isinstance(offset, Sym) and offset.symbols & set(result.graph.strides):
        raise LoweringError("a workspace size depends on run-time strides")
    result.workspace = offset


def _aligned(size: Dim) -> Dim:
    if not is_nonnegative(size):
        size = sym_max(size, 0)  # such a run is voided, but its buffers must still not overlap
    return ix.ceil_div(size, ALIGNMENT) * ALIGNMENT


def _suffices(have: Dim, need: Dim) -> bool:
    if isinstance(have, int) and isinstance(need, int):
        return have >= need
    return have == need
