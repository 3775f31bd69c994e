"""StableHLO modules as foreign graphs: their text in generic form, read by MLIR.

MLIR's generic form needs no dialect. Other forms, bytecode and the artifacts of `jax.export` are
written in it by the bindings that `jaxlib` brings (`generic_text`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import DTypeError, IRError
from ....ir.dtypes import dtype_of_mlir
from ....mlir.context import loc_of
from ....mlir.parse import parse_module
from ..file_kinds import MLIR_BYTECODE
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ForeignType, Operand, ValueRef
from .stablehlo_attributes import attributes_of, constant_of

if TYPE_CHECKING:
    from mlir import ir

_MOST_CALLS = 200  # in calls: they cannot be recursive
_SHORT = 16  # elements: longer vectors are no sizes
_RETURNS = ("func.return", "stablehlo.return")


def generic_text(data: bytes, source: str) -> str:
    """Text of a module in MLIR's generic form, whatever form it is in; messages call the module ``source``.

    Raises IRError for what is no module, and where jaxlib is needed and not installed.
    """
    if not data.startswith(MLIR_BYTECODE):
        text = data.decode("utf-8", errors="replace")  # what is no text does not parse
        if not re.search(r"= stablehlo\.|\bfunc\.func [@p]", text):
            return text  # in generic form
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError:
        raise IRError(
            "StableHLO that is not text in MLIR's generic form is read by jaxlib, which is not installed",
            hint="pip install 'profuse[stablehlo]', or write the module by mlir-opt --mlir-print-op-generic",
        ) from None
    with ir.Context() as ctx:
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)  # `func` among them
        ctx.append_dialect_registry(registry)
        stablehlo.register_dialect(ctx)
        chlo.register_dialect(ctx)
        sdy.register_dialect(ctx)
        reasons: list[str] = []

        def note(diagnostic: Any) -> bool:
            reasons.append(diagnostic.message)
            return True  # and not written to stderr

        handler: Any = ctx.attach_diagnostic_handler(note)
        try:
            if data.startswith(MLIR_BYTECODE):
                module = stablehlo.deserialize_portable_artifact(ctx, data)
            else:
                module = ir.Module.parse(text, ctx)
        except Exception as error:  # MLIRError, or ValueError of artifacts
            reason = " ".join("; ".join([*reasons, str(error)]).split())
            raise IRError(
                f"{source} is no module of StableHLO that can be read: {reason}",
                hint="write it anew: mlir_module_serialized of what jax.export gives, or its text",
            ) from None
        finally:
            handler.detach()
        return str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))


def read_stablehlo(text: str, name: str, source: str) -> ForeignGraph:
    """The graph of the function ``main``, or of the only function, of text in generic form.

    Args:
        text: the module.
        name: of the function that it becomes.
        source: what the module is, for messages, and the name of its positions.

    Raises IRError for text that is no such module and DTypeError for types that no array has.
    """
    module = parse_module(text, source, verify=False)
    operations = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    functions = {attributes_of(op)["sym_name"]: op for op in operations}
    chosen = "main" if "main" in functions else next(iter(functions), None)
    if chosen is None or (chosen != "main" and len(functions) > 1):
        raise IRError(f"{source} has {len(functions)} functions, and none is called main")
    reader = _FunctionReader(functions)
    body = reader.function(chosen)
    entry = functions[chosen].regions[0].blocks[0]
    input_types = tuple(type_of_value(argument.type) for argument in entry.arguments)
    parameters = tuple(f"arg{k}" for k in range(len(body.inputs)))
    return ForeignGraph(name, body, parameters, reader.constants, source, input_types)


class _FunctionReader:
    """One walk of a module: values become numbers, and calls of functions become blocks.

    Attributes:
        constants: the large ones, by the number of their value.
    """

    def __init__(self, functions: Mapping[str, ir.Operation]) -> None:
        self._functions = functions
        self._count = 0
        self._depth = 0
        self.constants: dict[int, np.ndarray] = {}

    def function(self, name: str) -> ForeignBlock:
        """The body of a function, with numbers of its own at each call."""
        if name not in self._functions:
            raise IRError(f"the module has no function {name}")
        if self._depth == _MOST_CALLS:
            raise IRError(f"the function {name} is called within {_MOST_CALLS} calls, or calls itself")
        self._depth += 1
        block = self._block(self._functions[name].regions[0].blocks[0], {})
        self._depth -= 1
        return block

    def _block(self, block: ir.Block, operands: dict[ir.Value, Operand]) -> ForeignBlock:
        inputs = tuple(self._number(argument, operands) for argument in block.arguments)
        nodes: list[ForeignNode] = []
        for op in block.operations:
            operation = op.operation
            if operation.name in _RETURNS:
                return ForeignBlock(inputs, nodes, tuple(operands[x] for x in operation.operands))
            if operation.name == "stablehlo.constant":
                self._constant(operation, operands, nodes)
            else:
                nodes.append(self._node(operation, operands))
        raise IRError("a block of the module returns nothing")

    def _number(self, value: ir.Value, operands: dict[ir.Value, Operand]) -> int:
        self._count += 1
        operands[value] = ValueRef(self._count)
        return self._count

    def _constant(self, op: ir.Operation, operands: dict[ir.Value, Operand], nodes: list[ForeignNode]) -> None:
        """Numbers and short vectors are operands where they are used, and large arrays are captured."""
        array = constant_of(op)
        if not array.ndim:
            operands[op.results[0]] = array[()]
        elif array.ndim == 1 and array.size <= _SHORT:
            operands[op.results[0]] = np.array(array)
        elif not any(array.strides) and array.size:
            number = self._number(op.results[0], operands)
            attributes = {"value": array.flat[0], "shape": array.shape}
            nodes.append(ForeignNode("stablehlo.constant", (), attributes, (number,), loc=loc_of(op.location)))
        else:
            self.constants[self._number(op.results[0], operands)] = np.array(array)

    def _node(self, op: ir.Operation, operands: dict[ir.Value, Operand]) -> ForeignNode:
        name, attributes = op.name, attributes_of(op)
        if name in ("func.call", "stablehlo.composite"):
            callee = attributes.pop("callee" if name == "func.call" else "decomposition")
            blocks: tuple[ForeignBlock, ...] = (self.function(callee.lstrip("@")),)
        elif attributes.get("called_computations"):
            blocks = tuple(self.function(callee.lstrip("@")) for callee in attributes.pop("called_computations"))
        else:
            blocks = tuple(self._block(block, dict(operands)) for region in op.regions for block in region.blocks)
        taken = tuple(operands[x] for x in op.operands)
        types, of_operands = (tuple(type_of_value(x.type) for x in values) for values in (op.results, op.operands))
        results = tuple(self._number(x, operands) for x in op.results)
        return ForeignNode(name, taken, attributes, results, types, blocks, loc_of(op.location), of_operands)


def type_of_value(type_: ir.Type) -> ForeignType:
    """What a tensor type says; raises DTypeError for tokens, tuples and element types that no array has."""
    from mlir import ir

    if not isinstance(type_, ir.RankedTensorType):
        raise DTypeError(f"values of type {type_} are not supported")
    if type_.encoding is not None:
        raise DTypeError(f"values of type {type_} are not supported", hint="export the function without bounds")
    shape = tuple(None if type_.is_dynamic_dim(d) else type_.get_dim_size(d) for d in range(type_.rank))
    return ForeignType(dtype_of_mlir(str(type_.element_type)).numpy, shape)
