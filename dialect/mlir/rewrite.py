"""Helpers for passes written in Python over MLIR operations.

Ops are handled as `ir.Operation`, values as `ir.Value`, types and attributes in their plain Python
form.  Functions that build IR want the module's context entered, as it is inside `Pass.run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import InternalError, IRError, Loc
from ..ir.op import DIALECT, OPS, Op
from ..ir.types import Type, type_from_object, type_to_mlir
from .context import loc_of, to_location

if TYPE_CHECKING:
    from mlir import ir

YIELD = f"{DIALECT}.yield"  # ends blocks of our own ops; `scf.yield` may not
_TERMINATORS = {"func.return", "scf.yield", "scf.condition", YIELD}


# --- looking ---------------------------------------------------------------------------------


def op_class(op: ir.Operation) -> type[Op] | None:
    """The class of an op, or None for an op that is not in the table."""
    return OPS.get(op.name)


def is_a(op: ir.Operation | None, *classes: type[Op]) -> bool:
    """True for an op of one of these classes or of their subclasses; an op of no table is of none."""
    cls = None if op is None else op_class(op)
    return cls is not None and issubclass(cls, classes)


def attrs_of(op: ir.Operation) -> dict[str, Any]:
    """Attributes of an op of the table as plain values, defaults filled in.

    Raises IRError for an unknown or missing attribute or one of the wrong kind.
    """
    cls = op_class(op)
    if cls is None:
        raise IRError(f"unknown op {op.name!r}", loc=loc_of(op.location))
    values = {}
    for name, attribute in attributes(op).items():
        definition = cls.attrs.get(name)
        if definition is None:
            raise IRError(f"{op.name} has no attribute {name!r}", loc=loc_of(op.location))
        try:
            values[name] = definition.kind.decode(attribute)
        except Exception as error:
            raise IRError(
                f"{op.name}: attribute {name!r} must be of kind {definition.kind.name}, not {attribute}",
                loc=loc_of(op.location),
            ) from error
    try:
        return cls.full_attrs(values)
    except IRError as error:
        raise IRError(error.what, loc=loc_of(op.location)) from None


def attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Attributes of an op as MLIR objects, without those of other dialects (``a.b``)."""
    return {name: value for name, value in all_attributes(op) if "." not in name}


def all_attributes(op: ir.Operation) -> list[tuple[str, Any]]:
    """The names of an op's attributes, those of other dialects included, with what `attribute` gives of each."""
    named = op.attributes
    try:
        return named.items()
    except TypeError:
        return [(name, attribute(op, name)) for name in named]


def attribute(op: ir.Operation, name: str) -> Any:
    """One attribute, or its `Unreadable` text where the bindings cannot hand it out."""
    try:
        return op.attributes[name]
    except TypeError:
        items = (op.attributes[k] for k in range(len(op.attributes)))
        text = next(str(item) for item in items if item.name == name)
        return Unreadable(text.removeprefix(f"NamedAttribute({name}=").removesuffix(")"))


class Unreadable(str):
    """Text of an attribute that Python cannot look into, such as dense complex elements."""

    __slots__ = ()


def type_of(value: ir.Value) -> Type:
    """The type of a value, as far as it is known; raises IRError for a type that is not one of ours."""
    return type_from_object(value.type)


def types_of(values: Sequence[ir.Value]) -> tuple[Type, ...]:
    """The types of several values, as far as they are known."""
    return tuple(map(type_of, values))


def is_terminator(op: ir.Operation) -> bool:
    """True for ``return``, ``scf.yield``, ``scf.condition`` and ``profuse.yield``."""
    return op.name in _TERMINATORS


def is_pure(op: ir.Operation) -> bool:
    """True if an op and all in it can be dropped when nobody uses the results.

    Purity is declared by op classes. ``arith.constant`` is pure; ops that are in no table are not.
    A ``scf.while`` counts as pure: programs are taken to end.
    """
    if op.name == "arith.constant":
        return True
    cls = op_class(op)
    if cls is None or not cls.pure:
        return False
    return not len(op.regions) or all(is_pure(inner) for inner in walk(op) if not is_terminator(inner))


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that a value is a result of; None for a block argument."""
    return getattr(value.owner, "operation", None)  # blocks have none


def is_used(op: ir.Operation) -> bool:
    """True if any result of ``op`` has a use."""
    return any(next(iter(r.uses), None) is not None for r in op.results)


def users(value: ir.Value) -> list[ir.Operation]:
    """Ops that use a value, each once, in no particular order."""
    owners: list[ir.Operation] = []
    for use in value.uses:
        owner = use.owner.operation
        if owner not in owners:
            owners.append(owner)
    return owners


# The bindings end an iteration over regions, blocks or operations with an exception of C++, which
# costs as much as several ops do. So these ask for the length, and for no item behind the last.


def blocks_in(op: ir.Operation) -> list[ir.Block]:
    """The blocks of an op, of all its regions: a snapshot."""
    regions = op.regions
    return [b for k in range(len(regions)) for blocks in (regions[k].blocks,) for b in islice(blocks, len(blocks))]


def ops_in(block: ir.Block) -> list[ir.Operation]:
    """The ops of a block, terminator included: a snapshot, so that ops may come and go."""
    operations = block.operations
    return [op.operation for op in islice(operations, len(operations))]


def walk(root: ir.Module | ir.Operation | ir.Block) -> Iterator[ir.Operation]:
    """Every op below ``root``, outer before inner, in order.

    An op that has been yielded may be erased; inner ops of an erased op must not be asked for
    (take `ops_in` of one block where that can happen).
    """
    whole = getattr(root, "operation", None)
    for block in [root] if whole is None else blocks_in(whole):
        for op in ops_in(block):
            inner = len(op.regions) > 0
            yield op
            if inner:
                yield from walk(op)


def walk_inner_first(root: ir.Operation) -> Iterator[ir.Operation]:
    """Every op below ``root``, inner before outer, in order; one that was yielded may be erased."""
    for block in blocks_in(root):
        for op in ops_in(block):
            if len(op.regions):
                yield from walk_inner_first(op)
            yield op


def walk_backwards(root: ir.Operation) -> Iterator[ir.Operation]:
    """Every op below ``root``, last first, and thus inner before outer; those behind may change."""
    return reversed(list(walk(root)))


# --- functions -------------------------------------------------------------------------------


def functions(module: ir.Module) -> list[ir.Operation]:
    """The ``func.func`` ops of a module, in order: a snapshot."""
    return [op for op in ops_in(module.body) if op.name == "func.func"]


def short_name(op: ir.Operation) -> str:
    """An op's name without our dialect's."""
    return op.name.removeprefix(f"{DIALECT}.")


def symbol_of(func: ir.Operation) -> str:
    """A function's symbol name."""
    return str(func.attributes["sym_name"].value)


def is_private(func: ir.Operation) -> bool:
    """True for a function that nothing outside the module can name."""
    return "sym_visibility" in func.attributes and str(func.attributes["sym_visibility"].value) == "private"


def function_named(module: ir.Module, name: str) -> ir.Operation | None:
    """The function of that symbol name, or None."""
    return next((f for f in functions(module) if symbol_of(f) == name), None)


def body_of(func: ir.Operation) -> ir.Block:
    """A function's only block; raises IRError for a declaration or a body of several blocks."""
    blocks = blocks_in(func)
    if len(blocks) != 1:
        what = "has no body" if not blocks else "has several blocks"
        raise IRError(f"function @{symbol_of(func)} {what}", loc=loc_of(func.location))
    return blocks[0]


def terminator_of(block: ir.Block) -> ir.Operation:
    """The last op of a block."""
    return block.operations[len(block.operations) - 1].operation


def unique_symbol(module: ir.Module, prefix: str) -> str:
    """``prefix_0``, ``prefix_1``, …: the first that no symbol of the module has."""
    names = {str(op.attributes["sym_name"].value) for op in ops_in(module.body) if "sym_name" in op.attributes}
    return next(name for k in range(len(names) + 1) if (name := f"{prefix}_{k}") not in names)


def add_function(
    module: ir.Module, name: str, args: Sequence[Type], results: Sequence[Type], *, loc: ir.Location | Loc | None = None
) -> tuple[ir.Operation, ir.Block]:
    """Append a private function with an empty body (no ``return`` yet); returns it and its block."""
    from mlir import ir

    where = _location(loc, module.operation)
    module.context.get_dialect_descriptor("func")
    arg_types = [mlir_type(t) for t in args]
    function_type = ir.FunctionType.get(arg_types, [mlir_type(t) for t in results], module.context)
    attrs: dict[str, ir.Attribute] = {
        "sym_name": ir.StringAttr.get(name, module.context),
        "function_type": ir.TypeAttr.get(function_type, module.context),
        "sym_visibility": ir.StringAttr.get("private", module.context),
    }
    func = ir.Operation.create("func.func", attributes=attrs, regions=1, loc=where, ip=ir.InsertionPoint(module.body))
    return func, func.regions[0].blocks.append(*arg_types, arg_locs=[where] * len(arg_types))


def add_return(block: ir.Block, values: Sequence[ir.Value], loc: ir.Location | None = None) -> None:
    """End a function body."""
    from mlir import ir

    ir.Operation.create(
        "func.return", operands=list(values), loc=_location(loc, block.owner.operation), ip=ir.InsertionPoint(block)
    )


def refresh_signature(func: ir.Operation) -> None:
    """Make a function's type that of its arguments and returned values again."""
    from mlir import ir

    block = body_of(func)
    ins = [a.type for a in block.arguments]
    outs = [v.type for v in terminator_of(block).operands]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(ins, outs, func.context), func.context)


# --- building and changing -------------------------------------------------------------------


def mlir_type(type_: Type) -> ir.Type:
    """MLIR's object for a type, in the entered context."""
    from mlir import ir

    return ir.Type.parse(type_to_mlir(type_))


def create(
    cls: type[Op],
    operands: Sequence[ir.Value],
    attrs: Mapping[str, Any],
    result_types: Sequence[Type],
    ip: ir.InsertionPoint | ir.Block | ir.Operation,
    loc: ir.Location | Loc | None = None,
) -> ir.Operation:
    """Build an op of the table.

    Args:
        attrs: plain values; those equal to their default are left out.
        ip: an insertion point, a block (insert at its end) or an op (insert before it).
        loc: default: the location of ``ip`` if that is an op, else unknown.

    Raises IRError for an attribute the op does not have, or one that it lacks.
    """
    from mlir import ir

    if cls.dialect != DIALECT:
        ir.Context.current.get_dialect_descriptor(cls.dialect)
    cls.full_attrs(attrs)
    texts = {
        name: ir.Attribute.parse(cls.attrs[name].kind.text(value))
        for name, value in attrs.items()
        if not cls.attrs[name].is_default(value)
    }
    anchor = ip if isinstance(ip, ir.Operation) else None
    return ir.Operation.create(
        cls.full_name(),
        results=[mlir_type(t) for t in result_types],
        operands=list(operands),
        attributes=texts,
        regions=cls.regions,
        loc=_location(loc, anchor),
        ip=ip if isinstance(ip, ir.InsertionPoint) else ir.InsertionPoint(ip),
    )


def set_attributes(op: ir.Operation, attrs: Mapping[str, Any]) -> None:
    """Give attributes of an op of the table these plain values; default ones are left out."""
    from mlir import ir

    cls = op_class(op)
    assert cls is not None
    for name, value in attrs.items():
        definition = cls.attrs[name]
        if not definition.is_default(value):
            op.attributes[name] = ir.Attribute.parse(definition.kind.text(value))
        elif name in op.attributes:
            del op.attributes[name]


def set_type(value: ir.Value, type_: Type) -> None:
    """Change what is known of a value. A function's signature is not: see `refresh_signature`."""
    value.set_type(mlir_type(type_))


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Use ``values`` instead of the op's results everywhere, and erase it.

    Types of users are left as they are; raises InternalError when the counts differ.
    """
    if len(values) != len(op.results):
        raise InternalError(f"{op.name} has {len(op.results)} results, not {len(values)}")
    for old, new in zip(list(op.results), values, strict=True):
        if old != new:
            old.replace_all_uses_with(new)
    erase(op)


def erase(op: ir.Operation) -> None:
    """Erase an op; raises InternalError if a result is still used (MLIR would abort)."""
    if is_used(op):
        raise InternalError(f"{op.name} is erased but its results are used")
    op.erase()


def _location(loc: ir.Location | Loc | None, anchor: ir.Operation | None) -> ir.Location:
    if isinstance(loc, Loc):
        return to_location(loc)
    if loc is not None:
        return loc
    if anchor is not None:
        return anchor.location
    from mlir import ir

    return ir.Location.unknown()
