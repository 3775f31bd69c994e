"""Outline one loop with what belongs to it: a fusion group of a loop (see `fuse-loops`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ...errors import ProfuseError
from ...guards.checks import devices_of
from ...ir.dtypes import BOOL, C128, F64, I64, DType
from ...ir.op import Fusion, Op
from ...ir.types import ListedType, ListType, ScalarType, TensorType, Type
from ...mlir.aliases import WrittenMemory
from ...mlir.facts import is_constant_op
from ...mlir.nesting import encloses
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    defining_op,
    is_a,
    is_pure,
    is_terminator,
    op_class,
    ops_in,
    set_type,
    terminator_of,
    type_of,
    users,
    walk,
)
from ...mlir.typed_values import Types, constant_type
from ...ops.control_flow.control import LOOPS, ControlFlow
from ...ops.indexing.scatter import Copy
from ...ops.queries import Item, ToTensor
from ...ops.speculation import FusionGroup, Identity
from ...reasons import Kind, Reason
from ..cleanup.unroll_loops import UNROLLED
from ..partition.outline import GroupRefused, Outliner, free_values, is_embedded
from .fusion_types import argument_types
from .loop_types import infer_function, refusal

_WITH_LOOP = (Fusion.POINTWISE, Fusion.VIEW)


def loops_in(func: ir.Operation) -> Iterator[ir.Operation]:
    """The loops of a function, outer ones before those in them."""
    return (op for op in walk(func) if op_class(op) in LOOPS)


def joined(loop: ir.Operation, others: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The loops among ``others`` that go into one function with a loop: it alone reads them.

    Arrays that they write then stay where they are, and are not copied in between.
    """
    members = _members(loop, WrittenMemory(func_of(loop)), others)[:-1]
    return [op for op in members if op_class(op) in LOOPS]


class LoopOutliner(Outliner):
    """Moves a loop, and those among ``others`` that `joined` tells, into a function of its own."""

    call = FusionGroup

    def __init__(
        self, module: ir.Module, loop: ir.Operation, prefix: str, dynamic: bool, others: Sequence[ir.Operation] = ()
    ) -> None:
        super().__init__(module)
        self.loop, self.prefix, self.dynamic, self.others = loop, prefix, dynamic, others

    def run(self) -> None:
        """Outline the loop; raises GroupRefused, and then leaves things half changed."""
        memory = WrittenMemory(func_of(self.loop))
        behind = _followers(self.loop, memory)
        members = [*_members(self.loop, memory, self.others), *behind]
        results = [v for op in (self.loop, *behind) for v in op.results]
        outputs = [v for v in results if any(user not in members for user in users(v))]
        for op in members:
            for inner in [op, *walk(op)]:
                cls = op_class(inner)
                if (cls is not None and cls.writes) or memory.is_touched(inner):
                    raise GroupRefused(Reason(Kind.WRITTEN_VIEW), inner)
        dtypes = [_number(value, self.loop) for value in outputs]
        self.numbers = {k: dtype for k, dtype in enumerate(dtypes) if dtype is not None}
        items = []
        for k, dtype in self.numbers.items():
            tensor, item = self._hand_on(outputs[k], dtype, members)
            members.append(tensor)
            outputs[k] = tensor.results[0]
            items.append(item)
        self.outline(members, outputs, [*items, self.loop][0])

    def _hand_on(self, value: ir.Value, dtype: DType, members: Sequence[ir.Operation]) -> tuple[ir.Operation, ...]:
        """Have what is no member read a number from a tensor, in which it can leave the function.

        Returns the op that makes that tensor, and the one before the loop that reads it.
        """
        end, loc = terminator_of(self.loop.block), self.loop.location
        tensor = create(ToTensor, [value], {}, [TensorType(dtype, ())], end, loc)
        item = create(Item, list(tensor.results), {"dtype": dtype}, [type_of(value)], self.loop, loc)
        for user in users(value):
            # What is a member, too, has a result of its own.
            if user in members or user == tensor:
                continue
            if op_class(user) is ToTensor:
                user.results[0].replace_all_uses_with(tensor.results[0])
                user.erase()
                continue
            for k, operand in enumerate(user.operands):
                if operand == value:
                    user.operands[k] = item.results[0]
        return tensor, item

    def argument_types(self, values: list[ir.Value]) -> Sequence[Type]:
        for type_ in map(type_of, values):
            if isinstance(type_, (ListType, ListedType)):
                raise GroupRefused(Reason(Kind.LISTS), self.loop)
            if not isinstance(type_, TensorType):
                continue
            if not type_.is_complete or type_.defined is False:
                raise GroupRefused(Reason(Kind.UNKNOWN_TYPE), self.loop)
            if not self.dynamic and not type_.is_static:
                raise GroupRefused(Reason(Kind.SIZES_VARY), self.loop)
        devices = sorted(devices_of(map(type_of, values)))
        if devices[1:]:
            raise GroupRefused(Reason(Kind.DEVICES, detail=", ".join(devices)), self.loop)
        return argument_types(values)

    def refine(self, func: ir.Operation, outputs: list[ir.Value]) -> Sequence[Type]:
        _drop_observers(func)
        _copy_carried(func)
        for op in loops_in(func):
            op.attributes[UNROLLED] = ir.UnitAttr.get()  # LLVM unrolls what it sees whole
        types = infer_function(func)
        for k, value in enumerate(outputs):
            type_ = type_of(value)
            if k not in self.numbers and isinstance(type_, TensorType):
                # What a block yields has the type of that which it is handed to.
                is_tied = any(is_terminator(user) or len(user.regions) for user in users(value))
                if type_.is_complete or is_tied:
                    types[k] = type_
        return types


def _number(value: ir.Value, loop: ir.Operation) -> DType | None:
    """The dtype of a Python number, which leaves a kernel in a tensor; None for tensors."""
    type_ = type_of(value)
    if isinstance(type_, TensorType):
        return None
    if isinstance(type_, ScalarType) and type_.dtype in (BOOL, I64, F64, C128):
        return type_.dtype
    raise GroupRefused(Reason(Kind.PYTHON_NUMBER), loop)


def _members(loop: ir.Operation, memory: WrittenMemory, others: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The loop, and before it what computes values of its block that nothing else reads.

    Ops on numbers are among them whoever reads their results, also those of the blocks around:
    what they compute may be a size.
    """
    order = {v: n for n, op in enumerate(_around(loop)) for v in op.results}
    sources: dict[int, ir.Operation] = {}
    members = [loop]
    waiting = list(free_values(members))
    while waiting:
        value = waiting.pop()
        source = defining_op(value)
        if source is None or value not in order or order[value] in sources:
            continue
        if is_constant_op(source) or memory.is_touched(source):
            continue
        if source.block != loop.block and not _are_numbers(source):
            continue
        if not _may_join(source, [*sources.values(), loop], others):
            continue
        sources[order[value]] = source
        waiting += free_values([source])
    return [*(sources[n] for n in sorted(sources)), loop]


def _around(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of the blocks in which a loop is, up to the function's, outer ones first."""
    ops, op = list[ir.Operation](), loop
    while op.name != "func.func":
        ops[:0] = ops_in(op.block)
        op = op.parent.operation
    return ops


def _are_numbers(op: ir.Operation) -> bool:
    return all(isinstance(type_of(v), ScalarType) for v in op.results)


def _followers(loop: ir.Operation, memory: WrittenMemory) -> list[ir.Operation]:
    """The ops behind a loop that compute numbers of its numbers, and of what is there before it.

    Without them, each would be evaluated in Python.
    """
    types, followers = Types(), list[ir.Operation]()
    inside = {v for v in loop.results if _is_single(type_of(v))}
    is_behind = False
    late: set[ir.Operation] = set()  # ops behind the loop that stay there
    for op in ops_in(loop.block):
        type_ = constant_type(op.results[0]) if is_constant_op(op) else None
        if type_ is not None and is_embedded(type_):
            types[op.results[0]] = type_  # each function has constants of its own
        elif op == loop:
            is_behind = True
        elif is_behind:
            if inside.isdisjoint(op.operands) or not _follows(op, inside, late, types, memory):
                late.add(op)
                continue
            followers.append(op)
            inside.update(op.results)
    return followers


def _follows(
    op: ir.Operation, inside: set[ir.Value], late: set[ir.Operation], known: Types, memory: WrittenMemory
) -> bool:
    cls = op_class(op)
    if cls is None or len(op.regions) or not is_pure(op) or issubclass(cls, Identity):
        return False
    if memory.is_touched(op) or any(defining_op(v) in late for v in op.operands if v not in inside):
        return False
    if not all(_is_single(known[v]) for v in op.operands):
        return False
    types, attrs = known.of(op), attrs_of(op)
    try:
        result_types = cls.infer(types, attrs)
        reason = refusal(cls, types, attrs)
    except ProfuseError:
        return False
    if reason is not None or not all(map(_is_single, result_types)):
        return False
    for value, type_ in zip(op.results, result_types, strict=True):
        known[value] = type_
        if isinstance(type_, TensorType):
            set_type(value, type_)
    return True


def _is_single(type_: Type) -> bool:
    """True for the numbers that kernels have, Python's and those of tensors without axes."""
    if isinstance(type_, TensorType):
        return type_.shape == () and type_.is_complete
    return isinstance(type_, ScalarType) and type_.dtype in (BOOL, I64, F64, C128)


def _may_join(op: ir.Operation, members: Sequence[ir.Operation], loops: Sequence[ir.Operation]) -> bool:
    cls = op_class(op)
    if any(op == loop for loop in loops):
        return _is_read_by(members, op)
    if cls is None or len(op.regions) or not is_pure(op) or issubclass(cls, Identity):
        return False
    if _are_numbers(op):
        return cls.fusion in (*_WITH_LOOP, Fusion.QUERY)
    if cls.fusion not in _WITH_LOOP or not all(isinstance(type_of(v), TensorType) for v in op.results):
        return False
    if not has_known_sizes(op, cls, if_refused=True):  # the types of the whole group may tell
        return False
    return _is_free(cls) or _is_read_by(members, op)


def _is_free(cls: type[Op]) -> bool:
    """True for views of memory, which are taken anew wherever they are read.

    As an argument, a view has the layout of the profile, and not that of another group's result.
    """
    return cls.fusion is Fusion.VIEW and bool(cls.aliases) and not cls.layout_decides


def _is_read_by(members: Sequence[ir.Operation], op: ir.Operation) -> bool:
    """True if nothing but these reads what an op makes."""
    return all(any(encloses(member, user) for member in members) for v in op.results for user in users(v))


def has_known_sizes(op: ir.Operation, cls: type[Op], *, if_refused: bool) -> bool:
    """True if sizes of results follow from the types of operands, or these are not known either.

    ``if_refused``: what is said of an op that cannot have operands of these types.
    """
    types = [_known_type(v) for v in op.operands]
    if any(isinstance(t, TensorType) and not t.is_complete for t in types):
        return True
    try:
        result_types = cls.infer(types, attrs_of(op))
    except ProfuseError:
        return if_refused
    return all(t.is_complete for t in result_types if isinstance(t, TensorType))


def _known_type(value: ir.Value) -> Type:
    """The type of a value, with the number that follows from sizes alone."""
    type_, source = constant_type(value) or type_of(value), defining_op(value)
    cls = None if source is None else op_class(source)
    if not isinstance(type_, ScalarType) or type_.value is not None or cls is None:
        return type_
    assert source is not None
    if cls.fusion not in (*_WITH_LOOP, Fusion.QUERY) or len(source.regions):
        return type_
    try:
        result_types = cls.infer([_known_type(v) for v in source.operands], attrs_of(source))
    except ProfuseError:
        return type_
    return result_types[list(source.results).index(value)]


def func_of(op: ir.Operation) -> ir.Operation:
    """The function that an op is in."""
    while op.name != "func.func":
        op = op.parent.operation
    return op


def _copy_carried(func: ir.Operation) -> None:
    """Have no block pass on an argument of the function: its type says how it lies in memory.

    Kernels make such a copy once, where a loop writes the array, and else not at all.
    """
    body = body_of(func)
    copies: dict[ir.Value, ir.Value] = {}
    for op in list(walk(func)):
        if not is_a(op, ControlFlow) and op.name not in ("scf.yield", "scf.condition"):
            continue
        for number, value in enumerate(op.operands):
            if value not in list(body.arguments) or not isinstance(type_of(value), TensorType):
                continue
            if value not in copies:
                first = body.operations[0].operation
                type_ = type_of(value)
                assert isinstance(type_, TensorType)
                copies[value] = create(
                    Copy, [value], {}, [TensorType(type_.dtype, type_.shape)], first, func.location
                ).results[0]
            op.operands[number] = copies[value]


def _drop_observers(func: ir.Operation) -> None:
    for op in list(walk(func)):
        if is_a(op, Identity) and len(op.results) == len(op.operands):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()
