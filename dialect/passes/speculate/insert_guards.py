"""Guard fused groups, with the unspecialised body as the alternative (R1.37, R1.38, R1.40)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from ...guards.assumed_sizes import assumption
from ...guards.checks import generalize
from ...ir.op import Op
from ...ir.size_algebra import substitute
from ...ir.symbolic import Dim
from ...ir.types import TensorType, Type
from ...mlir.facts import is_constant, is_constant_op
from ...mlir.observed_sizes import note_sizes, symbol_sizes
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    defining_op,
    erase,
    is_a,
    ops_in,
    refresh_signature,
    set_type,
    symbol_of,
    terminator_of,
    type_of,
    types_of,
    walk,
)
from ...mlir.typed_values import constant_type, main_functions
from ...ops.speculation import DynamicGuard, FusionGroup, Guard, TypeCheck
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..partition.alternatives import callee_of, guarded, put_back, unspecialised
from ..partition.outline import GroupRefused
from ..shapes.erase_types import erase_types
from .group_types import infer_group
from .loop_types import drop_counts

_ALL = range(2**63)
_ASSUMPTIONS = 16  # per group
# Loops over so few elements are unrolled, where their number is known: those of a complex number, a
# point, a pixel. It hardly ever changes if it has not done so far.
_CHANNELS = 4


@register_pass
@dataclass(frozen=True)
class InsertGuards(Pass):
    """Run each fusion group only if its tensor operands have the types it was made for.

    A check of all tensor operands but constants decides between the group and a fallback graph,
    a copy of the body with the types erased.  ``dynamic`` makes the sizes of groups symbolic, but
    for those up to 4 of ``stable-sizes`` (``3:512``, sizes that no specialisation has seen change).
    Where that fails, the sizes of arrays that are made of constants alone stay literal, then those
    of all ``stable-sizes``. Where that fails, too, sizes that fitted each other in the profile are
    assumed to do so always (an even number, half of another), and are guarded. A group for which
    all this fails is dissolved.  What another group makes in a literal size has it here, too.
    With ``given-sizes`` no type comes from a profile: all literal sizes stay.  All that remains
    outside is unrefined afterwards, unless ops are left to the fuser of device groups (``leave``).
    """

    name: ClassVar[str] = "insert-guards"
    dynamic: bool = False
    stable_sizes: str = ""
    given_sizes: bool = False
    leave: str = ""

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            returned: dict[ir.Value, Type] = {}
            for op in [op for op in walk(func) if is_a(op, FusionGroup)]:
                if not _is_guarded(op):
                    self._guard(module, op, returned)
            if self.leave:
                refresh_signature(func)
            else:
                erase_types(func)

    def _guard(self, module: ir.Module, op: ir.Operation, returned: dict[ir.Value, Type]) -> None:
        """Guard one group; ``returned`` has the types of what groups before it return."""
        callee = callee_of(module, op)
        fallback = unspecialised(module, callee, "fusion")
        drop_counts(fallback)
        if self.dynamic:
            reason = self._make_symbolic(op, callee, returned)
            if reason is not None:
                self.note(dataclasses.replace(reason, effect=Effect.DISSOLVED))
                put_back(op, fallback)
                erase(fallback)
                if not _is_called(module, symbol_of(callee)):
                    erase(callee)
                return
        expected = types_of(body_of(callee).arguments)
        checked = [k for k, v in enumerate(op.operands) if isinstance(expected[k], TensorType) and not is_constant(v)]
        result_types = types_of(terminator_of(body_of(callee)).operands)
        if not checked:
            erase(fallback)
            returned.update(zip(op.results, result_types, strict=True))
            return
        guard: type[Op] = DynamicGuard if self.dynamic else TypeCheck
        results = guarded(op, guard, checked, [expected[k] for k in checked], symbol_of(fallback))
        returned.update(zip(results, result_types, strict=True))
        self.count("guards")

    def _make_symbolic(self, op: ir.Operation, callee: ir.Operation, returned: dict[ir.Value, Type]) -> Reason | None:
        """Give a fusion function symbolic sizes; returns the reason where that fails."""
        tensors = [v for v in body_of(callee).arguments if isinstance(type_of(v), TensorType)]
        profiled = [type_of(v) for v in tensors]
        if self.given_sizes:
            return _try_symbolic(callee, tensors, generalize(profiled, _ALL))  # type: ignore[arg-type]
        arguments = zip(op.operands, body_of(callee).arguments, strict=True)
        operand_types = [returned.get(v) for v, a in arguments if a in tensors]
        unchanged = {int(size) for size in self.stable_sizes.split(":") if size}
        few = {size for size in unchanged if size <= _CHANNELS}
        literal = frozenset(_literal_sizes(op, callee) | few)
        operand_sizes = {d for t in operand_types if isinstance(t, TensorType) for d in t.shape or ()}
        constant = literal | _made_sizes(callee) | {d for d in operand_sizes if isinstance(d, int)}
        stable = constant | unchanged
        attempts = (
            (literal, False, Effect.NONE),
            (constant, False, Effect.CONSTANT_SIZES),
            (stable, False, Effect.STABLE_SIZES),
            (literal, True, Effect.ASSUMED_SIZES),
            (stable, True, Effect.ASSUMED_SIZES),
        )
        tried: set[Any] = set()
        reason: Reason | None = None
        for sizes, assumes, effect in attempts:
            types = generalize(profiled, sizes, operand_types)  # type: ignore[arg-type]
            if (types, assumes) in tried:
                continue
            tried.add((types, assumes))
            before = reason
            reason = _try_symbolic(callee, tensors, types, profiled if assumes else None)
            if reason is None:
                if before is not None:
                    self.note(dataclasses.replace(before, effect=effect))
                note_sizes(callee, profiled, types_of(tensors))  # type: ignore[arg-type]
                break
        return reason


def _try_symbolic(
    callee: ir.Operation,
    tensors: list[ir.Value],
    types: tuple[TensorType, ...] | None,
    profiled: Sequence[Type] | None = None,
) -> Reason | None:
    """Give a fusion function these argument types, and infer all others from them.

    Sizes that would have to fit each other, and do in the types ``profiled``, are assumed to.

    Returns the reason where that fails.  Then the types inside are left half changed: try other
    types, or drop the function.
    """
    if types is None:
        return Reason(Kind.NOT_GENERAL)
    observed = None if profiled is None else symbol_sizes(profiled, types)  # type: ignore[arg-type]
    for _ in range(_ASSUMPTIONS):
        for value, type_ in zip(tensors, types, strict=True):
            set_type(value, type_)
        try:
            infer_group(callee)
        except GroupRefused as error:
            reason, sizes = error.reason, error.sizes
        else:
            refresh_signature(callee)
            return None
        assumed = None if observed is None else assumption(sizes, observed)
        if assumed is None:
            break
        types = tuple(_substituted(t, dict([assumed])) for t in types)
    return reason


def _substituted(type_: TensorType, sizes: Mapping[str, Dim]) -> TensorType:
    shape = tuple(substitute(dim, sizes) for dim in type_.shape or ())  # type: ignore[arg-type]
    return dataclasses.replace(type_, shape=shape)


def _literal_sizes(op: ir.Operation, callee: ir.Operation) -> set[int]:
    """Sizes of constants: a symbol could never be shown to equal them."""
    inside = [o.results[0] for o in walk(callee) if is_constant_op(o)]
    operands = [v for v in op.operands if is_constant(v)]
    types = [constant_type(v) for v in (*inside, *operands)]
    shapes = [t.shape or () for t in types if isinstance(t, TensorType)]
    return {d for shape in shapes for d in shape if isinstance(d, int)}


def _made_sizes(callee: ir.Operation) -> set[int]:
    """Sizes of arrays that are made of constants alone, which no call changes."""
    fixed: set[ir.Value] = set()
    for inner in ops_in(body_of(callee)):
        if all(v in fixed for v in inner.operands):
            fixed.update(inner.results)
    shapes = [t.shape or () for t in map(type_of, fixed) if isinstance(t, TensorType)]
    return {d for shape in shapes for d in shape if isinstance(d, int)}


def _is_guarded(op: ir.Operation) -> bool:
    """True if an operand comes from a check: the group has been through this pass."""
    return any(is_a(defining_op(v), Guard) for v in op.operands)


def _is_called(module: ir.Module, name: str) -> bool:
    return any(is_a(op, FusionGroup) and attrs_of(op)["callee"] == name for op in walk(module))
