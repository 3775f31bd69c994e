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

from ...dialect.errors import InternalError, Loc, LoweringError, ProfuseError
from ...dialect.ir.dtypes import BF16, DType
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ir.types import ListType, ScalarType, TensorType, Type, contiguous_strides
from ...dialect.mlir.context import context, first_diagnostic, loc_of, to_location
from .builder import Builder, Tensor
from .element import emit, storage_type
from .generic import mlir_type
from .scalar import load

if TYPE_CHECKING:
    from ...dialect.ir.program import Instr, Program

DIALECTS = ("func", "arith", "math", "complex", "scf", "tensor", "linalg")


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
            "arith.constant", results=[ir.IndexType.get()],
            attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)},
        )  # fmt: skip
        values = list(block.arguments)
        b = Builder(dict(zip(symbols, values[len(inputs) :], strict=True)), anchor)
        environment = _Environment(function, b)
        for number, type_, value in zip(function.inputs, inputs, values, strict=False):
            environment.bind(number, type_, value)
        for instr in function.body.instrs:
            environment.run(instr)
        results = [environment.output(v) for v in function.outputs]
        violation = b.violation()
        if violation is not None:
            results.append(violation)
        ir.Operation.create("func.return", operands=[r.value for r in results])
    types = [r.value.type for r in results]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    func.attributes["profuse.symbols"] = _strings(symbols)
    shown = [_argument_attributes(t) for t in inputs] + [ir.DictAttr.get({})] * len(symbols)
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(shown)
    shown = [_attributes(r.dtype, {"profuse.dims": _strings(map(str, r.shape))}) for r in results]
    if violation is not None:
        shown[-1] = _attributes(violation.dtype, {"profuse.violation": ir.UnitAttr.get()})
    func.attributes["res_attrs"] = ir.ArrayAttr.get(shown)
    anchor.erase()
    _round_shared_products(block)
    return func


class _Environment:
    """The values of one function: tensors, scalars, and numbers and sizes known while lowering."""

    def __init__(self, function: Program, builder: Builder) -> None:
        self.function, self.builder = function, builder
        self.types: dict[int, Type] = {}
        self.values: dict[int, Any] = {}

    def bind(self, number: int, type_: Type, value: ir.Value) -> None:
        """Define an argument."""
        self.types[number] = type_
        if isinstance(type_, TensorType):
            self.values[number] = Tensor(value, type_)
        else:
            assert isinstance(type_, ScalarType)
            element = emit("tensor.extract", storage_type(type_.dtype), value)
            self.values[number] = load(element, type_.dtype)

    def run(self, instr: Instr) -> None:
        """Lower one instruction; raises LoweringError at its location."""
        operands = [self.types[v] for v in instr.operands]
        try:
            attrs = instr.op.full_attrs(instr.attrs)
            types = self._result_types(instr, operands, attrs)
            known = [t.value if isinstance(t, ScalarType) else None for t in types]
            if types and all(v is not None for v in known):
                results: Sequence[Any] = known
            else:
                if not instr.op.can_lower():
                    raise LoweringError(f"{instr.op.full_name()} has no lowering")
                with to_location(instr.loc) if instr.loc else ir.Location.current:
                    args = [self.values[v] for v in instr.operands]
                    lowered = instr.op.lower(self.builder, attrs, types, *args)
                results = lowered if isinstance(lowered, (tuple, list)) else (lowered,)
        except ProfuseError as error:
            raise _located(error, instr.loc) from error
        for number, type_, value in zip(instr.results, types, results, strict=True):
            self.types[number], self.values[number] = type_, value
            for size in (type_.shape or ()) if isinstance(type_, TensorType) else ():
                self.builder.check_size(size)

    def _result_types(self, instr: Instr, operands: list[Type], attrs: dict) -> tuple[Type, ...]:
        types = instr.op.infer(operands, attrs)
        for type_ in types:
            if isinstance(type_, ListType):
                raise LoweringError(f"{instr.op.full_name()} gives a list")
            if isinstance(type_, TensorType) and not type_.is_complete:
                raise LoweringError(
                    f"the type of a result of {instr.op.full_name()} is not known: {type_}"
                )
        return types

    def output(self, number: int) -> Tensor:
        """A result of the function; a number becomes a 0-d tensor."""
        value = self.values[number]
        if isinstance(value, Tensor):
            return value
        scalar = self.builder.scalar(value)
        return Tensor(None, TensorType(scalar.dtype, ()), scalar)


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
            *_, end = op.regions[0].blocks[0].operations
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
    """Where the function's first located instruction comes from."""
    return next((i.loc for i in function.body.instrs if i.loc is not None), None)


def _argument_type(type_: Type, number: int, loc: Loc | None) -> Type:
    """``type_`` itself; raises LoweringError unless it is complete."""
    if isinstance(type_, ListType):
        raise LoweringError(f"argument {number} is a list", loc=loc)
    if isinstance(type_, TensorType) and not type_.is_complete:
        raise LoweringError(f"the type of argument {number} is not known: {type_}", loc=loc)
    return type_


def _symbols(types: Sequence[Type]) -> list[str]:
    """Size symbols in order of appearance."""
    found: dict[str, None] = {}
    for type_ in types:
        if isinstance(type_, TensorType):
            for dim in type_.shape or ():
                if isinstance(dim, Sym):
                    found.update(dict.fromkeys(sorted(dim.symbols)))
    return list(found)


def _mlir_argument(type_: Type) -> ir.Type:
    if isinstance(type_, TensorType):
        return mlir_type(type_)
    assert isinstance(type_, ScalarType)
    return mlir_type(TensorType(type_.dtype, ()))


def _argument_attributes(type_: Type) -> ir.DictAttr:
    assert not isinstance(type_, ListType) and type_.dtype is not None
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


def _located(error: ProfuseError, loc: Loc | None) -> ProfuseError:
    kind = InternalError if isinstance(error, InternalError) else LoweringError
    return kind(error.what, loc=error.loc or loc, hint=error.hint)


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
