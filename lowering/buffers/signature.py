"""The arguments of a bufferised function: inputs, outputs, workspace, sizes; and its entry.

The function takes memrefs, ``index`` values for sizes, and bytes of workspace. MLIR makes several
arguments of each memref: two pointers, an offset, sizes, strides. The entry unpacks the slots
(`lowering.abi`) and calls the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim
from ...dialect.mlir.rewrite import ops_in
from ..abi import CONTIGUOUS, KernelABI, TensorSpec, size_bindings
from ..emit.loop_ops import Ops, Sizes
from ..linalg.element import emit
from ..schedule import affine as ix
from .written import keep_written, restore_written, rooms_of

SUFFIX = "_entry"
_SIGNLESS = {"i1": "bool"}


class Signature:
    """The arguments and results of a linalg function, as its attributes describe them."""

    def __init__(self, func: ir.Operation) -> None:
        attributes = func.attributes
        self.name = ir.StringAttr(attributes["sym_name"]).value
        self.symbols = _texts(attributes["profuse.symbols"])
        type_ = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
        # MLIR leaves the attributes of no arguments away.
        shown, returned = (list(attributes[name]) if name in attributes else [] for name in ("arg_attrs", "res_attrs"))
        count = len(type_.inputs) - len(self.symbols)
        self.types = [ir.RankedTensorType(t) for t in type_.inputs[:count]]
        self.inputs = [_spec(t, a) for t, a in zip(self.types, shown, strict=False)]
        self.result_types = [ir.RankedTensorType(t) for t in type_.results]
        self.outputs = [_spec(t, a) for t, a in zip(self.result_types, returned, strict=True)]
        self.has_functions = False  # sines and the like are computed in its loops
        self.freed = 0  # temporaries that a void run may leave, whose addresses begin the workspace
        self.in_place: tuple[tuple[int, int], ...] = ()  # as `KernelABI.in_place`
        self.ends_early = True  # as `KernelABI.ends_early`
        self.workspace: Dim = 0  # bytes that the function needs
        self.strides = tuple(
            (k, axis)
            for k, spec in enumerate(self.inputs)
            if spec.strides != CONTIGUOUS
            for axis, text in enumerate(spec.strides)
            if text == "?"
        )

    def abi(self, workspace: Dim) -> KernelABI:
        """The calling convention; raises LoweringError for a symbol that no argument gives.

        ``workspace``: bytes that the function needs. Behind them, the entry keeps what it writes
        over, if the run may turn out to be void.
        """
        self.workspace = workspace
        for _, _, room in rooms_of(self):
            workspace = workspace + room
        return KernelABI(
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            symbols=size_bindings(self.inputs, self.symbols),
            strides=self.strides,
            workspace=str(workspace),
            in_place=self.in_place,
            restores=True,
            ends_early=self.ends_early,
        )

    def flag_of(self, func: ir.Operation) -> ir.Value | None:
        """The memory in which a void run of the function on memrefs says so, if it may be void."""
        specs = [*self.inputs, *self.outputs]
        places = [k for k, spec in enumerate(specs) if spec.kind == "violation"]
        return func.regions[0].blocks[0].arguments[places[0]] if places else None

    def memrefs(self) -> list[ir.MemRefType]:
        """Types of the memory of inputs and outputs."""
        inputs = zip(self.types, self.inputs, strict=True)
        return [_memref(t, s) for t, s in inputs] + [
            _memref(t, s) for t, s in zip(self.result_types, self.outputs, strict=True)
        ]


def _spec(type_: ir.RankedTensorType, attributes: Any) -> TensorSpec:
    element = str(type_.element_type)
    dtype = _SIGNLESS.get(element, element)
    if "profuse.dtype" in attributes:
        dtype = ir.StringAttr(attributes["profuse.dtype"]).value
    elif isinstance(type_.element_type, ir.ComplexType):
        raise LoweringError("a complex argument has no dtype")
    if "profuse.dims" in attributes:
        dims = tuple(_texts(attributes["profuse.dims"]))
    else:
        dims = tuple(str(type_.get_dim_size(k)) for k in range(type_.rank))
    kind = "scalar" if "profuse.scalar" in attributes else "tensor"
    kind = "violation" if "profuse.violation" in attributes else kind
    strides: str | tuple[str, ...] = CONTIGUOUS
    if "profuse.strides" in attributes and isinstance(attributes["profuse.strides"], ir.ArrayAttr):
        strides = tuple(_texts(attributes["profuse.strides"]))
    return TensorSpec(kind, dtype, dims, strides)


def _memref(type_: ir.RankedTensorType, spec: TensorSpec) -> ir.MemRefType:
    layout = None
    if spec.strides != CONTIGUOUS:
        open_ = ir.ShapedType.get_dynamic_stride_or_offset()
        strides = [open_ if text == "?" else int(text) for text in spec.strides]
        layout = ir.StridedLayoutAttr.get(0, strides)
    return ir.MemRefType.get(type_.shape, type_.element_type, layout)


def _texts(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(attribute)]


# --- the entry --------------------------------------------------------------------------------


def add_entry(module: ir.Module, signature: Signature, abi: KernelABI, marks: Sequence[str]) -> None:
    """Add the entry of a function that is in the LLVM dialect by now, and mark its pointers.

    ``marks`` are attributes that the function gets in LLVM IR.
    """
    function = function_named(module, signature.name)
    specs = [*signature.inputs, *signature.outputs]
    ranks = [len(spec.dims) for spec in specs] + [1]
    shown, place = [], 0
    for rank in ranks:
        # No two of them overlap, and all accesses go through the second pointer.
        noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        empty = ir.DictAttr.get({})
        shown += [empty, noalias] + [empty] * (1 + 2 * rank)
        place += 3 + 2 * rank
    shown += [ir.DictAttr.get({})] * len(signature.symbols)
    for name in list(function.attributes):
        key = name.name if hasattr(name, "name") else name
        if str(key).startswith("profuse."):
            del function.attributes[key]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(shown)
    function.attributes["passthrough"] = ir.ArrayAttr.get([*map(ir.StringAttr.get, marks)])
    function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    _emit_entry(module, signature, abi, specs)


def function_named(module: ir.Module, name: str) -> ir.Operation:
    """The function or declaration of a module that has this name."""
    return next(
        op.operation
        for op in module.body.operations
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == name
    )


def private_function(name: str, types: Sequence[ir.Type]) -> ir.Operation:
    """A function without results and without a body, at the insertion point."""
    return ir.Operation.create(
        "func.func",
        regions=1,
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
            "sym_visibility": ir.StringAttr.get("private"),
        },
    )


def end_void_runs(module: ir.Module, signature: Signature, shared: Sequence[str] = ()) -> None:
    """Have functions whose run is void say so and return, where an assertion has failed.

    Lowering has made a call of ``abort`` of that, behind one that prints a text. The functions of
    the names ``shared`` get the memory for the flag as their first argument.
    """
    place = 1  # of the pointer that accesses go through
    for spec in [*signature.inputs, *signature.outputs]:
        if spec.kind == "violation":
            break
        place += 3 + 2 * len(spec.dims)
    for name, number in [(signature.name, place), *((name, 1) for name in shared)]:
        _end_in(function_named(module, name), number)
    for op in ops_in(module.body):
        name = ir.StringAttr(op.attributes["sym_name"]).value
        if name in ("abort", "puts") or name.startswith("assert_msg"):
            op.erase()


def _end_in(function: ir.Operation, number: int) -> None:
    """End void runs of one function, which has the flag at the address in this argument."""
    blocks = list(function.regions[0].blocks)
    ends = [b for b in blocks if b.operations[len(b.operations) - 1].name == "llvm.unreachable"]
    if not ends:
        return
    flag, byte = blocks[0].arguments[number], ir.IntegerType.get_signless(8)
    for block in ends:
        for op in reversed(ops_in(block)):
            op.erase()
        with ir.InsertionPoint(block):
            true = emit("llvm.mlir.constant", byte, value=ir.IntegerAttr.get(byte, 1))
            ir.Operation.create("llvm.store", operands=[true, flag])
            ir.Operation.create("llvm.return")
    _weigh(blocks, ends)


_USUAL = 1 << 16
_WRAPS = ["llvm.add", "llvm.icmp", "llvm.cond_br"]


def _weigh(blocks: Sequence[ir.Block], ends: Sequence[ir.Block]) -> None:
    """Say that runs are rarely void, and that indices rarely count from the end.

    That is what LLVM wants to know of a test before it takes it out of a loop.
    """
    weights = ir.DenseI32ArrayAttr.get([_USUAL, 1])
    last = {block: block.operations[len(block.operations) - 1].operation for block in blocks}
    tests = [b for b in blocks if last[b].name == "llvm.cond_br" and last[b].successors[1] in ends]
    wraps = [b for b in tests if [v.operation.name for v in b.operations] == _WRAPS]
    for end in last.values():
        if end.name == "llvm.cond_br" and end.successors[1] in [*ends, *wraps]:
            end.attributes["branch_weights"] = weights


def _emit_entry(module: ir.Module, signature: Signature, abi: KernelABI, specs: Sequence[TensorSpec]) -> None:
    ops = Ops()
    entry_type = ir.TypeAttr.get(ir.FunctionType.get([ops.pointer], []))
    with ir.InsertionPoint(module.body):
        entry = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={"sym_name": ir.StringAttr.get(signature.name + SUFFIX), "function_type": entry_type},
        )
    block = entry.regions[0].blocks.append(ops.pointer)
    with ir.InsertionPoint(block):
        slots = block.arguments[0]

        def slot(number: int) -> ir.Value:
            return ops.offset(slots, ops.constant(number), ops.i64)

        after = len(specs) + 1
        names = {}
        for number, name in enumerate(signature.symbols):
            names[name] = ops.load(slot(after + number), ops.i64)
        steps = {}
        for number, where in enumerate(signature.strides):
            steps[where] = ops.load(slot(after + len(signature.symbols) + number), ops.i64)
        sizes = Sizes(ops, names)

        def size(dim: Dim) -> ir.Value:
            return sizes.value(dim, ir.InsertionPoint.current)

        operands: list[ir.Value] = []
        for number, spec in enumerate(specs):
            pointer = slot(number)
            if spec.kind != "scalar":
                pointer = ops.load(pointer, ops.pointer)
            dims = [parse_dim(text) for text in spec.dims]
            strides = [size(d) for d in ix.row_major(dims)]
            if spec.strides != CONTIGUOUS:
                for axis, text in enumerate(spec.strides):
                    step = steps.get((number, axis))
                    strides[axis] = size(parse_dim(text)) if step is None else step
            operands += [pointer, pointer, ops.constant(0), *map(size, dims), *strides]
        memory = ops.load(slot(len(specs)), ops.pointer)
        bytes_ = size(parse_dim(abi.workspace))
        operands += [memory, memory, ops.constant(0), bytes_, ops.constant(1)]
        operands += [names[name] for name in signature.symbols]
        kept = keep_written(ops, signature, slot, size)
        ir.Operation.create(
            "llvm.call",
            operands=operands,
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(signature.name),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )
        restore_written(ops, signature, slot, kept)
        if signature.freed:
            _free_what_is_left(ops, signature, specs, memory)
        ir.Operation.create("func.return")


def _free_what_is_left(ops: Ops, signature: Signature, specs: Sequence[TensorSpec], memory: ir.Value) -> None:
    """Free the temporaries of a void run, which has ended in the middle of their blocks."""
    number = next(k for k, spec in enumerate(specs) if spec.kind == "violation")
    slots = ir.InsertionPoint.current.block.arguments[0]
    flag = ops.load(ops.offset(slots, ops.constant(number), ops.i64), ops.pointer)
    void = ops.load(flag, ir.IntegerType.get_signless(1))
    branch = ir.Operation.create("scf.if", operands=[void], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        for place in range(signature.freed):
            address = ops.load(ops.offset(memory, ops.constant(place), ops.i64), ops.pointer)
            ir.Operation.create(
                "llvm.call",
                operands=[address],
                attributes={
                    "callee": ir.FlatSymbolRefAttr.get("free"),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
        ir.Operation.create("scf.yield")
