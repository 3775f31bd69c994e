"""Make one fusion group of a whole loop (R1.36): rounds cost no calls of kernels then."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.carried import merge_carried
from ...analysis.functional import functionalize
from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.dtypes import BOOL, F64, I64, DType
from ...ir.op import Fusion
from ...ir.program import Instr
from ...ir.types import ListType, ScalarType, TensorType, Type
from ...mlir.context import loc_of
from ...mlir.decode import decode_function
from ...mlir.facts import CONSTANTS
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    add_function,
    add_return,
    attrs_of,
    body_of,
    create,
    defining_op,
    erase,
    is_pure,
    is_terminator,
    op_class,
    ops_in,
    refresh_signature,
    replace_function,
    set_type,
    short_name,
    symbol_of,
    type_of,
    unique_symbol,
    users,
    walk,
)
from ...mlir.values import clone_tree, constant_type, main_functions
from ...ops.control_flow.control import ControlFlow, For, While
from ...ops.control_flow.native import stands_in_way
from ...ops.create import ScalarTensor
from ...ops.host_call import HostCall, shown
from ...ops.indexing.scatter import Copy
from ...ops.queries import Item
from ...ops.speculation import FusionGroup, Identity
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..cleanup.unroll_loops import UNROLLED
from .fusion_types import argument_type, is_embedded
from .loop_types import Refused, infer_function

PREFIX = "fusion_loop"
_LOOPS = (For, While)
_WITH_LOOP = (Fusion.POINTWISE, Fusion.VIEW)


@register_pass
@dataclass(frozen=True)
class FuseLoops(Pass):
    """Outline each loop, with all loops and branches in it, into a fusion group of its own.

    A loop is taken whole or not at all. All of its ops have to be lowered; products and calls on
    the host stay where they are, and then loops inside of such a loop may be taken. Writes into
    arrays that the graph has made become pure ops, also at indices that are known at run time: the
    kernel of a loop writes in place. What only the loop reads goes into the group with it. Loops
    that stay outside are noted with the reason. ``dynamic`` admits symbolic sizes.
    ``keep`` (``0:3``) are numbers of loops that stay, as `number_of` gives them. Under ``exact``
    all stay: kernels of loops fuse products with sums.
    """

    name: ClassVar[str] = "fuse-loops"
    dynamic: bool = False
    keep: str = ""
    exact: bool = False

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            if any(op_class(op) in _LOOPS for op in walk(func)):
                self._function(module, func)

    def _function(self, module: ir.Module, func: ir.Operation) -> None:
        """Take as many loops as can be: one that cannot is left as it was, with its writes."""
        given = devices_of([type_of(v) for v in body_of(func).arguments])
        refused: dict[int, Reason] = {}
        kept = {int(number) for number in self.keep.split(":") if number}
        for number, loop in enumerate(_loops(func)):
            if number in kept:
                refused[number] = Reason(Kind.NOT_LOWERED)
                continue
            reason = Reason(Kind.INEXACT) if self.exact else _refusal(loop)
            if not given <= {HOST}:
                reason = Reason(Kind.OFF_HOST)
            if reason is not None:
                refused[number] = reason
        while True:
            chosen = _outermost(func, refused)
            if not chosen:
                break
            attempt = func.clone(ip=ir.InsertionPoint(func)).operation
            before = {symbol_of(f) for f in _private(module)}
            attempt = self._functionalized(attempt, chosen)
            failure = self._attempt(module, attempt, chosen)
            if failure is None:
                self.count("groups", len(chosen))
                func.erase()
                refresh_signature(attempt)
                break
            erase(attempt)
            for made in [f for f in _private(module) if symbol_of(f) not in before]:
                made.erase()
            number, reason = failure
            refused[number] = reason
        for reason in (r for number, r in refused.items() if number not in kept):
            self.note(dataclasses.replace(reason, effect=Effect.LOOP_IN_PLAN))

    def _functionalized(self, func: ir.Operation, chosen: Sequence[int]) -> ir.Operation:
        """A function with the writes in these loops, and all others that can be, made pure."""
        program = decode_function(func)
        loops = list(_program_loops(program.body.instrs))
        inside = {id(i) for n in chosen for block in loops[n].blocks for i in block.walk()}
        made_pure, _ = functionalize(program, at_run_time=lambda write: id(write) in inside)
        if made_pure:
            self.count("ops-made-pure", made_pure)
        merge_carried(program)
        return replace_function(func, program)

    def _attempt(
        self, module: ir.Module, func: ir.Operation, chosen: Sequence[int]
    ) -> tuple[int, Reason] | None:
        """Outline these loops of a function; the one that cannot be, and why."""
        loops = list(_loops(func))
        for number in chosen:
            try:
                _outline(module, loops[number], f"{PREFIX}{number}", self.dynamic)
            except Refused as error:
                return number, error.reason
        return None


def number_of(name: str) -> int | None:
    """The number of the loop of which a fusion function was made; None for other functions."""
    rest = name[len(PREFIX) :].split("_")[0] if name.startswith(PREFIX) else ""
    return int(rest) if rest.isdigit() else None


def _private(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in module.body.operations if "sym_visibility" in op.attributes]


def _loops(func: ir.Operation) -> Iterator[ir.Operation]:
    return (op for op in walk(func) if op_class(op) in _LOOPS)


def _program_loops(instrs: Sequence[Instr]) -> Iterator[Instr]:
    """The loops of a program, in the order of those of its function."""
    for instr in instrs:
        if instr.op in _LOOPS:
            yield instr
        for block in instr.blocks:
            yield from _program_loops(block.instrs)


def _outermost(func: ir.Operation, refused: dict[int, Reason]) -> list[int]:
    """The loops that are in no other one, those that are refused left aside."""
    chosen, inside = [], set[ir.Operation]()
    for number, loop in enumerate(_loops(func)):
        if any(loop == other for other in inside) or number in refused:
            continue
        chosen.append(number)
        inside.update(op for op in walk(loop) if op != loop)
    return chosen


def _refusal(loop: ir.Operation) -> Reason | None:
    """Why an op in a loop keeps the loop out of kernels, as far as its class tells."""
    for op in walk(loop):
        cls = op_class(op)
        if is_terminator(op) or op.name in CONSTANTS:
            continue
        kind = Kind.NEVER_FUSED if cls is None else stands_in_way(cls)
        if kind is None:
            continue
        detail = shown(attrs_of(op)["function"]) if cls is HostCall else ""
        return Reason(kind, detail=detail, op=short_name(op), loc=loc_of(op.location))
    return None


# --- outlining --------------------------------------------------------------------------------


def _outline(module: ir.Module, loop: ir.Operation, prefix: str, dynamic: bool) -> None:
    """Move a loop into a function of its own and call it; raises Refused.

    What kernels do not have of the ops before the loop stays outside.
    """
    memory, outside = Memory(func_of(loop)), set[ir.Operation]()
    while True:
        members = _members(loop, memory, outside)
        made: dict[ir.Operation, ir.Operation] = {}
        try:
            _move(module, loop, members, made, memory, prefix, dynamic)
            return
        except Refused as error:
            member = made.get(error.op)
            if member is None or member == loop:
                raise
            outside.add(member)
            func_of(error.op).erase()


def _move(
    module: ir.Module, loop: ir.Operation, members: Sequence[ir.Operation],
    made: dict[ir.Operation, ir.Operation], memory: Memory, prefix: str, dynamic: bool,
) -> None:  # fmt: skip
    """Move a loop and ops before it; ``made`` tells of which op each one in the function is."""
    inside = {v for op in members for v in op.results}
    outputs = [v for v in loop.results if any(True for _ in v.uses)]
    for op in members:
        for inner in [op, *walk(op)]:
            cls = op_class(inner)
            if (cls is not None and cls.writes) or memory.is_touched(inner):
                raise Refused(Reason(Kind.WRITTEN_VIEW), inner)
    numbers = [_number(value, loop) for value in outputs]
    free = [v for v in _free_values(members) if v not in inside]
    constants: dict[ir.Value, Type] = {}
    inputs = []
    for value in free:
        type_ = constant_type(value)
        if type_ is not None and is_embedded(type_):
            constants[value] = type_
        else:
            _check_argument(value, loop, dynamic)
            inputs.append(value)
    name = unique_symbol(module, prefix)
    func, body = add_function(
        module, name, [argument_type(v) for v in inputs], [], loc=loop.location
    )
    mapping = dict(zip(inputs, body.arguments, strict=True))
    ip = ir.InsertionPoint(body)
    for value in constants:
        source = defining_op(value)
        assert source is not None
        clone_tree(source, mapping, ip)
    for op in members:
        made[clone_tree(op, mapping, ip)] = op
    returned = [
        mapping[v] if dtype is None else _in_tensor(mapping[v], dtype, body, loop)
        for v, dtype in zip(outputs, numbers, strict=True)
    ]
    add_return(body, returned, loop.location)
    _drop_observers(func)
    _copy_carried(func)
    for op in _loops(func):
        op.attributes[UNROLLED] = ir.UnitAttr.get()  # LLVM unrolls what it sees whole
    types = infer_function(func)
    for number, (value, dtype) in enumerate(zip(outputs, numbers, strict=True)):
        known = type_of(value)
        if dtype is None and isinstance(known, TensorType) and known.is_complete:
            types[number] = known
    callee = {"callee": symbol_of(func)}
    call = create(FusionGroup, inputs, callee, types, loop, loop.location)
    for old, new, dtype in zip(outputs, call.results, numbers, strict=True):
        if dtype is not None:
            for user in [user for user in users(old) if op_class(user) is ScalarTensor]:
                user.results[0].replace_all_uses_with(new)
                user.erase()
            item = create(Item, [new], {"dtype": dtype}, [type_of(old)], loop, loop.location)
            new = item.results[0]
        old.replace_all_uses_with(new)
    for op in reversed(members):
        if not any(True for v in op.results for _ in v.uses):
            op.erase()


def _number(value: ir.Value, loop: ir.Operation) -> DType | None:
    """The dtype of a Python number, which leaves a kernel in a tensor; None for tensors."""
    type_ = type_of(value)
    if isinstance(type_, TensorType):
        return None
    if isinstance(type_, ScalarType) and type_.dtype in (BOOL, I64, F64):
        return type_.dtype
    raise Refused(Reason(Kind.PYTHON_NUMBER), loop)


def _in_tensor(value: ir.Value, dtype: DType, body: ir.Block, loop: ir.Operation) -> ir.Value:
    made = create(ScalarTensor, [value], {}, [TensorType(dtype, ())], body, loop.location)
    return made.results[0]


def _members(
    loop: ir.Operation, memory: Memory, outside: Collection[ir.Operation]
) -> list[ir.Operation]:
    """The loop, and before it what computes values of its block that nothing else reads.

    Those ``outside`` are left there. Ops on numbers are among them whoever reads their results: what they compute may be a size.
    """
    block = loop.block
    order = {v: n for n, op in enumerate(ops_in(block)) for v in op.results}
    taken: dict[int, ir.Operation] = {}
    members = [loop]
    waiting = list(_free_values(members))
    while waiting:
        value = waiting.pop()
        source = defining_op(value)
        if source is None or value not in order or order[value] in taken:
            continue
        if source.name in CONSTANTS or memory.is_touched(source) or source in outside:
            continue
        if not _may_join(source, [*taken.values(), loop]):
            continue
        taken[order[value]] = source
        waiting += list(source.operands)
    return [*(taken[n] for n in sorted(taken)), loop]


def _may_join(op: ir.Operation, members: Sequence[ir.Operation]) -> bool:
    cls = op_class(op)
    if cls is None or len(op.regions) or not is_pure(op) or issubclass(cls, Identity):
        return False
    if all(isinstance(type_of(v), ScalarType) for v in op.results):
        return cls.fusion in (*_WITH_LOOP, Fusion.QUERY)
    if cls.fusion not in _WITH_LOOP or not all(
        isinstance(type_of(v), TensorType) for v in op.results
    ):
        return False
    return all(
        any(_encloses(member, user) for member in members)
        for v in op.results for user in users(v)
    )  # fmt: skip


def func_of(op: ir.Operation) -> ir.Operation:
    """The function that an op is in."""
    while op.name != "func.func":
        op = op.parent.operation
    return op


def _encloses(outer: ir.Operation, inner: ir.Operation) -> bool:
    op: ir.Operation | None = inner
    while op is not None and op.name != "func.func":
        if op == outer:
            return True
        op = op.parent.operation
    return False


def _free_values(members: Sequence[ir.Operation]) -> list[ir.Value]:
    """What ops read that is defined outside of each of them, once each, in order."""
    found: dict[ir.Value, None] = {}
    for member in members:
        own: set[ir.Value] = set()
        for op in [member, *(op for op in walk(member) if op != member)]:
            for region in op.regions:
                for block in region.blocks:
                    own.update(block.arguments)
        for op in walk(member):
            if op != member:
                own.update(op.results)
        for op in [member, *(op for op in walk(member) if op != member)]:
            found.update(dict.fromkeys(v for v in op.operands if v not in own))
    return list(found)


def _check_argument(value: ir.Value, loop: ir.Operation, dynamic: bool) -> None:
    type_ = type_of(value)
    if isinstance(type_, ListType):
        raise Refused(Reason(Kind.LISTS), loop)
    if not isinstance(type_, TensorType):
        return
    if not type_.is_complete or type_.defined is False:
        raise Refused(Reason(Kind.UNKNOWN_TYPE), loop)
    if not dynamic and not type_.is_static:
        raise Refused(Reason(Kind.SIZES_VARY), loop)
    if not devices_of([type_]) <= {HOST}:
        raise Refused(Reason(Kind.OFF_HOST), loop)


def _copy_carried(func: ir.Operation) -> None:
    """Have no block pass on an argument of the function: its type says how it lies in memory.

    Kernels make such a copy once, where a loop writes the array, and else not at all.
    """
    body = body_of(func)
    copies: dict[ir.Value, ir.Value] = {}
    for op in list(walk(func)):
        cls = op_class(op)
        if not (cls is not None and issubclass(cls, ControlFlow)) and not _passes_on(op):
            continue
        for number, value in enumerate(op.operands):
            if value not in list(body.arguments) or not isinstance(type_of(value), TensorType):
                continue
            if value not in copies:
                first = body.operations[0].operation
                type_ = type_of(value)
                assert isinstance(type_, TensorType)
                copies[value] = create(
                    Copy,
                    [value],
                    {},
                    [TensorType(type_.dtype, type_.shape)],
                    first,
                    func.location,
                ).results[0]
            op.operands[number] = copies[value]


def _passes_on(op: ir.Operation) -> bool:
    return op.name in ("scf.yield", "scf.condition")


def _drop_observers(func: ir.Operation) -> None:
    for op in list(walk(func)):
        cls = op_class(op)
        if cls is not None and issubclass(cls, Identity) and len(op.results) == len(op.operands):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()


__all__ = ["FuseLoops", "number_of"]
