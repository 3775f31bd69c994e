"""Strict fusion: a scope in which anything but one guarded group is an error (R1.46)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType

from ...dialect.errors import Loc, ProfuseError, StrictFusionError
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.ir.program import Instr, Module
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.create import Constant
from ...dialect.ops.speculation import FusionGroup, Guard
from ...dialect.reasons import Reason

# Code of `PythonCalls.call`, which runs the body of a jitted function in Python.
RUNS_IN_PYTHON: set[CodeType] = set()
_strict: ContextVar[bool] = ContextVar("profuse_strict_fusion", default=False)


@contextmanager
def strict_fusion() -> Iterator[None]:
    """Raise StrictFusionError for a function optimised in here that does not fuse as a whole.

    The function must become one guarded group, compiled to a kernel. Beside the group it may only
    contain constants and the ops that compute the guard's operands. A group without array operands
    needs no guard. Around calls, the scope holds for this thread; nested scopes are one. A call
    that fails leaves nothing behind: outside of the scope the function is optimised as usual.

    Entered inside a traced function, the scope demands the same of that whole function, on every
    call; it raises at once where no graph can hold the function, and Python runs it.
    """
    recorder = current()
    if recorder is not None:
        recorder.strict = True
    else:
        _check_traced(sys._getframe(2))  # behind this function, and that of the context manager
    token = _strict.set(True)
    try:
        yield
    finally:
        _strict.reset(token)


def _check_traced(frame: FrameType | None) -> None:
    """Raise StrictFusionError inside of a function that Python runs, as no graph can hold it."""
    while frame is not None:
        if frame.f_code in RUNS_IN_PYTHON and (why := frame.f_locals["self"].why_no_graph(frame)):
            raise StrictFusionError(why)
        frame = frame.f_back


def is_strict() -> bool:
    """True inside `strict_fusion`."""
    return _strict.get()


def check_strict(module: Module, failures: Mapping[str, Reason], name: str) -> None:
    """Raise StrictFusionError unless an optimised graph is one guarded group and nothing else.

    Args:
        module: the optimised graph.
        failures: fusion functions without a kernel, with the reason.
        name: name of the function, for messages.
    """
    instrs = list(module.main.body.walk())
    guards = [i for i in instrs if issubclass(i.op, Guard)]
    if len(guards) > 1:
        raise StrictFusionError(
            f"{name} has {len(guards)} guarded groups, strict fusion asks for one",
            loc=guards[1].loc,
            hint="f.explain() says what could not be fused, outside of the scope",
        )
    for group, reason in failures.items():
        raise StrictFusionError(f"{name}: group @{group} has no kernel: {reason.why}")
    unfused = unfused_ops(module, guards)
    if unfused:
        if all(issubclass(i.op, FusionGroup) for i in unfused):
            raise StrictFusionError(
                f"{name} has a group without a guard beside "
                f"{'the guarded one' if guards else 'another'}, strict fusion asks for one group",
                loc=unfused[0].loc,
                hint="f.explain() says what could not be fused, outside of the scope",
            )
        ops = [(f"{i.op.full_name()}", i.loc) for i in unfused]
        raise StrictFusionError(f"{name} is not fused as a whole: {_listed(ops)} outside of the group", loc=ops[0][1])


def unfused_ops(module: Module, guards: list[Instr]) -> list[Instr]:
    """Ops that strict fusion refuses: those outside of guarded groups that no guard depends on.

    Constants are allowed, and so is a single group without a guard if there is no guard at all.
    """
    instrs = list(module.main.body.walk())
    producers = {r: i for i in instrs for r in i.results}
    allowed: set[int] = set()
    pending = list(guards)
    while pending:
        instr = pending.pop()
        if id(instr) not in allowed:
            allowed.add(id(instr))
            pending += [producers[o] for o in instr.operands if o in producers]
    outcomes = {i.results[-1] for i in guards}
    unguarded = sum(issubclass(i.op, FusionGroup) for i in module.main.body.instrs)
    alone = not guards and unguarded == 1
    for instr in instrs:
        if instr.op is If and instr.operands[0] in outcomes:
            allowed.add(id(instr))
            allowed |= {id(inner) for block in instr.blocks for inner in block.walk()}
        elif instr.op is Constant or (alone and issubclass(instr.op, FusionGroup)):
            allowed.add(id(instr))
    return [i for i in instrs if id(i) not in allowed]


def _listed(ops: list[tuple[str, Loc | None]]) -> str:
    shown = [f"{op} ({loc})" if loc else op for op, loc in ops[:4]]
    more = len(ops) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def refused(name: str, error: ProfuseError) -> StrictFusionError:
    """The error of strict fusion for a graph that cannot be compiled at all."""
    return StrictFusionError(f"{name} cannot be compiled: {error.what}", loc=error.loc)
