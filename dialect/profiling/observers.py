"""Where observers go (R1.16, R1.17, R1.23), for programs and for the `insert-profile` pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from ..errors import Loc
from ..ir.gradients import states
from ..ir.op import Fusion, Op
from ..ir.program import Block, Instr, Module, Program
from ..ir.registration import Registration, Registry
from ..ir.types import TENSOR, ListType, TensorType, Type
from ..ops.gradients import AutogradAdd, AutogradZero, Definedness
from ..ops.speculation import Profile, ProfileCounter, ProfileValue

_GRADIENTS = (AutogradAdd, AutogradZero)
_claims: Registry[Callable[[type[Op]], bool]] = Registry()


def register_profiled_ops(
    claims: Callable[[type[Op]], bool],
) -> Registration[Callable[[type[Op]], bool]]:
    """Observe operands and results of the ops that ``claims`` is true for (R1.17).

    For passes that need the types around ops that are never fused. Holds for graphs that are
    instrumented from now on, until the registration is removed.
    """
    return _claims.add(claims)


def wants_profiled_inputs(op: type[Op]) -> bool:
    """True for ops whose operands are worth observing: what may be fused, once it is pure or as it
    is, what has a gradient, type queries, and what depends on which gradients are defined (R1.17).
    """
    fused = op.fusion is not Fusion.NONE or bool(op.writes)
    known = fused or _is_differentiable(op) or issubclass(op, (*_GRADIENTS, Definedness))
    return known or _is_claimed(op)


def wants_profiled_outputs(op: type[Op] | None) -> bool:
    """True for ops whose results are worth observing at every use; None = a block argument."""
    if op is None:
        return False
    fused = op.fusion not in (Fusion.NONE, Fusion.QUERY)
    known = fused or _is_differentiable(op) or issubclass(op, _GRADIENTS)
    return known or _is_claimed(op)


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
    return ListType() if isinstance(type_, ListType) else type_


def instrument(module: Module) -> Module:
    """A copy of ``module`` whose main program is unrefined, observed, and counts its runs.

    A value that is no tensor is observed right after its definition where an op asks for it.
    Equals what the `insert-profile` pass makes of the printed module.
    """
    main = module.main
    types = {value: erased(main.type_of(value)) for value in range(main.count)}
    copy = Program(main.name, types=types, count=main.count)
    producers = {r: instr.op for instr in main.body.walk() for r in instr.results}
    sites = count()
    copy.body = _Instrumenter(copy, producers, sites).block(main.body)
    _observe_values(copy, sites)
    copy.body.instrs.append(Instr(ProfileCounter, (), ()))
    return Module(copy, dict(module.functions))


class _Instrumenter:
    """Copies blocks; sites are numbered in the order in which a walk meets the observers."""

    def __init__(
        self, program: Program, producers: Mapping[int, type[Op]], sites: Iterator[int]
    ) -> None:
        self.program = program
        self.producers = producers
        self.sites = sites

    def block(self, block: Block) -> Block:
        out = Block(block.args)
        for instr in block.instrs:
            seen: dict[int, int] = {}
            wants = wants_profiled_inputs(instr.op)
            operands = tuple(
                self.observed(v, out, seen, instr)
                if wants or wants_profiled_outputs(self.producers.get(v))
                else v
                for v in instr.operands
            )
            blocks = tuple(self.block(b) for b in instr.blocks)
            out.instrs.append(
                Instr(instr.op, operands, instr.results, dict(instr.attrs), blocks, instr.loc)
            )
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


def _observe_values(program: Program, sites: Iterator[int]) -> None:
    """Observe each non-tensor that some op has in an observed operand field (R1.23)."""
    uses = [(i, k) for i in program.body.walk() for k in i.op.observed_operands(len(i.operands))]
    watched = {i.operands[k] for i, k in uses}
    observers: dict[int, Instr] = {}
    for value, loc in _definitions(program.body):
        type_ = program.type_of(value)
        if value in watched and not isinstance(type_, TensorType):
            result = program.new_value(type_)
            attrs = {"site": next(sites)}
            observers[value] = Instr(ProfileValue, (value,), (result,), attrs, loc=loc)
    for instr, k in uses:
        if instr.operands[k] in observers:
            operands = list(instr.operands)
            operands[k] = observers[operands[k]].results[0]
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


def _insert_after_definitions(block: Block, observers: Mapping[int, Instr]) -> None:
    instrs = [observers[a] for a in block.args if a in observers]
    for instr in block.instrs:
        for inner in instr.blocks:
            _insert_after_definitions(inner, observers)
        instrs += [instr, *(observers[r] for r in instr.results if r in observers)]
    block.instrs = instrs
