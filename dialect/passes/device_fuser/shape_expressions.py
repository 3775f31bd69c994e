"""The sizes of what a group computes, as values of the graph around it (R3.28 - R3.31, A8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...errors import InternalError
from ...ir.op import Op, op_named
from ...ir.program import Instr, Program
from ...ir.types import INTS, TensorType, Type, erased_value, type_of
from ...ops.create import Constant
from ...ops.late import Late
from ...ops.nn.composite import Composite
from ...ops.size_lists import SizesOf
from ...reasons import Effect, Kind, Reason
from .shape_rules import SizedOp, Sizes, derived_sizes


class ShapeExpressions:
    """Of the values of a group's function, values of type ``!profuse.ints`` in the graph that calls it.

    There are two kinds. Those of `before` follow from operands of the call alone: they may stand in
    front of it, so that guards can ask for them. Those of `after` stand behind the call, and begin
    with the sizes of the results that are there anyway; what reads the results uses them. Sizes of
    operands and of results are queried, and never derived as well.

    The ops that make the sizes are not in the program until they are put there, see `instrs`.
    """

    @classmethod
    def before(cls, program: Program, call: Instr, body: Program) -> ShapeExpressions:
        """What follows from the operands of a call, of which ``body`` is the function."""
        return cls(program, call, body, ())

    @classmethod
    def after(cls, program: Program, call: Instr, body: Program, results: Collection[int]) -> ShapeExpressions:
        """What follows from the operands of a call and from its results of these numbers."""
        return cls(program, call, body, results)

    def __init__(self, program: Program, call: Instr, body: Program, results: Collection[int]) -> None:
        if len(body.inputs) != len(call.operands) or len(body.outputs) != len(call.results):
            raise InternalError(f"@{body.name} does not have the operands and results that it is called with")
        self._program, self._body, self._loc = program, body, call.loc
        self._outer = dict(zip(body.inputs, call.operands, strict=True))
        self._sizes: dict[int, int] = {}
        self._reasons: dict[int, Reason] = {}
        self._instrs: list[Instr] = []
        for argument, operand in self._outer.items():
            if isinstance(body.type_of(argument), TensorType):
                (self._sizes[argument],) = self._emit(SizesOf, [operand], {})
        for k in results:
            if body.outputs[k] not in self._sizes and self._may_be_tensor(body.outputs[k]):
                (self._sizes[body.outputs[k]],) = self._emit(SizesOf, [call.results[k]], {})
        self._makers = {r: i for i in body.body.instrs for r in i.results}
        for instr in body.body.instrs:
            self._derive(instr)

    def of(self, value: int) -> Sizes:
        """The value that holds the sizes of a value of the function; None where they are not expressed."""
        return self._sizes.get(value)

    def reason(self, value: int) -> Reason:
        """The reason why the sizes of a value are not expressed."""
        return self._reasons.get(value, Reason(Kind.UNKNOWN_TYPE, effect=Effect.RESULT_KEPT, loc=self._loc))

    def instrs(self, sizes: Iterable[int]) -> list[Instr]:
        """The ops that make these values, which `of` has given, in order."""
        needed = set(sizes)
        chosen = []
        for instr in reversed(self._instrs):
            if not needed.isdisjoint(instr.results):
                needed.update(instr.operands)
                chosen.append(instr)
        return chosen[::-1]

    # --- deriving --------------------------------------------------------------------------------

    def _derive(self, instr: Instr) -> None:
        if all(r in self._sizes or not self._may_be_tensor(r) for r in instr.results):
            return
        site = None if instr.blocks else self._site(instr)
        derived: Sequence[Sizes] = (None,) * len(instr.results)
        if site is not None:
            derived = derived_sizes(site, self._emit)
        if len(derived) != len(instr.results):
            raise InternalError(f"the rule of {instr.op.name} does not give the sizes of each result")
        for result, sizes in zip(instr.results, derived, strict=True):
            if result in self._sizes:
                continue
            if sizes is not None:
                self._sizes[result] = sizes
            else:
                self._reasons[result] = self._refusal(instr)

    def _refusal(self, instr: Instr) -> Reason:
        """The reason of the first operand whose sizes are missing, or that the op has no rule."""
        reasons = (self._reasons.get(v) for v in instr.operands)
        own = Reason(Kind.SIZES_NOT_EXPRESSED, instr.op.name, effect=Effect.RESULT_KEPT, loc=instr.loc)
        return next((r for r in reasons if r is not None), own)

    def _site(self, instr: Instr) -> SizedOp | None:
        """An op as rules see it; None where a value that decides the sizes is made in the group."""
        op, operands = instr.op, instr.operands
        attrs = op.full_attrs(instr.attrs)
        late: dict[str, int] = {}
        if op is Late:
            op, names = op_named(attrs["op"]), attrs["names"]
            count = len(operands) - len(names)
            attrs = {name: field.default for name, field in op.attrs.items() if field.optional}
            for name, value in zip(names, operands[count:], strict=True):
                maker = self._makers.get(value)
                if name == "given":  # it tells which operands there are
                    if maker is None or maker.op is not Constant or maker.operands:
                        return None
                    attrs[name] = maker.attrs["value"]
                    continue
                outer = self._value(value)
                if outer is None:
                    return None
                late[name] = outer
            operands = operands[:count]
        names, operands = _named(op, attrs, operands)
        return SizedOp(
            op,
            names,
            tuple(self._sizes.get(v) for v in operands),
            tuple(map(self._may_be_tensor, operands)),
            attrs,
            late,
            len(instr.results),
        )

    def _value(self, value: int) -> int | None:
        """The value of the graph that holds, at run time, what a value of the function is that is no tensor.

        A conditional constant is what its observer has seen; outside the observed value is read,
        which is right whatever it is. None for what the group computes itself.
        """
        maker = self._makers.get(value)
        if maker is not None and maker.op is Constant and maker.operands:
            value = maker.operands[0]
        if value in self._outer or maker is None or maker.op is not Constant or maker.operands:
            return self._outer.get(value)
        return self._constant(self._body.type_of(value), maker.attrs["value"])

    def _may_be_tensor(self, value: int) -> bool:
        return isinstance(self._body.type_of(value), TensorType)

    def _emit(
        self, op: type[Op], operands: Sequence[int], attrs: Mapping[str, Any], late: Mapping[str, int] | None = None
    ) -> tuple[int, ...]:
        literal = {name: value for name, value in attrs.items() if not op.attrs[name].is_default(value)}
        types = (INTS,) * len(op.results)
        if not late:
            return self._made(types, op, operands, literal)
        constants = {name: self._constant(type_of(value), value) for name, value in literal.items()}
        named = {**late, **constants}
        return self._made(types, Late, (*operands, *named.values()), {"op": op.name, "names": tuple(named)})

    def _constant(self, type_: Type, value: Any) -> int:
        return self._made((erased_value(type_),), Constant, (), {"value": value})[0]

    def _made(
        self, types: Sequence[Type], op: type[Op], operands: Sequence[int], attrs: dict[str, Any]
    ) -> tuple[int, ...]:
        results = tuple(map(self._program.new_value, types))
        self._instrs.append(Instr(op, tuple(operands), results, attrs, (), self._loc))
        return results


def _named(op: type[Op], attrs: Mapping[str, Any], operands: Sequence[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The operands of an op that are there, and the name of each."""
    if issubclass(op, Composite):
        values = op.unpacked(attrs, operands)
        pairs = [(n, v) for n, v in zip(op.names(len(values)), values, strict=True) if v is not None]
        return tuple(n for n, _ in pairs), tuple(v for _, v in pairs)
    extra = len(operands) - len(op.operands)
    names = [f.name for f in op.operands for _ in range(1 + extra if f.variadic else 1)]
    return tuple(names), tuple(operands)
