"""Tier 0: run a program op by op on NumPy. The living definition of what a graph computes.

A program is decoded once into closures (`Evaluator`); values live in a list indexed by value
number and are dropped after their last use. Floating-point warnings are not raised, so that a
call behaves the same on every tier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...dialect.analysis.alias import content_uses, uses
from ...dialect.errors import COMPLAINTS, InternalError, Loc, ProfuseError, ShapeError, located
from ...dialect.ir.device import DeviceTensor
from ...dialect.ir.program import Block, Instr, Module, Program
from ...dialect.ops.indexing.inplace import LOANS
from ...dialect.ops.speculation import DiffGraph, Identity, Profile, ProfileCounter
from ..memory.overwrites import Overwrites, own_copy, shape_alone
from .loop_limit import LIMITS


class Observer(Protocol):
    """The listener that is told what flows through ``profile`` and ``profile_value`` ops."""

    def observe_type(self, site: int, value: Any) -> None:
        """A value at a ``profile`` op."""

    def observe_value(self, site: int, value: Any) -> None:
        """A value at a ``profile_value`` op."""


_LARGE = 1 << 16  # bytes; of what takes less it does not pay to keep the shape alone
Env = list[Any]
Step = Callable[[Env], None]
Adapt = Callable[[Instr, Callable[..., Any]], Callable[..., Any]]


class Evaluator:
    """A program ready to run.

    Args:
        program: what to run.
        module: resolves functions named by symbol (fallbacks and fusion functions are evaluated
            in place).
        observer: told of every value at an observing op.
        on_op: called once per evaluated op (for counting).
        adapt: makes of what evaluates an op something for other values than host arrays.
    """

    def __init__(
        self,
        program: Program,
        module: Module | None = None,
        observer: Observer | None = None,
        on_op: Callable[[], None] | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        self._module = module
        self._observer = observer
        self._adapt = adapt
        # What is adapted takes other values than arrays of the host.
        self._overwrites = None if adapt is not None else Overwrites(program)
        self._on_op = on_op
        self._count = program.count
        self._inputs = program.inputs
        self._outputs = program.outputs
        self._steps = self._block_steps(program.body, keep=set(program.outputs))

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return self.run(inputs)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, for a program that computes no floats or for who hears of their errors."""
        env: Env = [None] * self._count
        for slot, value in zip(self._inputs, inputs, strict=True):
            env[slot] = value
        for step in self._steps:
            step(env)
        return [env[o] for o in self._outputs]

    def _block_steps(self, block: Block, keep: set[int] | None = None) -> list[Step]:
        """Closures of a block; ``keep`` given = drop other values after their last use in it."""
        steps = [self._step(instr) for instr in block.instrs]
        if keep is None:
            return steps
        seen, read = set(keep), set(keep)  # later; of which not the shape alone
        out: list[Step] = []
        for instr, step in zip(reversed(block.instrs), reversed(steps), strict=True):
            used, contents = uses(instr), content_uses(instr)
            used.update(instr.results)
            contents.update(instr.results)
            dead, shapes = tuple(used - seen), tuple((contents & seen) - read)
            seen |= used
            read |= contents
            step = _dropping(step, dead) if dead else step
            out.append(_keeping_shapes(step, shapes) if shapes else step)
        return out[::-1]

    def _step(self, instr: Instr) -> Step:
        if instr.op.dialect == "scf":
            return getattr(self, f"_{instr.op.name}")(instr)
        if issubclass(instr.op, Identity):
            return self._profile(instr)
        if instr.op is ProfileCounter:
            return _nothing
        if "callee" in instr.op.attrs:
            return self._call(instr, instr.symbols[0])
        return self._plain(instr)

    def _plain(self, instr: Instr) -> Step:
        evaluate = bound_evaluate(instr, self._overwrites)
        if self._adapt is not None:
            evaluate = self._adapt(instr, evaluate)
        operands, results = instr.operands, instr.results
        count = self._on_op if operands else None  # constants are no work
        if len(operands) == 2 and len(results) == 1:
            (a, b), (r,) = operands, results

            def step(env: Env) -> None:
                env[r] = evaluate(env[a], env[b])
                if count:
                    count()

            return step

        def step_n(env: Env) -> None:
            out = evaluate(*[env[o] for o in operands])
            if count:
                count()
            _assign(env, results, out, instr)

        return step_n

    def _profile(self, instr: Instr) -> Step:
        (operand,), (result,) = instr.operands, instr.results
        site, observe = instr.attrs["site"], None
        if self._observer is not None:
            is_type = instr.op is Profile
            observe = self._observer.observe_type if is_type else self._observer.observe_value

        def step(env: Env) -> None:
            value = env[operand]
            if observe is not None:
                observe(site, value)
            env[result] = value

        return step

    def _call(self, instr: Instr, name: str) -> Step:
        """Run a function in place; of the forward half of a graph, without its temporaries."""
        if self._module is None or name not in self._module.functions:
            raise InternalError(f"no function @{name} to call", loc=instr.loc)
        callee = Evaluator(self._module.functions[name], self._module, self._observer, self._on_op, self._adapt)
        is_strict = instr.op is not DiffGraph

        def step(env: Env) -> None:
            out = callee([env[o] for o in instr.operands])
            for slot, value in zip(instr.results, out, strict=is_strict):
                env[slot] = value

        return step

    def _if(self, instr: Instr) -> Step:
        (condition,) = instr.operands
        branches = [(self._block_steps(b), b.outputs) for b in instr.blocks]

        def step(env: Env) -> None:
            steps, outputs = branches[0 if env[condition] else 1]
            for inner in steps:
                inner(env)
            for slot, value in zip(instr.results, outputs, strict=True):
                env[slot] = env[value]

        return step

    def _while(self, instr: Instr) -> Step:
        before, after = instr.blocks
        before_steps, after_steps = self._block_steps(before), self._block_steps(after)

        def step(env: Env) -> None:
            carried, limit, is_first = [env[o] for o in instr.operands], LIMITS.current, True
            while True:
                _bind(env, before.args, carried)
                for inner in before_steps:
                    inner(env)
                carried = [env[o] for o in before.outputs[1:]]
                if not env[before.outputs[0]]:
                    break
                if limit is not None and not is_first and limit.passed():
                    break
                is_first = False
                _bind(env, after.args, carried)
                for inner in after_steps:
                    inner(env)
                carried = [env[o] for o in after.outputs]
            _bind(env, instr.results, carried)

        return step

    def _for(self, instr: Instr) -> Step:
        (body,) = instr.blocks
        steps = self._block_steps(body)
        owned = () if self._overwrites is None else self._overwrites.owned(instr)

        def step(env: Env) -> None:
            lower, upper, stride, *carried = (env[o] for o in instr.operands)
            limit = LIMITS.current
            for k in owned:
                carried[k] = own_copy(carried[k])
            for index in range(lower, upper, stride):
                _bind(env, body.args, [index, *carried])
                for inner in steps:
                    inner(env)
                carried = [env[o] for o in body.outputs]
                if limit is not None and limit.passed():
                    break
            _bind(env, instr.results, carried)

        return step


def evaluate(module: Module, inputs: Sequence[Any]) -> list[Any]:
    """Run a module's main program once on run-time values."""
    return Evaluator(module.main, module)(inputs)


def as_kernels_give_it(out: Any) -> Any:
    """A result of NumPy in the layout that kernels give: arrays of the host are C-contiguous.

    The guards behind a group ask for that layout, whether a kernel has made the group's results or
    an evaluation has.
    """
    if type(out) is not np.ndarray or out.flags.c_contiguous:
        return out
    return out.copy()


def own(out: Any, inputs: Sequence[Any]) -> Any:
    """A result that shares no memory with an input: a copy, if the value might share some.

    A rank-0 array becomes a NumPy scalar, as in the results of NumPy's own functions.
    """
    if type(out) is not np.ndarray:
        return out.own() if isinstance(out, DeviceTensor) else out
    if out.ndim == 0:
        return out[()]
    if out.base is not None or any(out is value for value in inputs):
        return out.copy("K")
    return out


def bound_evaluate(instr: Instr, overwrites: Overwrites | None = None) -> Callable[..., Any]:
    """``instr.op.evaluate`` with its attributes bound and errors located at the user's line.

    Errors of users' own code, which foreign ops call, pass as they are. ``overwrites``: what may be
    evaluated in place; None = nothing.
    """
    function, attrs, loc = instr.op.evaluate, instr.op.full_attrs(instr.attrs), instr.loc
    if overwrites is not None and overwrites.may(instr):
        function = instr.op.overwrite
    if instr.op.counts_results(instr.attrs):
        function = _counted(instr)
    if instr.op.writes:
        function = _noted(function)
    complaints = () if instr.op.foreign else COMPLAINTS
    bound = instr.op.bound(attrs, len(instr.results)) or partial(function, attrs)

    def run(*args: Any) -> Any:
        try:
            return bound(*args)
        except ProfuseError as error:
            if error.loc is None and loc is not None:
                raise type(error)(error.what, loc=loc, hint=error.hint) from error
            raise
        except complaints as error:
            raise located(error, loc) from error

    return run


def located_by_line(run: Callable[..., Any], places: Mapping[int, Loc | None]) -> Callable[..., Any]:
    """A generated function, with the user's line in errors of ours: ``places`` has it by line of the function."""

    def located_run(*args: Any) -> Any:
        try:
            return run(*args)
        except ProfuseError as error:
            traceback = error.__traceback__
            inner = None if traceback is None else traceback.tb_next
            loc = None if inner is None else places.get(inner.tb_lineno)
            if error.loc is None and loc is not None:
                raise type(error)(error.what, loc=loc, hint=error.hint) from error
            raise

    return located_run


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The evaluator of an op that writes its first operand, which a `Loan` may have to restore."""

    def run(attrs: dict[str, Any], target: Any, *others: Any) -> Any:
        loan = LOANS.open
        if loan is not None:
            loan.note(target)
        return function(attrs, target, *others)

    return run


def _counted(instr: Instr) -> Callable[..., Any]:
    """``evaluate`` of an op with any number of results: as many as the graph has, one bare."""
    function, count, name = instr.op.evaluate, len(instr.results), instr.op.name

    def run(attrs: dict[str, Any], *args: Any) -> Any:
        out = function(attrs, *args)
        if type(out) is not tuple:
            out = (out,)
        if len(out) != count:
            raise ShapeError(f"{name} gives {len(out)} values where the graph has {count}")
        return out[0] if count == 1 else out

    return run


def _bind(env: Env, slots: Sequence[int], values: Sequence[Any]) -> None:
    for slot, value in zip(slots, values, strict=True):
        env[slot] = value


def _assign(env: Env, results: tuple[int, ...], out: Any, instr: Instr) -> None:
    if len(results) == 1:
        env[results[0]] = out
        return
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise InternalError(f"{instr.op.full_name()} returned {type(out).__name__}", loc=instr.loc)
    _bind(env, results, out)


def _nothing(env: Env) -> None:
    """The profile counter: `executor.interpret.record.Record` counts runs itself."""


def _keeping_shapes(step: Step, values: tuple[int, ...]) -> Step:
    """A step after which nothing is read of some values but what their shapes are."""

    def run(env: Env) -> None:
        step(env)
        for slot in values:
            x = env[slot]
            if type(x) is np.ndarray and x.nbytes > _LARGE:
                env[slot] = shape_alone(x)

    return run


def _dropping(step: Step, dead: tuple[int, ...]) -> Step:
    def run(env: Env) -> None:
        step(env)
        for slot in dead:
            env[slot] = None

    return run
