"""The Python function of a plan: guards, kernel calls, evaluated ops, fallbacks.

Its source is generated once, so a call does no dispatch per op. A guard first makes a quick
comparison. If that fails, `dialect.guards.mismatch` decides, so that sizes and strides without a
meaning (axes of size 1, empty arrays) never cause a miss.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dialect.errors import InternalError, Loc
from ...dialect.guards.mismatch import flags_hold, holds
from ...dialect.guards.seen import noted
from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.program import Instr
from ...dialect.ops.backward import capture_frame
from ...dialect.ops.indexing.inplace import Borrow
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.size_lists import AllTrue
from ...dialect.ops.speculation import CallFallback, DiffGraph, FusionGroup, Guard
from ..interpret.evaluate import Adapt, bound_evaluate, located_by_line
from ..interpret.loop_limit import check_patience, end_of_patience
from ..memory import thread_block
from ..memory.overwrites import Overwrites, own_copy, uses_in
from ..settings.events import Counters
from ..settings.knobs import knobs
from ..settings.stress import guard_failures
from .guard import PlanGuard, quick_check, sure_miss
from .kernel_call import always_launches
from .plan_steps import PlanBlock, PlanStep, PlanSteps

Runner = Callable[..., Any]


class PythonSource:
    """Writes the function of a plan; see `plan.build_plan` for what it is given.

    Attributes:
        fresh: the values that can never share memory with an input.
    """

    is_quick = True  # guards begin with a comparison that holds for plain arrays

    def __init__(
        self,
        steps: PlanSteps,
        kernels: dict[str, Runner],
        fallbacks: dict[str, Callable[[list], list]],
        counters: Counters,
        adapt: Adapt | None,
        graphs: Mapping[str, Any],
    ) -> None:
        self.steps, self.main, self.inner = steps, steps.main, steps.intermediates
        self.overwrites = Overwrites(steps.main) if adapt is None else None
        self.spares: dict[int, str] = {}  # result of a kernel in each round -> name of its `Spare`
        self.kernels, self.fallbacks, self.adapt, self.graphs = kernels, fallbacks, adapt, graphs
        self.scope: dict[str, Any] = {"C": counters, "holds": holds, "flags_hold": flags_hold, "noted": noted}
        self.lines: list[str] = []
        self.fresh: set[int] = set()
        self.has_calls = False  # of users' code, as lines of their own
        self.numbers = itertools.count()  # of guards
        self.checked: dict[int, str] = {}  # answer of a guard -> source of what it checks
        self.places: dict[int, Loc | None] = {}  # entry of ``lines`` -> the user's line of the call in it

    def function(self) -> Callable[..., list]:
        self.lines.append("def run(inputs, outs=None):")
        names = ", ".join(f"v{a}" for a in self.main.inputs)
        if names:
            self.lines.append(f"    [{names}] = inputs")
        if self.inner:
            self.emit(1, "block = frame = None")
        first = len(self.lines)
        self.lines.append("")  # for what is known when all has been written
        self.block(self.steps.body, 1)
        if self.has_calls:
            self.scope["capture_frame"] = capture_frame
            self.lines[first] = "    calls = capture_frame()"
        outs = ", ".join(f"v{o}" for o in self.steps.body.outputs)
        self.lines.append(f"    return [{outs}]")
        code = compile(self.source, generated_file(f"plan of {self.main.name}"), "exec")
        exec(code, self.scope)
        run = self.scope["run"]
        if not self.places:
            return run
        numbers = itertools.accumulate((line.count("\n") + 1 for line in self.lines), initial=1)
        return located_by_line(run, {number: self.places.get(k) for k, number in enumerate(numbers)})

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    def bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def block(self, block: PlanBlock, depth: int) -> None:
        for step in block.steps:
            self.step(step, depth)
            self.drop(step.dead, depth)

    def drop(self, values: Sequence[int], depth: int) -> None:
        """Delete the last references to values, so that the pool can reuse their memory."""
        if values:
            self.emit(depth, f"del {', '.join(f'v{v}' for v in values)}")

    def step(self, step: PlanStep, depth: int) -> None:
        op = step.instr.op
        if op.dialect == "scf":
            getattr(self, f"emit_{op.name}")(step, depth)
        elif issubclass(op, Guard):
            self.emit_guard(step, depth)
        elif op is AllTrue and step.guard is not None:
            self.emit_values_checked(step, depth)
        elif issubclass(op, FusionGroup):
            self.emit_group(step, depth)
        elif op is CallFallback:
            self.emit_fallback(step, depth)
        elif op is DiffGraph:
            self.emit_graph(step, depth)
        elif "callee" in op.attrs:
            raise InternalError(f"{op.full_name()} in a final plan", loc=step.instr.loc)
        else:
            self.emit_evaluate(step, depth)

    def emit_guard(self, step: PlanStep, depth: int) -> None:
        guard = step.guard
        assert guard is not None
        flags = guard.behavior == "gradients"
        checks = guard.checks()
        g, t = self.bind("g", guard), self.bind("t", checks)
        ok = step.instr.results[-1]
        values = [f"v{o}" for o in step.operands]
        is_quick = self.is_quick and not flags
        quick = quick_check(guard.types, checks, values, self.bind) if is_quick else None
        listed = self.checked[ok] = f"({', '.join(values)},)"
        slow = f"flags_hold({t}, {listed})" if flags else f"holds({t}, {listed})"
        if quick:
            sure = sure_miss(checks, values)
            unless = f"not ({sure}) and " if sure else ""
            # A guard never raises, whatever object the value is (R1.39).
            self.emit(depth, f"try: v{ok} = ({quick}) or {unless}{slow}")
            self.emit(depth, f"except (AttributeError, ZeroDivisionError): v{ok} = {slow}")
        else:
            self.emit(depth, f"v{ok} = {slow}")
        self.emit(depth, f"if v{ok}: {g}.counted += 1; C.guard_hits += 1")
        misses = f"{g}.missed += 1; C.guard_misses += 1"
        self.emit(depth, f"else: {misses}; {g}.missed_types = tuple(map(noted, {listed}))")
        fails = guard_failures(knobs.stress, f"{self.main.name}/{next(self.numbers)}")
        guard.stressed = fails is not None
        if fails is not None:
            self.emit(depth, f"if v{ok} and {self.bind('fails', fails)}():")
            undo = f"{g}.counted -= 1; C.guard_hits -= 1; {misses}"
            forced = f"v{ok} = False; {g}.forced += 1; C.forced_misses += 1"
            self.emit(depth + 1, f"{forced}; {undo}")

    def emit_values_checked(self, step: PlanStep, depth: int) -> None:
        """The answer of a guard and those of checks of values as one; a changed value is a miss (R3.38, R3.39)."""
        from .value_checks import failed_of, told_check  # few plans check values

        guard, both = step.guard, step.instr.results[0]
        assert guard is not None
        self.emit_evaluate(step, depth)
        g, ok = self.bind("g", guard), guard.answer
        others = [o for o in step.instr.operands if o != ok]
        made_by = {r: instr for instr in self.main.body.walk() for r in instr.results}
        words = self.bind("words", tuple(told_check(made_by.get(o)) for o in others))
        answers = f"({', '.join(f'v{o}' for o in others)},)"
        self.emit(depth, f"if v{ok}: {g}.changed = () if v{both} else failed({words}, {answers})")
        self.emit(depth, f"if v{ok} and not v{both}:")
        self.scope |= {"failed": failed_of}
        undo = f"{g}.counted -= 1; C.guard_hits -= 1; {g}.missed += 1; C.guard_misses += 1; C.value_misses += 1"
        self.emit(depth + 1, f"{undo}; {g}.missed_types = tuple(map(noted, {self.checked[ok]}))")

    def emit_group(self, step: PlanStep, depth: int) -> None:
        instr = step.instr
        runner = self.kernels[instr.attrs["callee"]]
        kernel = self.bind("k", runner)
        outs = ", ".join(f"v{r}" for r in instr.results)
        places = [self.place(r) for r in instr.results if r in self.steps.makers]
        while places and places[-1] == "None":
            places.pop()
        if any(place.startswith("frame") for place in places):
            self.emit_frame(depth)
        args = ", ".join([*(f"v{o}" for o in step.operands), *places])
        self.emit(depth, f"{outs} = {kernel}({args})")
        for result in (r for r in instr.results if r in self.spares):
            self.emit(depth, f"{self.spares[result]}.keep(v{result})")
        if not getattr(runner, "interprets", False):
            self.fresh.update(instr.results)

    def place(self, result: int) -> str:
        """Source of the array into which a kernel writes a result; ``"None"`` = a new array."""
        if self.inner and result in self.inner.index:
            return f"frame[{self.inner.index[result]}]"
        if result in self.spares:
            return f"{self.spares[result]}.take()"
        output = self.steps.body.destined.get(result)
        return "None" if output is None else f"None if outs is None else outs[{output}]"

    def emit_frame(self, depth: int) -> None:
        """Take the thread's frame, at the first kernel that writes into it."""
        assert self.inner is not None
        self.scope |= {"frame_of": thread_block.frame, "inner": self.inner}
        sizes = "".join(f"v{value}.shape[{axis}], " for value, axis in self.inner.reads)
        if sizes:
            self.emit(depth, "if frame is None:")
            self.emit(depth + 1, f"try: sizes = ({sizes})")
            self.emit(depth + 1, "except (AttributeError, IndexError): sizes = None")
            self.emit(depth + 1, "block, frame = frame_of(inner, sizes)")
        else:
            self.emit(depth, "if frame is None: block, frame = frame_of(inner, ())")

    def emit_forfeit(self, depth: int) -> None:
        """Give up the block, because a fallback may keep arrays that lie in it."""
        self.scope |= {"forfeit": thread_block.forfeit}
        self.emit(depth, "if block is not None: block, frame = forfeit(block, inner)")

    def emit_graph(self, step: PlanStep, depth: int) -> None:
        """A differentiable subgraph; its results are arrays of their own, as an executor's are."""
        instr = step.instr
        graph = self.bind("d", self.graphs[instr.attrs["forward"]])
        args = ", ".join(f"v{o}" for o in step.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        target = outs if len(instr.results) == 1 else f"[{outs}]"
        self.emit(depth, f"{target} = {graph}({args})")
        self.fresh.update(instr.results)

    # The results count as fresh: a fallback executor's results share no memory with its operands.
    def emit_fallback(self, step: PlanStep, depth: int) -> None:
        instr = step.instr
        fallback = self.bind("f", self.fallbacks[instr.attrs["callee"]])
        args = ", ".join(f"v{o}" for o in step.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        if self.inner and not self.inner.shared.isdisjoint(step.operands):
            self.emit_forfeit(depth)
        self.emit(depth, "C.fallback_calls += 1")
        self.emit(depth, f"[{outs}] = {fallback}([{args}])")
        self.fresh.update(instr.results)

    def emit_source(self, step: PlanStep, depth: int) -> bool:
        """An op as lines of its own; whether it has such."""
        instr, operands = step.instr, step.operands
        if self.adapt is not None or not instr.op.foreign:
            return False
        reads, makes, last = ([f"v{v}" for v in values] for values in (operands, instr.results, step.dead))
        lines = instr.op.source(instr.op.full_attrs(instr.attrs), reads, makes, last)
        if lines is None:
            return False
        for line in lines:
            self.emit_located(instr, depth, line)
        self.has_calls = True
        if operands:
            self.emit(depth, "C.evaluated_ops += 1")
        return True

    def emit_located(self, instr: Instr, depth: int, line: str) -> None:
        """A line whose errors are told to stand where the op does."""
        self.emit(depth, line)
        self.places[len(self.lines) - 1] = instr.loc

    def emit_evaluate(self, step: PlanStep, depth: int) -> None:
        instr = step.instr
        if self.emit_source(step, depth):
            return
        args = ", ".join(f"v{o}" for o in step.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        target = f"{outs} = " if outs else ""
        evaluate = bound_evaluate(instr, self.overwrites)
        function = self.bind("e", self.adapt(instr, evaluate) if self.adapt else evaluate)
        self.emit(depth, f"{target}{function}({args})")
        if instr.operands:
            self.emit(depth, "C.evaluated_ops += 1")
        if instr.op is Borrow:  # who has lent an array knows that it is the result
            self.fresh.update(instr.results)
        # What `keep-layouts` puts behind a group: nothing else sees the memory of its result.
        if (
            issubclass(instr.op, Permutation)
            and instr.operands[0] in self.fresh
            and uses_in(self.main.body).count(instr.operands[0]) == 1
        ):
            self.fresh.update(instr.results)

    def yields(self, targets: Sequence[int], values: Sequence[int], depth: int) -> None:
        if targets:
            left = ", ".join(f"v{t}" for t in targets)
            right = ", ".join(f"v{v}" for v in values)
            self.emit(depth, f"{left} = {right}")
        else:
            self.emit(depth, "pass")

    def emit_if(self, step: PlanStep, depth: int) -> None:
        instr, (then, other) = step.instr, step.blocks
        self.emit(depth, f"if v{step.operands[0]}:")
        if step.guard is not None:
            self.emit_timed(step.guard, then, depth + 1)
        else:
            self.block(then, depth + 1)
        self.hand_on(then, instr.results, depth + 1)
        self.emit(depth, "else:")
        self.block(other, depth + 1)
        self.hand_on(other, instr.results, depth + 1)
        for result, a, b in zip(instr.results, *(block.outputs for block in instr.blocks), strict=True):
            if {a, b} <= self.fresh:
                self.fresh.add(result)

    def hand_on(self, side: PlanBlock, results: tuple[int, ...], depth: int) -> None:
        """Assign the outputs of one side of a branch to the branch's results."""
        self.yields(results, side.outputs, depth)
        if not set(results) <= set(self.main.outputs):  # else nothing can be dropped
            self.drop([v for v in dict.fromkeys(side.outputs) if v in side.arrays], depth)

    def emit_timed(self, guard: PlanGuard, then: PlanBlock, depth: int) -> None:
        """A guarded block, timed at one hit in ``time_every``; the first hit is not timed."""
        every = knobs.time_every
        g, now = self.bind("g", guard), self.bind("now", time.perf_counter)
        self.emit(depth, f"start = {now}() if {g}.counted % {every} == {2 % every} else 0.0")
        self.block(then, depth)
        self.emit(depth, f"if start: {g}.timed_seconds += {now}() - start; {g}.timed += 1")

    def emit_while(self, step: PlanStep, depth: int) -> None:
        instr, (before, after) = step.instr, step.blocks
        before_args, after_args = (block.args for block in instr.blocks)
        self.yields(before_args, step.operands, depth)
        self.emit_spares(after, depth)
        check = self.emit_patience(instr, depth)
        self.emit(depth, "while True:")
        self.emit(depth + 1, check)
        self.block(before, depth + 1)
        self.emit(depth + 1, f"if not v{before.outputs[0]}: break")
        self.yields(after_args, before.outputs[1:], depth + 1)
        self.block(after, depth + 1)
        self.yields(before_args, after.outputs, depth + 1)
        self.yields(instr.results, before.outputs[1:], depth)

    def emit_spares(self, body: PlanBlock, depth: int) -> None:
        """Before a loop: what keeps memory for those results of kernels that rounds hand on."""
        from ..memory.spare import Spare  # few plans have loops

        for result in body.destined:
            abi = self.steps.makers.get(result)
            if abi is not None and always_launches(abi):
                name = self.spares[result] = f"spare{result}"
                self.scope["Spare"] = Spare
                self.emit(depth, f"{name} = Spare()")

    def emit_patience(self, instr: Instr, depth: int) -> str:
        """The statement with which a round of a loop begins: where no kernel is in it, Python may be sooner.

        A branch that no profile has seen is such a place: its loops are evaluated op by op.
        """
        kernels = (FusionGroup, DiffGraph, CallFallback)
        if any(issubclass(i.op, kernels) for block in instr.blocks for i in block.walk()):
            return "pass"
        end = f"end{len(self.scope)}_{depth}"
        self.scope |= {"end_of_patience": end_of_patience, "check_patience": check_patience}
        self.emit(depth, f"{end} = end_of_patience()")
        return f"check_patience({end})"

    def emit_for(self, step: PlanStep, depth: int) -> None:
        instr, (body,) = step.instr, step.blocks
        lower, upper, stride, *inits = step.operands
        index, *carried = instr.blocks[0].args
        self.yields(carried, inits, depth)
        for k in () if self.overwrites is None else self.overwrites.owned(instr):
            self.scope["own_copy"] = own_copy
            self.emit(depth, f"v{carried[k]} = own_copy(v{carried[k]})")
        self.emit_spares(body, depth)
        check = self.emit_patience(instr, depth)
        self.emit(depth, f"for v{index} in range(v{lower}, v{upper}, v{stride}):")
        self.emit(depth + 1, check)
        self.block(body, depth + 1)
        self.yields(carried, body.outputs, depth + 1)
        self.yields(instr.results, carried, depth)
