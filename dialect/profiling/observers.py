"""The sites of observers (R1.16, R1.17, R1.23), for programs and for the `insert-profile` pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ..errors import Loc
from ..ir.gradients import states
from ..ir.op import Fusion, Op
from ..ir.program import Block, Instr, Module, Program
from ..ir.registration import Registration, Registry
from ..ir.types import TENSOR, ListType, TensorType, Type, erased_value
from ..ops.create import Constant
from ..ops.gradient_ops import AutogradAdd, AutogradZero, Definedness
from ..ops.late import Late
from ..ops.speculation import Profile, ProfileCounter, ProfileValue
from ..ops.value_kinds import late_kind

_GRADIENTS = (AutogradAdd, AutogradZero)
_claims: Registry[Callable[[type[Op]], bool]] = Registry()


def register_profiled_ops(claims: Callable[[type[Op]], bool]) -> Registration[Callable[[type[Op]], bool]]:
    """Observe operands and results of the ops that ``claims`` is true for (R1.17).

    For passes that need the types around ops that are never fused. Holds for graphs that are
    instrumented from now on, until the registration is removed.
    """
    return _claims.add(claims)


def wants_profiled_inputs(op: type[Op]) -> bool:
    """True for ops whose operands are worth observing: what may be fused, once it is pure or as it
    is, what has a gradient, type queries, and what depends on which gradients are defined (R1.17).
    """
    fused = op.fusion is not Fusion.NONE or bool(op.writes) or op is Late
    counts = fused or _is_differentiable(op) or issubclass(op, (*_GRADIENTS, Definedness))
    return counts or _is_claimed(op)


def wants_profiled_outputs(op: type[Op] | None) -> bool:
    """True for ops whose results are worth observing at every use; None = a block argument."""
    if op is None:
        return False
    fused = op.fusion not in (Fusion.NONE, Fusion.QUERY) or op is Late
    counts = fused or _is_differentiable(op) or issubclass(op, _GRADIENTS)
    return counts or _is_claimed(op)


def _is_differentiable(op: type[Op]) -> bool:
    """True for ops that state how gradients pass them."""
    return bool(op.partials or op.linear) or states(op, "vjp")


def has_claims() -> bool:
    """True while a registration of a user may have more ops observed than usual."""
    return bool(_claims.items)


def _is_claimed(op: type[Op]) -> bool:
    return any(claims(op) for claims in _claims.items)


def erased(type_: Type) -> Type:
    """The type without anything a profile or a user's annotation has said of tensors (R1.16)."""
    if isinstance(type_, TensorType):
        return TENSOR
    return ListType() if isinstance(type_, ListType) else erased_value(type_)


def kinds_of_operands(op: type[Op], attrs: Mapping[str, Any], types: Sequence[Type], *, late: bool) -> dict[int, str]:
    """The operands, by number, that are observed if they are no tensors, each with the kind of the observer.

    ``late``: so are values that are given to attributes, to be speculated on (R3.5).
    """
    kinds = {k: "" for k in op.observed_operands(len(types)) if not isinstance(types[k], TensorType)}
    if late and op is Late:
        first = len(types) - len(attrs["names"])
        for k, name in enumerate(attrs["names"], first):
            if kind := late_kind(attrs["op"], name, types[k]):
                kinds[k] = kind
    return kinds


def instrument(module: Module, *, values: bool = False) -> Module:
    """A copy of ``module`` whose main program is unrefined, observed, and counts its runs.

    A value that is no tensor is observed right after its definition where an op asks for it; with
    ``values`` also where it is given to an attribute of an op. Equals what the `insert-profile` pass
    makes of the printed module.
    """
    main = module.main
    types = {value: erased(main.type_of(value)) for value in range(main.count)}
    copy = Program(main.name, types=types, count=main.count)
    producers = {r: instr.op for instr in main.body.walk() for r in instr.results}
    sites = count()
    copy.body = _Instrumenter(copy, producers, sites).block(main.body)
    _observe_values(copy, sites, values)
    copy.body.instrs.append(Instr(ProfileCounter, (), ()))
    return Module(copy, dict(module.functions))


class _Instrumenter:
    """Copies blocks; sites are numbered in the order in which a walk meets the observers."""

    def __init__(self, program: Program, producers: Mapping[int, type[Op]], sites: Iterator[int]) -> None:
        self.program = program
        self.producers = producers
        self.sites = sites

    def block(self, block: Block) -> Block:
        out = Block(block.args)
        for instr in block.instrs:
            seen: dict[int, int] = {}
            wants = wants_profiled_inputs(instr.op)
            operands = tuple(
                self.observed(v, out, seen, instr) if wants or wants_profiled_outputs(self.producers.get(v)) else v
                for v in instr.operands
            )
            blocks = tuple(self.block(b) for b in instr.blocks)
            out.instrs.append(Instr(instr.op, operands, instr.results, dict(instr.attrs), blocks, instr.loc))
        seen = {}
        out.outputs = tuple(self.observed(v, out, seen, None) for v in block.outputs)
        return out

    def observed(self, value: int, out: Block, seen: dict[int, int], user: Instr | None) -> int:
        """The observer of ``value`` for one user (one per value), or the value if no tensor."""
        if not isinstance(self.program.type_of(value), TensorType):
            return value
        if value not in seen:
            seen[value] = self.program.new_value()
            attrs = {"site": next(self.sites)}
            loc = user.loc if user else None
            out.instrs.append(Instr(Profile, (value,), (seen[value],), attrs, loc=loc))
        return seen[value]


def _observe_values(program: Program, sites: Iterator[int], late: bool) -> None:
    """Observe each non-tensor that some op has in an observed operand field, or in an attribute (R1.23, R3.5)."""
    uses: list[tuple[Instr, int, str]] = []
    constants = {r for i in program.body.walk() if i.op is Constant and not i.operands for r in i.results}
    for instr in program.body.walk():
        types = list(map(program.type_of, instr.operands))
        kinds = kinds_of_operands(instr.op, instr.attrs, types, late=late)
        uses += [(instr, k, kind) for k, kind in kinds.items() if not kind or instr.operands[k] not in constants]
    watched: dict[int, set[str]] = {}
    for instr, k, kind in uses:
        watched.setdefault(instr.operands[k], set()).add(kind)
    observers: dict[int, list[Instr]] = {}
    results: dict[tuple[int, str], int] = {}
    for value, loc in _definitions(program.body):
        type_ = program.type_of(value)
        for kind in sorted(watched.get(value, ())):
            result = results[value, kind] = program.new_value(type_)
            attrs = {"site": next(sites), **({"kind": kind} if kind else {})}
            observers.setdefault(value, []).append(Instr(ProfileValue, (value,), (result,), attrs, loc=loc))
    for instr, k, kind in uses:
        operands = list(instr.operands)
        operands[k] = results[operands[k], kind]
        instr.operands = tuple(operands)
    _insert_after_definitions(program.body, observers)


def _definitions(body: Block) -> Iterator[tuple[int, Loc | None]]:
    """Every value with where it is defined, in the order in which the pass meets them."""
    for arg in body.args:
        yield arg, None
    for instr in body.walk():
        for result in instr.results:
            yield result, instr.loc
        for block in instr.blocks:
            for arg in block.args:
                yield arg, None


def _insert_after_definitions(block: Block, observers: Mapping[int, Sequence[Instr]]) -> None:
    instrs = [observer for a in block.args for observer in observers.get(a, ())]
    for instr in block.instrs:
        for inner in instr.blocks:
            _insert_after_definitions(inner, observers)
        instrs += [instr, *(observer for r in instr.results for observer in observers.get(r, ()))]
    block.instrs = instrs
