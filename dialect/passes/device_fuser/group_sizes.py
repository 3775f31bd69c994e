"""Kernels for all sizes of a rank: the function of a group with free sizes, and what these have to fit (A6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlir import ir

from ...guards.checks import devices_of
from ...guards.free_sizes import FreeSizes, SizeSolver
from ...ir.size_algebra import substitute
from ...ir.symbolic import Dim, Sym
from ...ir.types import ListedType, ScalarType, TensorType, Type
from ...mlir.observed_sizes import note_sizes
from ...mlir.rewrite import body_of, ops_in, refresh_signature, set_type, type_of, types_of
from ...mlir.typed_values import Types
from ...reasons import Kind, Reason
from ..partition.outline import GroupRefused
from ..speculate.group_types import infer_group, infer_op


def is_profiled(type_: Type) -> bool:
    """True if a guard knows what to compare of a value of this type: dtype, rank and device (R3.46)."""
    return isinstance(type_, TensorType) and None not in (type_.dtype, type_.rank, type_.device)


def free_group(
    callee: ir.Operation, guarded: dict[int, int], profiled: Sequence[TensorType]
) -> tuple[FreeSizes, tuple[TensorType, ...]] | Reason:
    """Give the function of a group free sizes, as far as its ops let them be.

    Args:
        callee: the function.
        guarded: numbers of those of its arguments that a relaxed guard checks -> operands of the guard.
            The sizes of other tensors, which are constants, stay as they are.
        profiled: the types of the guard's operands, each of which `is_profiled`.

    Returns what the guard has to ask of sizes, and the types it compares with; else the reason why the
    group cannot be compiled. Then the types inside are left half changed.
    """
    arguments = list(body_of(callee).arguments)
    if any(t.requires_grad for t in profiled) or len(devices_of(profiled)) > 1:
        return Reason(Kind.NOT_GENERAL)
    constants = [n for n, v in enumerate(arguments) if n not in guarded and isinstance(type_of(v), TensorType)]
    # The guard's operands come first: relations name sizes by them.
    solver = SizeSolver([*profiled, *types_of([arguments[n] for n in constants])], len(profiled))  # type: ignore[list-item]
    reasons: list[Reason] = []

    def refused(types: Sequence[TensorType]) -> tuple[Any, ...] | None:
        for argument, operand in guarded.items():
            set_type(arguments[argument], types[operand])
        try:
            infer_group(callee)
        except GroupRefused as error:
            reasons.append(error.reason)
            return error.sizes
        return None

    _narrow(callee, guarded, solver)
    free = solver.solve(refused)
    if free is None:
        return reasons[-1]
    refresh_signature(callee)
    now = [type_of(arguments[argument]) for argument in guarded]
    note_sizes(callee, [profiled[operand] for operand in guarded.values()], now)  # type: ignore[arg-type]
    return free, solver.checked()


def _narrow(callee: ir.Operation, guarded: dict[int, int], solver: SizeSolver) -> None:
    """Let sizes fit each other from op to op, without starting over; what is left to do is for `SizeSolver.solve`."""
    ops, arguments = ops_in(body_of(callee)), body_of(callee).arguments
    if any(len(op.regions) for op in ops):
        return
    types, number = Types(), 0
    while number < len(ops):
        if number == 0:
            now = solver.types()
            for argument, operand in guarded.items():
                types[arguments[argument]] = now[operand]
        try:
            infer_op(ops[number], types)
        except GroupRefused as error:
            if error.sizes:
                symbols = solver.resolve(error.sizes)
            else:  # it is not told which sizes an op cannot do with: they are among those of its operands
                symbols = solver.keep(_sizes_in(types.of(ops[number])))
            if symbols is None:
                return
            for value, type_ in types.known.items():
                types[value] = _substituted(type_, symbols)
            if not symbols:
                number = 0
            continue
        number += 1


def _sizes_in(types: Sequence[Type]) -> tuple[Sym, ...]:
    sizes: list[Any] = []
    for type_ in types:
        if isinstance(type_, TensorType):
            sizes += type_.shape or ()
        elif isinstance(type_, ScalarType):
            sizes.append(type_.value)
        elif isinstance(type_, ListedType):
            sizes += type_.value or ()
    return tuple(size for size in sizes if isinstance(size, Sym))


def _substituted(type_: Type, symbols: Mapping[str, Dim]) -> Type:
    def of(size: Any) -> Any:
        return substitute(size, symbols) if isinstance(size, Sym) else size

    if isinstance(type_, TensorType) and type_.shape is not None:
        strides = tuple(map(of, type_.strides)) if isinstance(type_.strides, tuple) else type_.strides
        return replace(type_, shape=tuple(map(of, type_.shape)), strides=strides)
    if isinstance(type_, ScalarType):
        return replace(type_, value=of(type_.value))
    if isinstance(type_, ListedType) and isinstance(type_.value, tuple):
        return replace(type_, value=tuple(map(of, type_.value)))
    return type_
