"""A `gpu.func` decoded once: ops with their values numbered, to be run many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mlir import ir
from profuse.lowering.gpu.void_runs import FLAG

from .faults import Site

STORES = {"memref.store": 1, "vector.store": 1, "vector.maskedstore": 0, "memref.atomic_rmw": 1}
"""Ops that write memory, and which operand is the memref."""

VIEWS = frozenset({"memref.view", "memref.cast", "memref.subview"})


Action = Callable[..., None]
"""Takes the machine, the instruction and the active threads."""


@dataclass
class Instruction:
    """One op.

    Attributes:
        operands, results: slots of its values.
        last_uses: slots of values that nothing after it needs.
        action: what `actions.action_of` made of it; filled at its first run.
    """

    op: ir.Operation
    site: Site
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[Code, ...]
    last_uses: tuple[int, ...] = ()
    action: Action | None = None

    def __post_init__(self) -> None:
        self.name: str = self.op.name


@dataclass
class Code:
    """One block: the slots of its arguments, and its ops, the terminator apart."""

    arguments: tuple[int, ...]
    body: list[Instruction]
    terminator: Instruction


@dataclass
class Program:
    """A kernel.

    Attributes:
        argument_types: of the function's arguments, workgroup and private memory behind them.
        inputs: how many of these the caller passes.
        written: arguments that the kernel may write to.
        flag: the argument that is set where an assertion fails; None = there is none.
        block: the size of blocks the kernel was compiled for, if it says so.
        owner: keeps the IR alive.
    """

    name: str
    code: Code
    argument_types: list[ir.Type]
    inputs: int
    written: frozenset[int]
    block: tuple[int, int, int] | None
    owner: object
    flag: int | None = None


def decode(func: ir.Operation, owner: ir.Module | None = None) -> Program:
    """The program of a ``gpu.func``, which is in the module ``owner``."""
    func = func.operation
    name = ir.StringAttr(func.attributes["sym_name"]).value
    numbers: dict[ir.Value, int] = {}
    block = func.regions[0].blocks[0]
    code = _decode_block(block, name, numbers)
    _mark_last_uses(code)
    flag = ir.IntegerAttr(func.attributes[FLAG]).value if FLAG in func.attributes else None
    function_type = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    return Program(
        name=name,
        code=code,
        argument_types=[a.type for a in block.arguments],
        inputs=len(function_type.inputs),
        written=frozenset(_written(code)) | frozenset(() if flag is None else [flag]),
        block=_known_block(func),
        owner=owner or func,
        flag=flag,
    )


def _known_block(func: ir.Operation) -> tuple[int, int, int] | None:
    if "known_block_size" not in func.attributes:
        return None
    x, y, z = func.attributes["known_block_size"]
    return x, y, z


def instructions(code: Code) -> Iterator[Instruction]:
    """All ops of a block and of the regions inside, the terminators apart."""
    for each in code.body:
        yield each
        for region in each.regions:
            yield from instructions(region)


def _decode_block(block: ir.Block, kernel: str, numbers: dict[ir.Value, int]) -> Code:
    def number(value: ir.Value) -> int:
        return numbers.setdefault(value, len(numbers))

    arguments = tuple(number(a) for a in block.arguments)
    body = []
    for view in block.operations:
        op = view.operation
        operands = tuple(numbers[v] for v in op.operands)
        regions = tuple(_decode_block(region.blocks[0], kernel, numbers) for region in op.regions if len(region.blocks))
        results = tuple(number(v) for v in op.results)
        body.append(Instruction(op, Site(kernel, op), operands, results, regions))
    return Code(arguments, body[:-1], body[-1])


def _used(instruction: Instruction) -> Iterator[int]:
    yield from instruction.operands
    for region in instruction.regions:
        for each in (*region.body, region.terminator):
            yield from _used(each)


def _mark_last_uses(code: Code) -> None:
    """Only values of this very block: those from outside a loop are needed again."""
    live = set(code.terminator.operands)
    here = {slot for each in code.body for slot in each.results}
    for each in reversed(code.body):
        mentioned = set(_used(each)) | set(each.results)
        each.last_uses = tuple((mentioned & here) - live)
        live |= mentioned
        for region in each.regions:
            _mark_last_uses(region)


def _written(code: Code) -> Iterator[int]:
    """Positions of the arguments whose memory an op may write."""
    source = {slot: position for position, slot in enumerate(code.arguments)}
    for each in instructions(code):
        if each.name in VIEWS and each.operands[0] in source:
            source[each.results[0]] = source[each.operands[0]]
        elif each.name in STORES and each.operands[STORES[each.name]] in source:
            yield source[each.operands[STORES[each.name]]]
