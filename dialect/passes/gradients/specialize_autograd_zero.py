"""Gradient arithmetic where definedness is known, or was observed and is guarded (R1.43)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mlir import ir

from ...ir.types import BOOL_SCALAR, TensorType
from ...mlir.facts import behind_observers, constant_value, is_constant_op, source_of
from ...mlir.rewrite import create, op_class, replace, terminator_of, type_of
from ...mlir.typed_values import main_functions
from ...ops.control_flow.control import ControlFlow, If
from ...ops.create import Constant
from ...ops.elementwise.binary import Add
from ...ops.gradient_ops import AutogradAdd, AutogradZero, Definedness
from ...ops.speculation import DiffGraph, Guard, Profile, Subgraph
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass
from .definedness import observed_definedness


def _sum(m: Match) -> int:
    op, (a, b) = m.op, m.op.operands
    defined = [_is_defined(a, m.options.definedness), _is_defined(b, m.options.definedness)]
    if False in defined:
        new = b if defined[0] is False else a
    elif all(defined):
        new = create(Add, [a, b], {}, [type_of(op.results[0])], op).results[0]
    else:
        return 0
    return _replace_by(new, op)


def _test(m: Match) -> int:
    assert issubclass(m.cls, Definedness)
    answer = m.cls.decide([_is_defined(v, m.options.definedness) for v in m.op.operands])
    if answer is None:
        return 0
    constant = create(Constant, [], {"value": answer}, [BOOL_SCALAR], m.op)
    return _replace_by(constant.results[0], m.op)


def _replace_by(new: ir.Value, op: ir.Operation) -> int:
    """Replace an op; control flow may share the type of its result with other values."""
    if new.type != op.results[0].type:
        attrs, out = {"site": 0}, type_of(op.results[0])
        new = create(Profile, [new], attrs, [out], op).results[0]
    replace(op, [new])
    return 1


@register_pass
@dataclass(frozen=True)
class SpecializeAutogradZero(PatternPass):
    """Drop undefined addends, add defined ones plainly, and decide ``any_nonzero`` where known.

    An undefined tensor is the result of ``autograd_zero`` or of a type that says so. Defined are
    results of ops that compute or view, and types that say so; arguments may be either.

    With ``speculate``, an argument that was always observed to be defined, or never, is taken to be
    so on one side of a branch that tests it. The other side is a fallback graph of everything.
    """

    name: ClassVar[str] = "specialize-autograd-zero"
    speculate: bool = False
    definedness: dict[ir.Value, bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # what is taken to be so of arguments
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("ops-specialized", (AutogradAdd,), _sum),
        Pattern("ops-specialized", (Definedness,), _test),
    )

    def run(self, module: ir.Module) -> None:
        funcs = main_functions(module) if self.speculate else []
        guards = [guard for func in funcs if (guard := observed_definedness(module, func))]
        for guard in guards:
            self.definedness.update(guard.definedness)
        super().run(module)
        self.definedness.clear()
        for guard in guards:
            guard.insert()
            self.count("definedness-guards")


def _is_defined(value: ir.Value, definedness: Mapping[ir.Value, bool]) -> bool | None:
    """True or False where it is known, of arguments by ``definedness``; else None."""
    source = source_of(value)
    if source is None and behind_observers(value) in definedness:
        return definedness[behind_observers(value)]
    for type_ in (type_of(value), type_of(behind_observers(value))):
        if isinstance(type_, TensorType) and type_.defined is not None:
            return type_.defined
    if source is None or is_constant_op(source):
        return None if source is None else True
    cls = op_class(source)
    if cls is AutogradZero:
        return False
    if cls is AutogradAdd:
        return _added(source, definedness)
    if cls is If:
        return _chosen(source, list(source.results).index(behind_observers(value)), definedness)
    # Loops, calls and guards pass on what they get.
    passes_on = cls is None or issubclass(cls, (ControlFlow, Subgraph, DiffGraph, Guard))
    return None if passes_on else True


def _added(source: ir.Operation, definedness: Mapping[ir.Value, bool]) -> bool | None:
    """Definedness of a sum of any number of terms: that of one of them is enough."""
    flags: set[bool | None] = set()
    todo, seen = list(source.operands), set[ir.Value]()
    while todo:
        value = todo.pop()
        maker = source_of(value)
        if maker is not None and op_class(maker) is AutogradAdd:
            todo += [v for v in maker.operands if v not in seen]
            seen.update(maker.operands)
        else:
            flags.add(_is_defined(value, definedness))
    return True if True in flags else None if None in flags else False


def _chosen(branch: ir.Operation, index: int, definedness: Mapping[ir.Value, bool]) -> bool | None:
    """Definedness of a result of a branch: that of the block taken, or of both if they agree."""
    yielded = [terminator_of(region.blocks[0]).operands[index] for region in branch.regions]
    condition = constant_value(branch.operands[0])
    if condition is not None:
        return _is_defined(yielded[0 if condition else 1], definedness)
    a, b = (_is_defined(v, definedness) for v in yielded)
    return a if a == b else None
