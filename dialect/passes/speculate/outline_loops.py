"""Outline one loop with what belongs to it: a fusion group of a loop (see `fuse-loops`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ...errors import ProfuseError
from ...guards.checks import devices_of
from ...ir.dtypes import BOOL, C128, F64, I64, DType
from ...ir.op import Fusion, Op
from ...ir.types import ListType, ScalarType, TensorType, Type
from ...mlir.facts import CONSTANTS
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    add_function,
    add_return,
    attrs_of,
    body_of,
    create,
    defining_op,
    is_pure,
    is_terminator,
    op_class,
    ops_in,
    set_type,
    symbol_of,
    type_of,
    unique_symbol,
    users,
    walk,
)
from ...mlir.values import Types, clone_tree, constant_type
from ...ops.control_flow.control import LOOPS, ControlFlow
from ...ops.indexing.scatter import Copy
from ...ops.queries import Item, ToTensor
from ...ops.speculation import FusionGroup, Identity
from ...reasons import Kind, Reason
from ..cleanup.unroll_loops import UNROLLED
from .fusion_types import argument_type, is_embedded
from .loop_types import Refused, infer_function, refusal

_WITH_LOOP = (Fusion.POINTWISE, Fusion.VIEW)


def loops_in(func: ir.Operation) -> Iterator[ir.Operation]:
    """The loops of a function, outer ones before those in them."""
    return (op for op in walk(func) if op_class(op) in LOOPS)


def joined(loop: ir.Operation, others: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The loops among ``others`` that go into one function with a loop: it alone reads them.

    Arrays that they write then stay where they are, and are not copied in between.
    """
    members = _members(loop, Memory(func_of(loop)), others)[:-1]
    return [op for op in members if op_class(op) in LOOPS]


def outline_loop(
    module: ir.Module, loop: ir.Operation, prefix: str, dynamic: bool,
    others: Sequence[ir.Operation] = (),
) -> None:  # fmt: skip
    """Move a loop, and those that `joined` tells, into a function of its own and call it.

    Raises Refused.
    """
    memory = Memory(func_of(loop))
    before = _members(loop, memory, others)
    behind = _followers(loop, memory)
    members = [*before, *behind]
    inside = {v for op in members for v in op.results}
    made = [v for op in (loop, *behind) for v in op.results]
    outputs = [v for v in made if any(user not in members for user in users(v))]
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
    devices = sorted(devices_of(map(type_of, inputs)))
    if devices[1:]:
        raise Refused(Reason(Kind.DEVICES, detail=", ".join(devices)), loop)
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
        clone_tree(op, mapping, ip)
    returned = [
        mapping[v] if dtype is None else _in_tensor(mapping[v], dtype, body, loop)
        for v, dtype in zip(outputs, numbers, strict=True)
    ]
    add_return(body, returned, loop.location)
    _drop_observers(func)
    _copy_carried(func)
    for op in loops_in(func):
        op.attributes[UNROLLED] = ir.UnitAttr.get()  # LLVM unrolls what it sees whole
    types = infer_function(func)
    for number, (value, dtype) in enumerate(zip(outputs, numbers, strict=True)):
        known = type_of(value)
        if dtype is None and isinstance(known, TensorType):
            # What a block yields has the type of that which it is handed to.
            is_tied = any(is_terminator(user) or len(user.regions) for user in users(value))
            if known.is_complete or is_tied:
                types[number] = known
    callee = {"callee": symbol_of(func)}
    call = create(FusionGroup, inputs, callee, types, loop, loop.location)
    owners = set(members)
    for old, new, dtype in zip(outputs, call.results, numbers, strict=True):
        if dtype is not None:
            # What is a member, too, has a result of its own.
            others = [user for user in users(old) if user not in owners]
            for user in [user for user in others if op_class(user) is ToTensor]:
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
    if isinstance(type_, ScalarType) and type_.dtype in (BOOL, I64, F64, C128):
        return type_.dtype
    raise Refused(Reason(Kind.PYTHON_NUMBER), loop)


def _in_tensor(value: ir.Value, dtype: DType, body: ir.Block, loop: ir.Operation) -> ir.Value:
    made = create(ToTensor, [value], {}, [TensorType(dtype, ())], body, loop.location)
    return made.results[0]


def _members(
    loop: ir.Operation, memory: Memory, others: Sequence[ir.Operation]
) -> list[ir.Operation]:
    """The loop, and before it what computes values of its block that nothing else reads.

    Ops on numbers are among them whoever reads their results, also those of the blocks around:
    what they compute may be a size.
    """
    order = {v: n for n, op in enumerate(_around(loop)) for v in op.results}
    taken: dict[int, ir.Operation] = {}
    members = [loop]
    waiting = list(_free_values(members))
    while waiting:
        value = waiting.pop()
        source = defining_op(value)
        if source is None or value not in order or order[value] in taken:
            continue
        if source.name in CONSTANTS or memory.is_touched(source):
            continue
        if source.block != loop.block and not _are_numbers(source):
            continue
        if not _may_join(source, [*taken.values(), loop], others):
            continue
        taken[order[value]] = source
        waiting += _free_values([source])
    return [*(taken[n] for n in sorted(taken)), loop]


def _around(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of the blocks in which a loop is, up to the function's, outer ones first."""
    found, op = list[ir.Operation](), loop
    while op.name != "func.func":
        found[:0] = ops_in(op.block)
        op = op.parent.operation
    return found


def _are_numbers(op: ir.Operation) -> bool:
    return all(isinstance(type_of(v), ScalarType) for v in op.results)


def _followers(loop: ir.Operation, memory: Memory) -> list[ir.Operation]:
    """The ops behind a loop that compute numbers of its numbers, and of what is there before it.

    Without them, each would be evaluated in Python.
    """
    known, taken = Types(), list[ir.Operation]()
    inside = {v for v in loop.results if _is_single(type_of(v))}
    is_behind = False
    late: set[ir.Operation] = set()  # ops behind the loop that stay there
    for op in ops_in(loop.block):
        type_ = constant_type(op.results[0]) if op.name in CONSTANTS else None
        if type_ is not None and is_embedded(type_):
            known[op.results[0]] = type_  # each function has constants of its own
        elif op == loop:
            is_behind = True
        elif is_behind:
            if inside.isdisjoint(op.operands) or not _follows(op, inside, late, known, memory):
                late.add(op)
                continue
            taken.append(op)
            inside.update(op.results)
    return taken


def _follows(
    op: ir.Operation, inside: set[ir.Value], late: set[ir.Operation], known: Types, memory: Memory
) -> bool:  # fmt: skip
    cls = op_class(op)
    if cls is None or len(op.regions) or not is_pure(op) or issubclass(cls, Identity):
        return False
    if memory.is_touched(op) or any(defining_op(v) in late for v in op.operands if v not in inside):
        return False
    if not all(_is_single(known[v]) for v in op.operands):
        return False
    types, attrs = known.of(op), attrs_of(op)
    try:
        found = cls.infer(types, attrs)
        reason = refusal(cls, types, attrs)
    except ProfuseError:
        return False
    if reason is not None or not all(map(_is_single, found)):
        return False
    for value, type_ in zip(op.results, found, strict=True):
        known[value] = type_
        if isinstance(type_, TensorType):
            set_type(value, type_)
    return True


def _is_single(type_: Type) -> bool:
    """True for the numbers that kernels have, Python's and those of tensors without axes."""
    if isinstance(type_, TensorType):
        return type_.shape == () and type_.is_complete
    return isinstance(type_, ScalarType) and type_.dtype in (BOOL, I64, F64, C128)


def _may_join(
    op: ir.Operation, members: Sequence[ir.Operation], loops: Sequence[ir.Operation]
) -> bool:
    cls = op_class(op)
    if any(op == loop for loop in loops):
        return _is_read_by(members, op)
    if cls is None or len(op.regions) or not is_pure(op) or issubclass(cls, Identity):
        return False
    if _are_numbers(op):
        return cls.fusion in (*_WITH_LOOP, Fusion.QUERY)
    if cls.fusion not in _WITH_LOOP or not all(
        isinstance(type_of(v), TensorType) for v in op.results
    ):
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
    """Whether nothing but these reads what an op makes."""
    return all(
        any(_encloses(member, user) for member in members)
        for v in op.results for user in users(v)
    )  # fmt: skip


def has_known_sizes(op: ir.Operation, cls: type[Op], *, if_refused: bool) -> bool:
    """Whether sizes of results follow from the types of operands, or these are not known either.

    ``if_refused``: what is said of an op that cannot have operands of these types.
    """
    types = [_known_type(v) for v in op.operands]
    if any(isinstance(t, TensorType) and not t.is_complete for t in types):
        return True
    try:
        found = cls.infer(types, attrs_of(op))
    except ProfuseError:
        return if_refused
    return all(t.is_complete for t in found if isinstance(t, TensorType))


def _known_type(value: ir.Value) -> Type:
    """The type of a value, with the number that follows from sizes alone."""
    known, source = constant_type(value) or type_of(value), defining_op(value)
    cls = None if source is None else op_class(source)
    if not isinstance(known, ScalarType) or known.value is not None or cls is None:
        return known
    assert source is not None
    if cls.fusion not in (*_WITH_LOOP, Fusion.QUERY) or len(source.regions):
        return known
    try:
        found = cls.infer([_known_type(v) for v in source.operands], attrs_of(source))
    except ProfuseError:
        return known
    return found[list(source.results).index(value)]


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


__all__ = ["has_known_sizes", "joined", "loops_in", "outline_loop"]
