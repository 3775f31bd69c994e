"""Checks of meaning: schema, values of attributes, inferred types, symbols; complaints are located.

MLIR itself has checked SSA form, and the ops that are upstream's.  `verify_module` checks the rest
against the op classes; it runs after parsing, and in debug mode after every pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import IRError, Loc, ProfuseError
from ..ir.attrs import SYMBOL, AttrKind
from ..ir.op import DIALECT, OPS, Op, OperandDef, ResultDef
from ..ir.types import LISTED, TENSOR, ListedType, ListType, ScalarType, TensorType, Type, type_from_object
from ..ops.speculation import DiffGraph
from .context import TEXT, near, one_line, position_of, similar_op
from .draw_sites import DrawSites
from .rewrite import YIELD, attributes, blocks_in, is_terminator, symbol_of, types_of, walk

if TYPE_CHECKING:
    from mlir import ir

_SYMBOL = "FlatSymbolRefAttr"  # class of the names of functions
# Ops of no class that programs may hold: how blocks end, and constants as people write them.
_PLAIN = {"func.func", "func.return", "scf.yield", "scf.condition", "arith.constant", YIELD}


class Diagnostic(NamedTuple):
    """One complaint. Its text is ``file:line:col: message``."""

    loc: Loc | None
    message: str

    def __str__(self) -> str:
        return f"{self.loc or 'unknown location'}: {self.message}"


def check(module: ir.Module, filename: str = TEXT) -> None:
    """Raise IRError with everything `verify_module` complains of, one complaint a line."""
    complaints = verify_module(module, filename)
    if complaints:
        first, *more = complaints
        raise IRError("\n".join([first.message, *map(str, more)]), loc=first.loc)


def verify_module(module: ir.Module, filename: str = TEXT) -> list[Diagnostic]:
    """Every complaint about a module, in the order of its ops."""
    from ..ops import seldom  # noqa: F401  (defining the classes fills the table)

    verifier = _Verifier(module)
    return [
        Diagnostic(position_of(op.location, filename), one_line(message))
        for op in walk(module)
        for message in verifier.complaints(op)
    ]


def contradicts(stated: Type, inferred: Type) -> bool:
    """True if no value can have both types. Knowing less, or more, is no contradiction.

    A bare tensor type is also what is inferred where a Python number may result (``2 ** n``), so
    it does not contradict one.
    """
    if TENSOR in (stated, inferred):
        return any(isinstance(stated, kind) != isinstance(inferred, kind) for kind in (ListType, ListedType))
    if isinstance(stated, TensorType) and isinstance(inferred, TensorType):
        if stated.dtype and inferred.dtype and stated.dtype is not inferred.dtype:
            return True
        if stated.shape is None or inferred.shape is None:
            return False
        return len(stated.shape) != len(inferred.shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(stated.shape, inferred.shape, strict=True)
        )
    if isinstance(stated, ScalarType) and isinstance(inferred, ScalarType):
        return stated.dtype is not inferred.dtype
    if isinstance(stated, ListedType) and isinstance(inferred, ListedType):
        return stated.kind != inferred.kind
    return type(stated) is not type(inferred)


class _Verifier:
    def __init__(self, module: ir.Module) -> None:
        self.context = module.context
        self.memories: dict[str, Any] = {}
        self.sites = DrawSites()
        self.functions = {
            symbol_of(op.operation): op.operation for op in module.body.operations if op.operation.name == "func.func"
        }

    def complaints(self, op: ir.Operation) -> Iterator[str]:
        yield from _foreign_types(op)
        yield from _ends(op)
        cls = OPS.get(op.name)
        present: dict[str, Any] = {}
        unknown = [f"{what}; {hint}" if hint else what for what, hint in self.unknown_names(op, cls, present)]
        yield from unknown
        if cls is not None:
            yield from self.of_class(op, cls, present, are_known=not unknown)

    def unknown_names(
        self, op: ir.Operation, cls: type[Op] | None, into: dict[str, Any]
    ) -> Iterator[tuple[str, str | None]]:
        """Names without a meaning, of the op, its attributes and functions, each with the names that may be meant.

        The attributes of an op of ours go to ``into``.
        """
        if cls is not None and cls.dialect == DIALECT:
            into.update(attributes(op))
            for name, attribute in into.items():
                if name not in cls.attrs:
                    yield f"'{op.name}' has no attribute '{name}'", near(name, cls.attrs)
                elif cls.attrs[name].kind is SYMBOL and type(attribute).__name__ == _SYMBOL:
                    function = SYMBOL.decode(attribute)
                    if function not in self.functions:
                        yield f"'{op.name}' no function @{function} in the module", near(function, self.functions)
        ours = op.name.startswith(DIALECT + ".")
        if cls is None and op.name not in _PLAIN and (ours or not self.context.is_registered_operation(op.name)):
            yield f"unknown op '{op.name}'", similar_op(op.name)

    def of_class(
        self, op: ir.Operation, cls: type[Op], present: Mapping[str, Any], *, are_known: bool
    ) -> Iterator[str]:
        structure = [*_structure(op, cls)]
        attrs: dict[str, Any] = {}
        if cls.dialect == DIALECT:
            structure += _attributes(cls, present, attrs)
        try:
            types = types_of(op.operands)
            results = types_of(op.results)
        except IRError as error:
            structure.append(error.what)
        if structure or not are_known:
            for message in structure:
                yield f"'{op.name}' {message}"
            return
        complaints = [*_meaning(cls, types, results, attrs), *self.symbols(op, cls, attrs)]
        if cls.writes:
            complaints += self.writes(op)
        complaints += self.sites.complaints(op)
        for message in complaints:
            yield f"'{op.name}' {message}"

    def writes(self, op: ir.Operation) -> Iterator[str]:
        """The in-place check of R1.24: a graph writes memory of its own only."""
        from .aliases import WrittenMemory

        func = op.parent
        while func.name != "func.func":
            func = func.parent
        name = symbol_of(func)
        if name not in self.memories:
            self.memories[name] = WrittenMemory(func)
        complaint = self.memories[name].forbidden(op)
        if complaint:
            yield complaint

    def symbols(self, op: ir.Operation, cls: type[Op], attrs: Mapping[str, Any]) -> Iterator[str]:
        for name, definition in cls.attrs.items():
            if definition.kind is not SYMBOL or attrs.get(name) is None:
                continue
            target = self.functions[attrs[name]]
            if name == "callee":
                yield from _call(op, target)
            elif cls is DiffGraph and attrs["callee"] is None:
                yield from _half(op, name, attrs, target)


def _foreign_types(op: ir.Operation) -> Iterator[str]:
    from mlir import ir

    arguments = [a for block in blocks_in(op) for a in block.arguments]
    for value in [*arguments, *op.results]:
        if isinstance(value.type, ir.OpaqueType):
            text = str(value.type)
            if text not in ("!profuse.tensor", "!profuse.list", *LISTED):
                yield f"unknown type '{text}'"


def _ends(op: ir.Operation) -> Iterator[str]:
    # To MLIR an op of ours at the end might be a terminator: it cannot tell.
    if op.name == "builtin.module":
        return
    for block in blocks_in(op):
        count = len(block.operations)
        if not count or not is_terminator(block.operations[count - 1].operation):
            yield f"a block of '{op.name}' does not end with a return or yield"


def _structure(op: ir.Operation, cls: type[Op]) -> Iterator[str]:
    yield from _count("operand", len(op.operands), cls.operands)
    yield from _count("result", len(op.results), cls.results)
    if len(op.regions) != cls.regions:
        yield f"must have {cls.regions} regions, not {len(op.regions)}"


def _count(word: str, count: int, fields: Sequence[OperandDef | ResultDef]) -> Iterator[str]:
    fixed = sum(not f.variadic for f in fields)
    if count == fixed or (count > fixed and fixed < len(fields)):
        return
    least = "at least " if fixed < len(fields) else ""
    yield f"must have {least}{fixed} {word}{'' if fixed == 1 else 's'}, not {count}"


def _attributes(cls: type[Op], present: Mapping[str, Any], into: dict[str, Any]) -> Iterator[str]:
    """Complaints about the attributes that are ``present``; decoded ones go to ``into``, defaults filled in."""
    for name, definition in cls.attrs.items():
        if name not in present:
            if not definition.optional:
                yield f"needs attribute '{name}' ({definition.kind.name})"
            into[name] = definition.default
            continue
        problem = None
        if not _fits(definition.kind, present[name]):
            problem = f"must be of kind {definition.kind.name}, not {present[name]}"
        else:
            try:
                into[name] = definition.kind.decode(present[name])
            except ProfuseError as error:
                problem = f"cannot be read: {error.what}"
            except Exception:
                problem = f"must be of kind {definition.kind.name}, not {present[name]}"
        if problem:
            yield f"attribute '{name}' {problem}"


def _typed(attribute_class: str, type_: str) -> Callable[[Any], bool]:
    return lambda a: type(a).__name__ == attribute_class and str(a.type) == type_


def _elements(attribute_class: str) -> Callable[[Any], bool]:
    return lambda a: type(a).__name__ == "ArrayAttr" and all(type(x).__name__ == attribute_class for x in a)


def _is(attribute_class: str) -> Callable[[Any], bool]:
    return lambda a: type(a).__name__ == attribute_class


# Decoding alone is lenient (``1.5 : f64`` decodes as the integer 1); this is what is meant.
_FITS: dict[str, Callable[[Any], bool]] = {
    "integer": _typed("IntegerAttr", "i64"),
    "bool": lambda a: str(a) in ("true", "false"),
    "float": _typed("FloatAttr", "f64"),
    "string": _is("StringAttr"),
    "integer array": _is("DenseI64ArrayAttr"),
    "bool array": _is("DenseBoolArrayAttr"),
    "symbol": _is(_SYMBOL),
    "dtype": _is("TypeAttr"),
    "type": _is("TypeAttr"),
    "type array": _elements("TypeAttr"),
    "string array": _elements("StringAttr"),
    "constant value": lambda a: _is_value(a),
}


def _is_value(attribute: Any) -> bool:
    """A Python number (complex: its two parts), elements of a tensor (complex: `dense_text`), or
    a value of a `ListedType`.
    """
    name = type(attribute).__name__
    if name in ("UnitAttr", "DenseI64ArrayAttr", "DenseBoolArrayAttr", "StringAttr"):
        return True
    if name == "ArrayAttr" and len(attribute) == 1:
        parts = re.fullmatch(r"tensor<(?:\d+x)*2xf(?:32|64)>", str(attribute[0].type))
        return type(attribute[0]).__name__.startswith("Dense") and parts is not None
    if name == "ArrayAttr":
        return len(attribute) == 2 and all(map(_FITS["float"], attribute))
    if name in ("BoolAttr", "IntegerAttr", "FloatAttr"):
        return str(attribute.type) in ("i1", "i64", "f64")
    return name.startswith("Dense") and name.endswith("ElementsAttr")


def _fits(kind: AttrKind, attribute: ir.Attribute) -> bool:
    check = _FITS.get(kind.name)
    return check is None or check(attribute)


def _meaning(
    cls: type[Op], types: tuple[Type, ...], results: tuple[Type, ...], attrs: Mapping[str, Any]
) -> Iterator[str]:
    try:
        messages = list(cls.verify(types, attrs))
        inferred = () if messages else cls.infer(types, attrs)
    except ProfuseError as error:
        yield error.what
        return
    except Exception as error:
        shown = ", ".join(map(str, types))
        yield f"cannot take operands of types ({shown}): {type(error).__name__}: {error}"
        return
    yield from messages
    # Ops whose results are another function's or block's to say infer nothing.
    if messages or not inferred:
        return
    if len(inferred) != len(results):
        yield f"must have {len(inferred)} results, not {len(results)}"
        return
    for index, (stated, expected) in enumerate(zip(results, inferred, strict=True)):
        if contradicts(stated, expected):
            which = f" {index}" if len(results) > 1 else ""
            yield f"result{which} has type {stated}, but its operands make it {expected}"


def _call(op: ir.Operation, target: ir.Operation) -> Iterator[str]:
    from mlir import ir

    signature = ir.FunctionType(target.attributes["function_type"].value)
    name = symbol_of(target)
    for word, own, theirs in (
        ("argument", [v.type for v in op.operands], signature.inputs),
        ("result", [v.type for v in op.results], signature.results),
    ):
        if len(own) != len(theirs):
            yield f"passes {len(own)} {word}s, but @{name} has {len(theirs)}"
            continue
        for index, (mine, its) in enumerate(zip(own, theirs, strict=True)):
            try:
                one, other = type_from_object(mine), type_from_object(its)
                wrong = type(one) is not type(other) or contradicts(one, other)
            except IRError:
                wrong = mine != its
            if wrong:
                yield f"{word} {index} has type {mine}, but that of @{name} is {its}"


def _half(op: ir.Operation, name: str, attrs: Mapping[str, Any], target: ir.Operation) -> Iterator[str]:
    """Complaints about the signature of one half of a differentiated graph (R2.29)."""
    from mlir import ir

    signature = ir.FunctionType(target.attributes["function_type"].value)
    ins, outs, real = len(signature.inputs), len(signature.results), attrs["f_real_outputs"]
    captured = attrs["df_input_captured_outputs"]
    if name == "forward":
        if ins != len(op.operands):
            yield f"has {len(op.operands)} operands, but @{attrs[name]} takes {ins}"
        if real != len(op.results):
            yield f"has {len(op.results)} results, but f_real_outputs is {real}"
        if outs < max((real, *(k + 1 for k in captured))):
            yield f"@{attrs[name]} returns {outs} values, fewer than the indices name"
        return
    expected = len(attrs["df_input_vjps"]) + len(attrs["df_input_captured_inputs"]) + len(captured)
    if ins != expected:
        yield f"the indices name {expected} inputs of @{attrs[name]}, which takes {ins}"
    if outs != len(attrs["df_output_vjps"]):
        yield f"df_output_vjps names {len(attrs['df_output_vjps'])} results of @{attrs[name]}, " + (
            f"which returns {outs}"
        )
