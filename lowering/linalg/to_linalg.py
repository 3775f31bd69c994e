"""Graph -> linalg: one fusion function becomes a ``func.func`` on tensors.

Arguments are the tensors (a Python number is a 0-d tensor marked ``profuse.scalar``), then one
``index`` per size symbol; `docs/cpu-lowering.md` lists the attributes.  Shapes are inferred anew
from the argument types, so that symbolic sizes and known scalar values reach every op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir
from mlir.passmanager import PassManager

from ...dialect.errors import Loc, LoweringError
from ...dialect.guards.checks import described
from ...dialect.ir.dtypes import BF16, DType
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ir.types import ListedType, ListType, ScalarType, TensorType, Type, contiguous_strides
from ...dialect.mlir.context import context, first_diagnostic, loc_of, to_location
from ...dialect.mlir.rewrite import blocks_in, terminator_of
from .environment import Environment
from .generic import mlir_type
from .loop_builder import LoopBuilder
from .scf import LoopEnvironment, has_control_flow
from .tensor_builder import Builder

if TYPE_CHECKING:
    from ...dialect.ir.program import Program

DIALECTS = ("func", "arith", "math", "complex", "scf", "tensor", "linalg", "memref", "bufferization", "cf", "llvm")


def to_linalg(function: Program) -> ir.Module:
    """A module with the one function ``@name``, in this thread's context.

    Raises LoweringError, at the user's line where one is known, for ops without a lowering,
    and incomplete types.
    """
    ctx = context()
    load_dialects(ctx)
    start = _first_loc(function)
    with ctx, to_location(start):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            emit_function(function)
        _check(module, function.name, start)
    return module


def load_dialects(context: ir.Context) -> None:
    """Load the dialects whose operations lowering creates by name."""
    for dialect in DIALECTS:
        _ = context.dialects[dialect]


def emit_function(function: Program) -> ir.Operation:
    """Emit the linalg form of ``function`` at the insertion point."""
    start = _first_loc(function)
    inputs = [_argument_type(function.type_of(v), v, start) for v in function.inputs]
    symbols = _symbols(inputs)
    arguments = [_mlir_argument(t) for t in inputs] + [ir.IndexType.get()] * len(symbols)
    func = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(function.name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(arguments, [])),
        },
        regions=1,
    )
    block = func.regions[0].blocks.append(*arguments)
    with ir.InsertionPoint(block):
        anchor = ir.Operation.create(
            "arith.constant",
            results=[ir.IndexType.get()],
            attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)},
        )
        values = list(block.arguments)
        loops = has_control_flow(function)
        sizes = dict(zip(symbols, values[len(inputs) :], strict=True))
        b = (LoopBuilder if loops else Builder)(sizes, anchor)
        environment = (LoopEnvironment if loops else Environment)(function, b)
        for number, type_, value in zip(function.inputs, inputs, values, strict=False):
            environment.bind(number, type_, value)
        for instr in function.body.instrs:
            environment.run(instr)
        results = [environment.output(v) for v in function.outputs]
        violation = b.violation()
        if violation is not None:
            results.append(violation)
        returned = [r.value for r in results]
        ir.Operation.create("func.return", operands=returned)
    types = [v.type for v in returned]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    func.attributes["profuse.symbols"] = _strings(symbols)
    shown = [_argument_attributes(t) for t in inputs] + [ir.DictAttr.get({})] * len(symbols)
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(shown)
    shown = [_attributes(r.dtype, {"profuse.dims": _strings(map(str, r.shape))}) for r in results]
    if violation is not None:
        shown[-1] = _attributes(violation.dtype, {"profuse.violation": ir.UnitAttr.get()})
    func.attributes["res_attrs"] = ir.ArrayAttr.get(shown)
    anchor.erase()
    if loops:
        _round_every_operation(block)
    else:
        _round_shared_products(block)
    return func


def _round_every_operation(block: ir.Block) -> None:
    """Let no product be fused with a sum: rounds hand on what one rounding less would change.

    After some rounds of a chaotic system such a result has nothing in common with NumPy's.
    """
    for op in block.operations:
        if "fastmath" in op.attributes and op.name in _FUSED:
            sums = "reassoc" in str(op.attributes["fastmath"])
            flags = "reassoc" if sums else "none"
            op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flags}>")
        for inner in blocks_in(op.operation):
            _round_every_operation(inner)


_FUSED = frozenset({"arith.addf", "arith.subf", "arith.mulf"})


def _round_shared_products(block: ir.Block) -> None:
    """Let no product be fused with a sum that has several readers: all of them read one number.

    A fused product is not rounded. If a mean summed up such products and a difference took it from
    rounded ones, the variance of a single element would not be 0.
    """
    rounded = ir.Attribute.parse("#arith.fastmath<none>")
    for op in block.operations:
        for result in op.results:
            if len(list(result.uses)) > 1:
                for product in _products(result):
                    product.attributes["fastmath"] = rounded


def _products(value: ir.Value) -> Iterator[ir.Operation]:
    """The multiplications of floats whose results are elements of a value, moved or negated."""
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.BlockArgument):
            generic = value.owner.owner
            if generic.name == "linalg.generic":
                waiting.append(generic.operands[value.arg_number])
            continue
        op = value.owner
        if (op, value) in seen:
            continue
        seen.add((op, value))
        if op.name == "arith.mulf":
            yield op
        elif op.name in _MOVES:
            waiting += [op.operands[k] for k in _MOVES[op.name]]
        elif op.name == "linalg.generic":
            end = terminator_of(op.regions[0].blocks[0])
            waiting.append(end.operands[ir.OpResult(value).result_number])


# Operations that pass on elements of these operands, but for the sign.
_MOVES = {
    "tensor.reshape": (0,),
    "tensor.extract": (0,),
    "arith.select": (1, 2),
    "arith.negf": (0,),
    "complex.create": (0, 1),
    "complex.re": (0,),
    "complex.im": (0,),
}


def _first_loc(function: Program) -> Loc | None:
    """The location of the function's first located instruction."""
    return next((i.loc for i in function.body.instrs if i.loc is not None), None)


def _argument_type(type_: Type, number: int, loc: Loc | None) -> Type:
    """``type_`` itself; raises LoweringError unless it is complete."""
    if isinstance(type_, (ListType, ListedType)):
        raise LoweringError(f"argument {number} is {described(type_)}", loc=loc)
    if isinstance(type_, TensorType) and not type_.is_complete:
        raise LoweringError(f"the type of argument {number} is not known: {type_}", loc=loc)
    return type_


def _symbols(types: Sequence[Type]) -> list[str]:
    """Size symbols in order of appearance."""
    names: dict[str, None] = {}
    for type_ in types:
        if isinstance(type_, TensorType):
            for dim in type_.shape or ():
                if isinstance(dim, Sym):
                    names.update(dict.fromkeys(sorted(dim.symbols)))
    return list(names)


def _mlir_argument(type_: Type) -> ir.Type:
    if isinstance(type_, TensorType):
        return mlir_type(type_)
    assert isinstance(type_, ScalarType)
    return mlir_type(TensorType(type_.dtype, ()))


def _argument_attributes(type_: Type) -> ir.DictAttr:
    assert isinstance(type_, (TensorType, ScalarType)) and type_.dtype is not None
    if not isinstance(type_, TensorType):
        if not type_.dtype.is_complex:
            return _attributes(type_.dtype, {"profuse.scalar": ir.UnitAttr.get()})
        type_ = TensorType(type_.dtype, (), "contiguous")  # too large for a slot
    assert type_.dtype is not None and type_.shape is not None
    shape: tuple[Dim, ...] = type_.shape  # type: ignore[assignment]
    strides: ir.Attribute
    if type_.strides == "contiguous" or type_.strides == contiguous_strides(shape):
        strides = ir.StringAttr.get("contiguous")
    elif isinstance(type_.strides, tuple):
        strides = _strings("?" if s is None else str(s) for s in type_.strides)
    else:
        strides = _strings("?" for _ in shape)
    dims = _strings(map(str, shape))
    return _attributes(type_.dtype, {"profuse.dims": dims, "profuse.strides": strides})


def _attributes(dtype: DType, others: dict[str, ir.Attribute]) -> ir.DictAttr:
    """``others``, and the dtype where the storage type does not determine it."""
    if dtype.kind in "buc" or dtype is BF16:
        others = {**others, "profuse.dtype": ir.StringAttr.get(dtype.name)}
    return ir.DictAttr.get(others)


def _strings(texts: Any) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])


def _check(module: ir.Module, name: str, start: Loc | None) -> None:
    """Remove duplicate and dead operations, and verify."""
    try:
        # The pass manager does not verify after a pass that changes nothing.
        module.operation.verify()
        PassManager.parse("builtin.module(cse)").run(module.operation)
    except ir.MLIRError as error:
        text, where = first_diagnostic(error)
        loc = (loc_of(where) if where else None) or start
        raise LoweringError(f"the kernel of @{name} does not verify: {text}", loc=loc) from error
