"""Reading a linalg function into the scheduler's node graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.size_algebra import parse_dim, without_remainders
from ...dialect.ir.symbolic import Dim, symbol
from ..abi import CONTIGUOUS, TensorSpec
from ..linalg.element import PART
from . import affine as ix
from .body import SCALAR, read_body, read_view
from .graph import (
    Body,
    Buffer,
    Compute,
    Graph,
    Product,
    Read,
    RowMajorReshape,
    Source,
    Tensor,
    definition,
    operands,
    results,
)
from .index_maps import affine, extents, output_loop, reshape_mapping, within
from .size_expressions import SizeReader

PRODUCTS = ("matmul", "batch_matmul", "matvec", "vecmat", "dot")
_SIGNLESS = {"i1": "bool"}


def read_graph(function: ir.Operation) -> Graph:
    """The node graph of a ``func.func`` in the form of `docs/cpu-lowering.md`.

    Raises LoweringError for operations and maps outside that form.
    """
    return _Reader(function).graph


class _Reader:
    def __init__(self, function: ir.Operation) -> None:
        self.function = function
        self.block = function.regions[0].blocks[0]
        self.tensors: dict[ir.Value, Tensor] = {}
        self.sizes = SizeReader(self.block)
        self.operations: list[Compute | RowMajorReshape | Product] = []
        self.strides: dict[str, tuple[int, int]] = {}
        self.constants = 0
        attributes = function.attributes
        name = ir.StringAttr(attributes["sym_name"]).value
        self.symbols: dict[str, Any] = {}
        inputs, specs = self._arguments(attributes)
        outputs: list[Tensor] = []
        for op in self.block.operations:
            if op.operation.name == "func.return":
                outputs = [self.tensors[v] for v in op.operation.operands]
            else:
                self._operation(op.operation)
        self.graph = Graph(
            name,
            inputs,
            specs,
            self.symbols,
            self.strides,
            self.operations,
            outputs,
            self._output_specs(outputs, attributes),
            self.sizes.opaque,
            self.tensors,
            self.sizes.known_size,
        )
        _drop_dead(self.graph)

    # --- signature -----------------------------------------------------------------------------

    def _arguments(self, attributes: Any) -> tuple[list[Tensor], list[TensorSpec]]:
        names = _texts(attributes["profuse.symbols"]) if "profuse.symbols" in attributes else []
        shown = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else []
        arguments = list(self.block.arguments)
        tensors = [a for a in arguments if isinstance(a.type, ir.RankedTensorType)]
        indices = arguments[len(tensors) :]
        if len(indices) != len(names):
            raise LoweringError(f"{len(indices)} index arguments for {len(names)} size symbols")
        for text, value in zip(names, indices, strict=True):
            self.symbols[text] = value
            self.sizes.define(value, symbol(text))
        inputs, specs = [], []
        for number, value in enumerate(tensors):
            spec, buffer = self._argument(number, value, shown[number] if shown else {})
            tensor = Tensor(buffer.dims, buffer.element, Source(buffer))
            self.tensors[value] = tensor
            inputs.append(tensor)
            specs.append(spec)
        return inputs, specs

    def _argument(self, number: int, value: ir.Value, attributes: Any) -> tuple[TensorSpec, Buffer]:
        type_ = ir.RankedTensorType(value.type)
        dtype = _dtype_name(type_.element_type, attributes)
        if "profuse.dims" in attributes:
            dims = tuple(parse_dim(t) for t in _texts(attributes["profuse.dims"]))
        else:
            dims = _static_dims(type_)
        strides: tuple[Dim, ...] = ix.row_major(dims)
        shown: str | tuple[str, ...] = CONTIGUOUS
        if "profuse.strides" in attributes and isinstance(attributes["profuse.strides"], ir.ArrayAttr):
            shown = tuple(_texts(attributes["profuse.strides"]))
            strides = tuple(self._stride(number, k, text) for k, text in enumerate(shown))
        # The stride of an axis of size 1 is never used, so it gets the contiguous value.
        strides = tuple(s if d != 1 else r for s, d, r in zip(strides, dims, ix.row_major(dims), strict=True))
        is_scalar = "profuse.scalar" in attributes
        buffer = Buffer("input", number, type_.element_type, dims, strides, scalar=is_scalar)
        kind = "scalar" if is_scalar else "tensor"
        return TensorSpec(kind, dtype, tuple(map(str, dims)), shown), buffer

    def _stride(self, number: int, axis: int, text: str) -> Dim:
        if text != "?":
            return parse_dim(text)
        name = f"stride{number}_{axis}"
        self.strides[name] = (number, axis)
        return symbol(name)

    def _output_specs(self, outputs: Sequence[Tensor], attributes: Any) -> list[TensorSpec]:
        shown = list(attributes["res_attrs"]) if "res_attrs" in attributes else []
        specs = []
        for number, tensor in enumerate(outputs):
            own = shown[number] if shown else {}
            dims = tuple(map(str, tensor.dims))
            if "profuse.dims" in own:
                dims = tuple(_texts(own["profuse.dims"]))
                # The caller allocates by the stated sizes, and loops write by those of the tensor.
                _check_equal(f"result {number}", map(parse_dim, dims), tensor.dims)
            kind = "violation" if "profuse.violation" in own else "tensor"
            specs.append(TensorSpec(kind, _dtype_name(tensor.element, own), dims))
        return specs

    def _dims(self, type_: ir.RankedTensorType, dynamic: Sequence[ir.Value]) -> tuple[Dim, ...]:
        values = iter(dynamic)
        return tuple(
            self.sizes.size(next(values)) if type_.is_dynamic_dim(k) else type_.get_dim_size(k)
            for k in range(type_.rank)
        )

    # --- operations ----------------------------------------------------------------------------

    def _operation(self, op: ir.Operation) -> None:
        name = op.name
        if name == "linalg.generic":
            self._generic(op)
        elif name == "linalg.fill":
            self._fill(op)
        elif name.startswith("linalg.") and name[7:] in PRODUCTS:
            self._product(op, name[7:])
        elif name == "tensor.empty":
            type_ = ir.RankedTensorType(op.results[0].type)
            dims = self._dims(type_, list(op.operands))
            self.tensors[op.results[0]] = Tensor(dims, type_.element_type)
        elif name == "tensor.reshape":
            self._reshape(op)
        elif name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
            self._constant(op)
        elif name == "tensor.from_elements" or name.startswith(SCALAR):
            pass  # scalars: read where they are used
        elif name == "tensor.extract" and not isinstance(op.results[0].type, ir.RankedTensorType):
            pass
        else:
            raise LoweringError(f"{name} cannot be scheduled")

    def _constant(self, op: ir.Operation) -> None:
        type_ = ir.RankedTensorType(op.results[0].type)
        dims = _static_dims(type_)
        attribute = op.attributes["value"]
        buffer = Buffer("constant", self.constants, type_.element_type, dims, ix.row_major(dims), attribute)
        self.constants += 1
        self.tensors[op.results[0]] = Tensor(dims, type_.element_type, Source(buffer))

    def _fill(self, op: ir.Operation) -> None:
        value, destination = op.operands
        into = self.tensors[destination]
        output = Tensor(into.dims, into.element)
        rank = len(into.dims)
        extracts, _ = read_body(None, self.block, [value], self.tensors, self.sizes.known_size)
        self._add_compute(
            op,
            (output,),
            into.dims,
            (False,) * rank,
            [],
            [None],
            [tuple(range(rank))],
            Body(fill=value, extracts=extracts.extracts, cost=0),
        )

    def _generic(self, op: ir.Operation) -> None:
        attributes = op.attributes
        counts = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
        maps = [ir.AffineMapAttr(m).value for m in attributes["indexing_maps"]]
        reduction = tuple("reduction" in str(t) for t in attributes["iterator_types"])
        values = [self.tensors[v] for v in op.operands]
        ins, outs = values[: counts[0]], values[counts[0] :]
        indices = [tuple(affine(e) for e in m.results) for m in maps]
        axes = [tuple(output_loop(e, op) for e in index) for index in indices[counts[0] :]]
        sizes = extents(len(reduction), values, indices, counts[0])
        reads = [Read(t, tuple(within(e, sizes) for e in index)) for t, index in zip(ins, indices, strict=False)]
        block = op.regions[0].blocks[0]
        body, combiners = read_body(block, self.block, [], self.tensors, self.sizes.known_size)
        viewed = read_view(block, self.sizes.known_size, self.tensors) if body.extracts else None
        if viewed is not None:
            reads, body = [Read(*viewed)], Body(view=0, used=frozenset([0]))
        outputs = [Tensor(t.dims, t.element) for t in outs]
        inits = [t if counts[0] + k in body.used else None for k, t in enumerate(outs)]
        is_scan = "profuse.scan" in attributes
        compute = self._add_compute(op, outputs, sizes, reduction, reads, inits, axes, body, is_scan=is_scan)
        if "profuse.extremum" in attributes:
            compute.extremum = ir.StringAttr(attributes["profuse.extremum"]).value
        if "profuse.placed" in attributes:
            compute.placed = tuple(ir.DenseI64ArrayAttr(attributes["profuse.placed"]))
        if PART in attributes:
            numbers = list(ir.DenseI64ArrayAttr(attributes[PART]))
            compute.part = tuple(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
        if any(reduction) and not is_scan:
            compute.combiners = combiners
        else:
            compute.combiners = [None] * len(outputs)

    def _add_compute(
        self,
        op: ir.Operation,
        outputs: Sequence[Tensor],
        extents: Sequence[Dim],
        reduction: tuple[bool, ...],
        reads: list[Read],
        inits: list[Tensor | None],
        axes: list[tuple[int, ...]],
        body: Body,
        is_scan: bool = False,
    ) -> Compute:
        compute = Compute(
            f"op{len(self.operations)}",
            tuple(extents),
            reduction,
            reads,
            inits,
            list(outputs),
            axes,
            body,
            is_scan=is_scan,
            location=op.location,
        )
        digits = any(ix.has_digits(i) for read in reads for i in read.index) or any(t.digits for t in operands(compute))
        for number, (tensor, value) in enumerate(zip(outputs, op.results, strict=True)):
            tensor.producer, tensor.number, tensor.digits = compute, number, digits
            self.tensors[value] = tensor
        self.operations.append(compute)
        return compute

    def _product(self, op: ir.Operation, kind: str) -> None:
        left, right, into = (self.tensors[v] for v in op.operands)
        output = Tensor(into.dims, into.element)
        init = None if _is_zero_fill(into) else into
        if str(into.element) not in ("f32", "f64"):
            raise LoweringError(f"no library product for {into.element}")
        if "indexing_maps" in op.attributes and len(op.attributes["indexing_maps"]) != 3:
            raise LoweringError(f"linalg.{kind} with non-standard indexing maps")
        product = Product(kind, left, right, init, output, f"op{len(self.operations)}", op.location)
        output.producer = product
        self.tensors[op.results[0]] = output
        self.operations.append(product)

    def _reshape(self, op: ir.Operation) -> None:
        source = self.tensors[op.operands[0]]
        type_ = ir.RankedTensorType(op.results[0].type)
        listed = definition(op.operands[1])
        if listed is None or listed.name != "tensor.from_elements":
            raise LoweringError("tensor.reshape whose shape is not tensor.from_elements")
        dims = tuple(
            type_.get_dim_size(k) if not type_.is_dynamic_dim(k) else self.sizes.size(v)
            for k, v in enumerate(listed.operands)
        )
        _check_equal("a reshape", [ix.product(source.dims)], [ix.product(dims)])
        output = Tensor(dims, type_.element_type)
        mapping = reshape_mapping(source.dims, dims)
        output.producer = RowMajorReshape(source, output, mapping, f"op{len(self.operations)}")
        output.digits = source.digits or mapping is None or any(map(ix.has_digits, mapping))
        self.tensors[op.results[0]] = output
        self.operations.append(output.producer)


def _check_equal(what: str, stated: Iterable[Dim], written: Iterable[Dim]) -> None:
    """Raise LoweringError unless all sizes are known to be equal."""
    for one, other in zip(stated, written, strict=True):
        if without_remainders(one) != without_remainders(other):
            raise LoweringError(f"{what} has a size of {one}, of which loops write {other}")


def _is_zero_fill(tensor: Tensor) -> bool:
    producer = tensor.producer
    if not isinstance(producer, Compute) or producer.body.fill is None:
        return False
    op = definition(producer.body.fill)
    if op is None or op.name != "arith.constant":
        return False
    return float(op.attributes["value"].value) == 0.0


def _static_dims(type_: ir.RankedTensorType) -> tuple[Dim, ...]:
    if not type_.has_static_shape:
        raise LoweringError(f"an argument of type {type_} has no profuse.dims")
    return tuple(type_.shape)


def _texts(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(attribute)]


def _dtype_name(element: ir.Type, attributes: Any) -> str:
    if "profuse.dtype" in attributes:
        return ir.StringAttr(attributes["profuse.dtype"]).value
    text = str(element)
    return _SIGNLESS.get(text, text)


def _drop_dead(graph: Graph) -> None:
    """Keep only operations on which the results depend."""
    live = set(graph.outputs)
    kept = []
    for op in reversed(graph.operations):
        if any(t in live for t in results(op)):
            live.update(operands(op))
            kept.append(op)
    graph.operations[:] = kept[::-1]
