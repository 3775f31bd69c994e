"""An op some of whose attributes are values of the run (R3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import DTypeError, IRError, ShapeError
from ..ir.attrs import STR, STR_ARRAY
from ..ir.dtypes import DTYPES, DType
from ..ir.op import AttrDef, Attrs, Failure, Op, attr, op_named, operand, result
from ..ir.symbolic import Sym
from ..ir.types import BOOL_SCALAR, BOOLS, FLOAT_SCALAR, INT_SCALAR, INTS, Type, erased_value, known_value
from ..ir.types import STR as TEXT


def _dtype(value: int) -> DType:
    if not 0 <= value < len(DTYPES):
        raise DTypeError(f"no dtype has the number {value}; there are {len(DTYPES)}")
    return DTYPES[value]


def _itself(value: Any) -> Any:
    return value


def _axes(value: tuple[int, ...] | int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


# Kind of attribute -> the types of the values that it may be, and what makes the attribute of them.
_VALUES: dict[str, tuple[tuple[Type, ...], Callable[[Any], Any]]] = {
    "bool": ((BOOL_SCALAR,), _itself),
    "integer": ((INT_SCALAR,), _itself),
    "float": ((FLOAT_SCALAR,), _itself),
    "string": ((TEXT,), _itself),
    "integer array": ((INTS, INT_SCALAR), _axes),
    "bool array": ((BOOLS,), _itself),
    "dtype": ((INT_SCALAR,), _dtype),
}


class Late(Op, name="late"):
    """The op ``op`` with the attributes ``names``, which the last operands give; others have their defaults.

    A bool, an integer, a float and a string are such values; a list of integers, of which one alone
    is a list, too, and None is an attribute left out; a list of bools; a dtype is its position in
    `DTYPES`, as `dtype_code` gives it. `bind-late` makes of it the op itself once the values are constants.
    """

    inputs = operand(variadic=True)
    outs = result(variadic=True)
    op = attr(STR)
    names = attr(STR_ARRAY)
    failure = Failure.CONTENTS
    undifferentiable = "which op it is, is known only when it runs: give it constants"

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        values = [known_value(t) for t in types[len(types) - len(attrs["names"]) :]]
        if any(value is None or _has_symbols(value) for value in values):
            return ()
        return op_named(attrs["op"]).infer(types[: -len(values)], cls.bound_attrs(attrs, values))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        op, bound_attrs, operands = cls.plain_form(attrs, args)
        return op.evaluate(bound_attrs, *operands)

    @classmethod
    def counts_results(cls, attrs: Attrs) -> bool:
        return op_named(attrs["op"]).counts_results({})

    @classmethod
    def plain_form(cls, attrs: Attrs, args: Sequence[Any]) -> tuple[type[Op], dict[str, Any], Sequence[Any]]:
        """The op that the values among ``args`` make of it, its attributes and operands; raises as `bound_attrs`."""
        count = len(args) - len(attrs["names"])
        return op_named(attrs["op"]), cls.bound_attrs(attrs, args[count:]), args[:count]

    @classmethod
    def bound_attrs(cls, attrs: Attrs, values: Sequence[Any]) -> dict[str, Any]:
        """All attributes of the op, of which those that are named have these values.

        Raises DTypeError, or ShapeError for None where the op needs the attribute.
        """
        op = op_named(attrs["op"])
        named = zip(attrs["names"], values, strict=True)
        return op.full_attrs({name: _attribute(op, op.attrs[name], value) for name, value in named})

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        try:
            op = op_named(attrs["op"])
        except IRError as error:
            yield error.what
            return
        names = attrs["names"]
        reason = _unfit(op)
        if reason:
            yield f"{op.full_name()} {reason}"
        elif not names:
            yield "names no attribute"
        elif len(set(names)) < len(names):
            yield "names an attribute twice"
        elif len(types) < len(names):
            yield f"{len(types)} operands cannot give {len(names)} attributes"
        else:
            yield from _wrong_values(op, names, types[len(types) - len(names) :])
            yield from _wrong_count(op, len(types) - len(names))


def _has_symbols(value: Any) -> bool:
    return isinstance(value, Sym) or (isinstance(value, tuple) and any(isinstance(item, Sym) for item in value))


def _attribute(op: type[Op], definition: AttrDef, value: Any) -> Any:
    if value is not None:
        return _VALUES[definition.kind.name][1](value)
    if definition.optional and definition.default is None:
        return None
    raise ShapeError(f"{op.name} needs {definition.name}, which is None")


def _unfit(op: type[Op]) -> str:
    """The reason why an op cannot be late; "" if it can."""
    if op.foreign or op.regions or not op.pure or op.dialect != Late.dialect:
        return "does more than compute its results"
    others = [a.name for a in op.attrs.values() if not a.optional and a.kind.name not in _VALUES]
    return f"needs {others[0]}, which no value of the run can be" if others else ""


def _wrong_values(op: type[Op], names: Sequence[str], types: Sequence[Type]) -> Iterator[str]:
    for name, definition in op.attrs.items():
        if not definition.optional and name not in names:
            yield f"{op.full_name()} needs attribute '{name}', which is not named"
    for name, type_ in zip(names, types, strict=True):
        if name not in op.attrs:
            yield f"{op.full_name()} has no attribute '{name}'"
            continue
        kind = op.attrs[name].kind.name
        allowed, _ = _VALUES.get(kind, ((), None))
        if erased_value(type_) not in allowed:
            words = " or ".join(map(str, allowed)) or "no value of the run"
            yield f"attribute '{name}' of {op.full_name()} may be {words}, not {type_}"


def _wrong_count(op: type[Op], count: int) -> Iterator[str]:
    fixed = sum(not field.variadic for field in op.operands)
    if count < fixed or (count > fixed and fixed == len(op.operands)):
        yield f"{op.full_name()} takes {fixed} operands, not {count}"
