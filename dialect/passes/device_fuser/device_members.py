"""The instructions that the fuser of device groups may have (R3.15), and those that its groups copy (R3.19)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...analysis.alias import Aliases
from ...analysis.chunk_motion import CHUNKS
from ...analysis.group_copies import is_view
from ...dataclass import dataclass
from ...errors import IRError, ProfuseError
from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.op import Attrs, Fusion, Op, op_named
from ...ir.program import Instr, Program
from ...ir.types import ListedType, ListType, ScalarType, TensorType, Type, known_value
from ...ops.control_flow.control import For
from ...ops.create import Constant
from ...ops.late import Late
from ...ops.manipulation.join import Concatenate, Stack
from ...ops.queries import Query
from ...ops.speculation import ProfileValue
from ...reasons import Effect, Kind, Reason
from ..partition.outline import is_embedded
from ..speculate.fusion_types import number_refusal

FULL = 70
"""The compute capability, times ten, from which on devices run all kernels; older ones run elementwise ones."""

_COMPUTING = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)


@dataclass(frozen=True)
class MemberOptions:
    """The options of `DeviceMembers`.

    Attributes:
        host: True = ops on the host's tensors take part.
        capability: of the device, times ten; 0 = not known.
        concat: True = ops that join tensors take part.
        leading_chunks: True = chunks take part.
    """

    host: bool = False
    capability: int = 0
    concat: bool = False
    leading_chunks: bool = False


class DeviceMembers:
    """What is known of the instructions of a program, by the types that its values have.

    ``refuse`` is told of each instruction that stays outside although it computes, with the reason.
    Raises IRError for a constant that depends on what no observer has seen.
    """

    def __init__(self, program: Program, options: MemberOptions, refuse: Callable[[Instr, Reason], None]) -> None:
        self.program, self.options, self.refuse = program, options, refuse
        self._types: dict[int, Type] = {}
        self._copied: set[int] = set()
        self._makers = {r: i for i in program.body.walk() for r in i.results}
        self._carried = {v for i in program.body.walk() if i.op is For for v in i.blocks[0].args}
        writes = any(instr.op.writes for instr in program.body.walk())
        self._aliases = Aliases(program.body, program.type_of) if writes else None
        self._of_arguments = devices_of(map(program.type_of, program.inputs))
        for instr in program.body.walk():
            self._infer(instr)

    def type_of(self, value: int) -> Type:
        """The type of a value, with what is known of the values of numbers."""
        type_ = self._types.get(value)
        return self.program.type_of(value) if type_ is None else type_

    def is_copied(self, instr: Instr) -> bool:
        """True for a constant, or a number that follows from types, which groups have copies of."""
        return bool(instr.results) and instr.results[0] in self._copied

    def computes(self, instr: Instr) -> bool:
        """False for a view: a group of such alone would only copy."""
        return not is_view(instr) and self._bound(instr)[0].fusion in _COMPUTING

    def devices(self, instr: Instr) -> frozenset[str] | None:
        """The devices of what an instruction reads and makes, as far as known; None = it stays outside."""
        op, attrs, operands = self._bound(instr)
        types = [self.type_of(v) for v in operands]
        all_types = [*types, *map(self.program.type_of, instr.results)]
        devices = devices_of(all_types) or (set() if _has_host_number(all_types) else self._of_arguments)
        if self.is_copied(instr) or instr.blocks or op.fusion in (Fusion.NONE, Fusion.QUERY):
            return None
        if not self.options.host and (HOST in devices or (not devices and _has_host_number(all_types))):
            return None  # the general fuser's
        if (op in CHUNKS and not self.options.leading_chunks) or (
            issubclass(op, (Concatenate, Stack)) and not self.options.concat
        ):
            return None
        reason = self._refusal(instr, op, attrs, types, devices)
        if reason is not None:
            self.refuse(instr, replace(reason, op=instr.op.name, loc=instr.loc, effect=Effect.NOT_FUSED))
            return None
        return frozenset(devices)

    # --- which ops ----------------------------------------------------------------------------

    def _bound(self, instr: Instr) -> tuple[type[Op], Attrs, Sequence[int]]:
        """The op that an instruction is, with its attributes and the operands that these are not."""
        attrs = instr.op.full_attrs(instr.attrs)
        if instr.op is not Late:
            return instr.op, attrs, instr.operands
        count = len(instr.operands) - len(attrs["names"])
        values = [known_value(self.type_of(v)) for v in instr.operands[count:]]
        makers = [self._makers.get(v) for v in instr.operands[count:]]
        if any(m is None or m.op is not Constant for m in makers):
            return instr.op, attrs, instr.operands  # its fusion is that of no op
        try:
            return op_named(attrs["op"]), Late.bound_attrs(attrs, values), instr.operands[:count]
        except ProfuseError:
            return instr.op, attrs, instr.operands  # its run tells

    def _refusal(
        self, instr: Instr, op: type[Op], attrs: Attrs, types: Sequence[Type], devices: set[str]
    ) -> Reason | None:
        if not op.pure:
            return Reason(Kind.SIDE_EFFECTS)
        if devices - {HOST} and 0 < self.options.capability < FULL and op.fusion is not Fusion.POINTWISE:
            return Reason(Kind.OLD_DEVICE)
        if len(devices) > 1:
            return Reason(Kind.DEVICES, detail=", ".join(sorted(devices)))
        if devices <= {HOST} and self._replaces_part_of_carried(instr):
            return Reason(Kind.PART_OF_CARRIED)
        if self._aliases is not None and any(
            self._aliases.is_written(r) and self._aliases.of(r) != {r} for r in instr.results
        ):
            return Reason(Kind.WRITTEN_VIEW)
        for index, type_ in enumerate(types):
            if isinstance(type_, (ListType, ListedType)):
                return Reason(Kind.LIST_OPERAND, operand=index)
            if isinstance(type_, TensorType) and (not type_.is_complete or type_.defined is False):
                return Reason(Kind.UNKNOWN_OPERAND, operand=index)
        try:
            results = op.infer(types, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        tensors = [t for t in results if isinstance(t, TensorType)]
        if any(not t.is_complete for t in tensors):
            return Reason(Kind.RUN_TIME_SIZES)
        if not tensors or any(isinstance(t, ScalarType) and t.value is None for t in results):
            return Reason(Kind.PYTHON_NUMBER)
        dtypes = [t.dtype for t in (*types, *tensors) if isinstance(t, (TensorType, ScalarType))]
        if devices - {HOST} and any(dtype is not None and dtype.is_complex for dtype in dtypes):
            return Reason(Kind.COMPLEX)
        return number_refusal(op.operand_dtypes(types, attrs), types) or op.can_lower_types(types, attrs)

    def _replaces_part_of_carried(self, instr: Instr) -> bool:
        """True for an op that, evaluated by itself, writes a part of an array that a loop carries."""
        source: Instr | None = instr
        while source is not None:
            if not source.op.can_overwrite():
                return False
            value = source.operands[0]
            source = self._makers.get(value)
        return value in self._carried

    # --- numbers ------------------------------------------------------------------------------

    def _infer(self, instr: Instr) -> None:
        """Learn the values of numbers, and which of them groups can compute themselves."""
        if instr.blocks or not instr.results:
            return
        if instr.op is Constant:
            self._constant(instr)
            return
        types = [self.type_of(v) for v in instr.operands]
        attrs = instr.op.full_attrs(instr.attrs)
        try:
            results = instr.op.infer(types, attrs)
        except ProfuseError:
            return  # its run tells
        if len(results) != len(instr.results) or not all(isinstance(t, ScalarType) for t in results):
            return
        self._types.update(zip(instr.results, results, strict=True))
        of_sizes = issubclass(instr.op, Query) or all(self.is_copied_value(v) for v in instr.operands)
        is_known = all(isinstance(t, ScalarType) and t.value is not None for t in results)
        if of_sizes and is_known and instr.op.pure and instr.op.fusion is not Fusion.NONE:
            complete = all(not isinstance(t, TensorType) or t.is_complete for t in types)
            refused = number_refusal(instr.op.operand_dtypes(types, attrs), types)
            if complete and refused is None and instr.op.can_lower_types(types, attrs) is None:
                self._copied.update(instr.results)

    def is_copied_value(self, value: int) -> bool:
        """`is_copied` for the instruction that makes a value."""
        return value in self._copied

    def _constant(self, instr: Instr) -> None:
        (type_,) = Constant.infer([], Constant.full_attrs(instr.attrs))
        self._types[instr.results[0]] = type_
        for operand in instr.operands:
            maker = self._makers.get(operand)
            if maker is None or maker.op is not ProfileValue:
                raise IRError(
                    "a constant depends on a value that no observer has seen",
                    loc=instr.loc,
                    hint="profile_value sees it",
                )
        if instr.operands or is_embedded(type_):
            self._copied.update(instr.results)


def _has_host_number(types: Sequence[Type]) -> bool:
    """True if a tensor is known to be on the host."""
    return any(isinstance(t, TensorType) and t.device == HOST for t in types)
