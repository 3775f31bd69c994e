"""Compiles many conformance cases as one kernel, and says how each differs from its reference.

A batch of cases becomes one fusion function: the operands of all cases are its arguments, the
results of all cases its results, so that the fixed costs of a compile are paid once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, difference, silent
from on_device import run_on_device
from profuse.dialect.errors import ProfuseError
from profuse.dialect.guards.checks import generalize
from profuse.dialect.ir.device import HOST
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.types import ScalarType, TensorType, Type, type_of
from profuse.executor.compile.proof.check import Budget, Difference, check_kernel
from profuse.executor.compile.proof.check_verdict import CHECKED, PARTLY
from profuse.executor.cuda.nvidia.driver_api import DriverError
from profuse.executor.plans.kernel_call import kernel_runner
from profuse.executor.settings.events import Counters
from profuse.lowering.abi import KernelArtifact
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from native import Kernel

BATCH = 64
WORST = 3
CONSTANT, CAST = op_named("constant"), op_named("cast")


@dataclass(frozen=True)
class Call:
    """A case with what a fusion function is told of its operands.

    Attributes:
        types: of the operands; a Python number with a value is a constant of the function, one
            without is an argument.
    """

    case: Case
    types: tuple[Type, ...]

    @property
    def attrs(self) -> dict[str, Any]:
        return self.case.op.full_attrs(self.case.attrs)

    def refusal(self) -> str | None:
        """Why no kernel is made of it, in the order in which the passes ask."""
        op = self.case.op
        reason = op.can_lower_types(self.types, self.attrs)
        if reason is not None:
            return reason.why
        results = op.infer(self.types, self.attrs)
        if any(isinstance(t, TensorType) and not t.is_complete for t in results):
            return "result sizes depend on run-time values"
        return None


def static_call(case: Case) -> Call:
    """With literal sizes, the operands' own strides, and numbers as constants."""
    return Call(case, tuple(type_of_constant(a) or type_of(a) for a in case.args))


def dynamic_call(case: Case) -> Call | None:
    """With symbolic sizes and strides; None if nothing about the operands can vary.

    A number is an argument, unless the op must know its value.
    """
    general = iter(generalized(case.args))
    types = tuple(next(general) if is_tensor(a) else type_of(a) for a in case.args)
    if all(t == type_of(a) for t, a in zip(types, case.args, strict=True) if is_tensor(a)):
        return None
    call = Call(case, types)
    if call.refusal() is None:
        return call
    pairs = zip(types, case.args, strict=True)
    return Call(case, tuple(type_of_constant(a) or t for t, a in pairs))


def is_tensor(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def generalized(args: Sequence[Any]) -> tuple[TensorType, ...]:
    """What a dynamic guard asks of these arguments, Python numbers left out."""
    types = generalize([t for a in args if isinstance(t := type_of(a), TensorType)])
    assert types is not None
    return types


def type_of_constant(value: Any) -> Type | None:
    """The type of a Python number with a known value; None for arrays."""
    return None if is_tensor(value) else CONSTANT.infer([], {"value": value})[0]


class Batch:
    """The fusion function of some calls: ``program``, its ``args``, each call's results."""

    def __init__(self, calls: Sequence[Call], *, dynamic: bool) -> None:
        self.calls = calls
        self.program = Program("batch")
        self.args: list[Any] = []
        self.spans: list[slice] = []
        self.symbolic: Iterator[TensorType] = iter(())
        if dynamic:
            # Over all calls at once, so that equal sizes share a symbol: fewer arguments.
            self.symbolic = iter(generalized([a for c in calls for a in c.case.args]))
        for call in calls:
            self._add(call)

    def _add(self, call: Call) -> None:
        program, op = self.program, call.case.op
        pairs = zip(call.case.args, call.types, strict=True)
        values = [self._operand(value, type_) for value, type_ in pairs]
        wanted = op.operand_dtypes([program.type_of(v) for v in values], call.attrs)
        for k, dtype in enumerate(wanted or ()):
            type_ = program.type_of(values[k])
            if dtype is None or (isinstance(type_, TensorType) and type_.dtype is dtype):
                continue
            known = type_.value if isinstance(type_, ScalarType) else None
            if known is None:
                values[k] = self._emit(CAST, [values[k]], {"dtype": dtype})[0]
            else:
                folded = np.array(known, dtype.numpy)
                values[k] = self._emit(CONSTANT, [], {"value": folded})[0]
        start = len(program.outputs)
        program.body.outputs += self._emit(op, values, call.case.attrs)
        self.spans.append(slice(start, len(program.outputs)))

    def _operand(self, value: Any, type_: Type) -> int:
        if isinstance(type_, ScalarType) and type_.value is not None:
            return self._emit(CONSTANT, [], {"value": value})[0]
        number = self.program.new_value(next(self.symbolic, type_) if is_tensor(value) else type_)
        self.program.body.args += (number,)
        self.args.append(value)
        return number

    def _emit(self, op: Any, operands: Sequence[int], attrs: dict[str, Any]) -> tuple[int, ...]:
        types = op.infer([self.program.type_of(v) for v in operands], op.full_attrs(attrs))
        results = tuple(self.program.new_value(t) for t in types)
        self.program.body.instrs.append(Instr(op, tuple(operands), results, dict(attrs)))
        return results

    def run(self, device: str = HOST) -> Iterator[str]:
        """Compile and call; yields the differences from the references."""
        if device != HOST:
            yield from self._compared(run_on_device(self.program, self.args, device))
            return
        artifact = compile_program(self.program, host_target())
        out = kernel_runner(artifact, Counters(), _never)(*self.args)
        if len(self.program.outputs) == 1:
            out = (out,)
        yield from self._compared(out)
        # Once more with guarded buffers, which notice what is written out of bounds.
        Kernel(artifact)(*self.args)
        if os.environ.get("PROFUSE_CHECK") == "all":
            yield from self._checked(artifact)

    def _checked(self, artifact: KernelArtifact) -> Iterator[str]:
        """What the check of new kernels says of one that is right: nothing."""
        try:
            verdict = check_kernel(self.program, artifact, Budget("all"))
        except Difference as error:
            yield f"a false alarm of {', '.join(map(describe, self.calls))}: {error}"
        else:
            if verdict.outcome not in (CHECKED, PARTLY):
                yield f"{', '.join(map(describe, self.calls))} is {verdict}"

    def _compared(self, out: Sequence[Any]) -> Iterator[str]:
        for call, span in zip(self.calls, self.spans, strict=True):
            yield from differences(call.case, out[span])


def _never(*args: Any) -> Any:
    raise AssertionError("the kernel reports a violation")


def run_batches(calls: Sequence[Call], *, dynamic: bool, device: str = HOST, size: int = BATCH) -> list[str]:
    """What is wrong with these calls compiled: errors of the compiler, and wrong results.

    ``device``: where the kernels run.
    """
    wrong = []
    for start in range(0, len(calls), size):
        part = calls[start : start + size]
        try:
            wrong += Batch(part, dynamic=dynamic).run(device)
        except (ProfuseError, AssertionError, DriverError) as error:
            if len(part) == 1:
                wrong.append(f"{describe(part[0])}: {type(error).__name__}: {error}")
            else:
                # A batch says nothing about which call is at fault.
                half = (len(part) + 1) // 2
                wrong += run_batches(part, dynamic=dynamic, device=device, size=half)
    return wrong


def describe(call: Call) -> str:
    """Op, operand types and attributes."""
    types = ", ".join(
        repr(t.value) if isinstance(t, ScalarType) and t.value is not None else str(t) for t in call.types
    )
    return f"{call.case.op.name}({types}){call.case.attrs or ''}"


def differences(case: Case, found: Sequence[Any]) -> Iterator[str]:
    """How the results of one case differ from NumPy's, the worst elements included."""
    expected = case.reference if isinstance(case.reference, tuple) else (case.reference,)
    if len(found) != len(expected):
        yield f"{case}: {len(found)} results, not {len(expected)}"
        return
    for a, e in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        reason = difference(a, e, case.tolerance, case.added)
        if reason is not None:
            layouts = [type_of(x).strides for x in case.args if is_tensor(x)]
            shown = worst(a, e) if a.shape == e.shape and a.dtype == e.dtype else ""
            yield f"{case} strides {layouts}: {reason}{shown}"


def worst(found: np.ndarray, expected: np.ndarray) -> str:
    """The elements that are furthest off."""
    if expected.dtype.kind == "c":
        found, expected = (np.ascontiguousarray(x)[..., None].view(x.real.dtype) for x in (found, expected))
    with silent():
        a, e = found.astype(np.float64), expected.astype(np.float64)
        gap = np.where((a == e) | (np.isnan(a) & np.isnan(e)), -1.0, abs(a - e) / (abs(e) + 1e-300))
    gap = np.where(np.isnan(gap), np.inf, gap).ravel()
    places = [k for k in np.argsort(-gap, kind="stable")[:WORST] if gap[k] >= 0]
    listed = (
        f"{tuple(map(int, np.unravel_index(k, found.shape)))}: {found.flat[k]!r} for {expected.flat[k]!r}"
        for k in places
    )
    return f"; worst {'; '.join(listed)}" if places else ""
