"""An optimised graph as one Python function: guards, kernel calls, evaluated ops, fallbacks.

The function's source is generated once, so a call does no dispatch per op. A guard first makes a
quick comparison. If that fails, `dialect.guards.mismatch` decides, so that sizes and strides
without a meaning (axes of size 1, empty arrays) never cause a miss.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ...dialect.guards.checks import checks_of
from ...dialect.guards.mismatch import flags_hold, holds
from ...dialect.guards.seen import noted
from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.program import Block, Instr, Module
from ...dialect.ops.indexing.inplace import Borrow
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.speculation import CallFallback, DiffGraph, FusionGroup
from ...dialect.ops.speculation import Guard as GuardOp
from ...lowering.abi import KernelABI
from ..interpret.evaluate import Adapt, bound_evaluate, located_at, own
from ..interpret.loop_limit import check_patience, end_of_patience
from ..memory import thread_block
from ..memory.destinations import destined, made_by_groups
from ..memory.donation import donations
from ..memory.intermediates import Intermediates, intermediates
from ..memory.liveness import Liveness, Overwrites, own_copy, uses_in
from ..settings.events import Counters
from ..settings.knobs import knobs
from ..settings.stress import guard_failures
from .guard import Guard, quick_check, sure_miss
from .kernel_call import always_launches, native_kernel

Runner = Callable[..., Any]


@dataclass
class Plan:
    """A callable that runs a graph, with its description.

    Attributes:
        kind: ``"profiling"``, ``"compiling"``, ``"optimized"``, ``"simple"`` (depth 0) or
            ``"no-opt"``.
        run: list of inputs -> list of outputs. An optimised plan takes `Destinations.direct` as a
            second argument.
        fresh: per output, True if it can never share memory with an input.
        guards: the guards, in order of execution.
        source: Python source of an optimised plan, for people to read.
        graph: the graph that the plan runs.
        name: name of the function that the plan runs (R1.49).
        kernels: fusion function name -> callable.
        counters: the counters of the executor.
        donations: pairs (output, input): the output may be written into the input's memory.
        sole: that holds for arrays which nobody but the list of inputs holds, not for all.
        intermediates: the arrays between kernels that have places in the thread's block; None = no
            array has one.
        graphs: what runs the differentiable subgraphs, a `DiffOp` each.
        own: makes of an output that may share memory with an input one that shares none.
        ref: weak reference to this plan, for `last_executed_graph`.
    """

    kind: str
    run: Callable[..., list]
    fresh: tuple[bool, ...]
    guards: list[Guard] = field(default_factory=list)
    source: str = ""
    graph: Module | None = None
    name: str = ""
    kernels: dict[str, Runner] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters, repr=False, compare=False)
    donations: tuple[tuple[int, int], ...] = ()
    sole: bool = False
    intermediates: Intermediates | None = None
    graphs: tuple[Any, ...] = ()
    own: Callable[[Any, Sequence[Any]], Any] = own
    ref: weakref.ref[Plan] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.ref = weakref.ref(self)

    def backward_executors(self) -> list[Any]:
        """The executor of the reverse half of each differentiable subgraph, in order (R2.17)."""
        return [graph.reverse for graph in self.graphs]


class _Plans:
    """Counts changes of plans in this process, so that callers can notice a new plan cheaply."""

    made = 0


PLANS = _Plans()


def build_plan(
    module: Module,
    kernels: dict[str, Runner],
    fallbacks: dict[str, Callable[[list], list]],
    counters: Counters,
    donated: Sequence[int] = (),
    adapt: Adapt | None = None,
    graphs: Mapping[str, Any] | None = None,
    *,
    on_tape: bool = False,
) -> Plan:
    """Generate the Python function of an optimised module.

    Args:
        module: decoded optimised graph.
        kernels: fusion function name -> callable on the group's operands, which returns one value,
            or a tuple if the group has several results.
        fallbacks: fallback function name -> callable on a list of operands.
        counters: the counters that the generated code increments.
        donated: indices of inputs whose memory the plan may reuse for results.
        adapt: see `Evaluator`; applied to ops outside of kernels.
        graphs: name of the forward half of a differentiable subgraph -> what runs the subgraph.
        on_tape: values may be arrays of the tape, whose flags quick comparisons do not ask for.
    """
    native = {name: native_kernel(kernel) for name, kernel in kernels.items()}
    abis = {name: kernel[0].abi for name, kernel in native.items() if kernel is not None}
    made = _Generator(module, kernels, fallbacks, counters, abis, adapt, graphs or {})
    made.is_quick = not on_tape
    plan = made.plan()
    plan.graphs = tuple((graphs or {}).values())
    plan.intermediates = made.inner
    if donated:
        plan.donations = donations(module.main, made.destined, abis, donated)
    return plan


class _Generator:
    is_quick = True  # guards begin with a comparison that holds for plain arrays

    def __init__(
        self,
        module: Module,
        kernels: dict[str, Runner],
        fallbacks: dict[str, Callable[[list], list]],
        counters: Counters,
        abis: dict[str, KernelABI],
        adapt: Adapt | None = None,
        graphs: Mapping[str, Any] | None = None,
    ) -> None:
        self.adapt = adapt
        self.graphs = graphs or {}
        self.abis = abis
        self.module, self.main = module, module.main
        self.liveness = Liveness(module.main)
        self.overwrites = Overwrites(module.main) if adapt is None else None
        self.destined = destined(module.main)
        self.inner = intermediates(module.main, abis)
        self.spares: dict[int, str] = {}  # result of a kernel in each round -> name of its `Spare`
        self.kernels, self.fallbacks = kernels, fallbacks
        self.scope: dict[str, Any] = {
            "C": counters, "holds": holds, "flags_hold": flags_hold, "noted": noted,
        }  # fmt: skip
        self.lines: list[str] = []
        self.guards: list[Guard] = []
        self.fresh: set[int] = set()
        self.taken: set[int] = set()  # by the ops that have read them last
        self.open_guard: dict[int, int] = {}  # value of a guard's boolean -> guard index

    def plan(self) -> Plan:
        self.lines.append("def run(inputs, outs=None):")
        names = ", ".join(f"v{a}" for a in self.main.inputs)
        if names:
            self.lines.append(f"    [{names}] = inputs")
        if self.inner:
            self.emit(1, "block = frame = None")
        self.block(self.main.body, 1)
        outs = ", ".join(f"v{o}" for o in self.main.outputs)
        self.lines.append(f"    return [{outs}]")
        source = "\n".join(self.lines)
        exec(compile(source, generated_file(f"plan of {self.main.name}"), "exec"), self.scope)
        fresh = tuple(o in self.fresh for o in self.main.outputs)
        return Plan(
            "optimized", self.scope["run"], fresh, self.guards, source, self.module,
            self.main.name, self.kernels,
        )  # fmt: skip

    def bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def block(self, block: Block, depth: int) -> None:
        for instr in block.instrs:
            self.instr(instr, depth)
            dead = self.liveness.dead_after(instr)
            self.drop([v for v in dead if v not in self.taken], depth)

    def drop(self, values: Sequence[int], depth: int) -> None:
        """Delete the last references to values, so that the pool can reuse their memory."""
        if values:
            self.emit(depth, f"del {', '.join(f'v{v}' for v in values)}")

    def instr(self, instr: Instr, depth: int) -> None:
        if instr.op.dialect == "scf":
            getattr(self, f"emit_{instr.op.name}")(instr, depth)
        elif issubclass(instr.op, GuardOp):
            self.emit_guard(instr, depth)
        elif instr.op is FusionGroup:
            self.emit_group(instr, depth)
        elif instr.op is CallFallback:
            self.emit_fallback(instr, depth)
        elif instr.op is DiffGraph:
            self.emit_graph(instr, depth)
        elif "callee" in instr.op.attrs:
            raise InternalError(f"{instr.op.full_name()} in a final plan", loc=instr.loc)
        else:
            self.emit_evaluate(instr, depth)

    def emit_guard(self, instr: Instr, depth: int) -> None:
        types = instr.attrs["types"]
        assert issubclass(instr.op, GuardOp)
        behavior = instr.op.behavior
        index = len(self.guards)
        guard = Guard(types, behavior, operands=instr.operands)
        self.guards.append(guard)
        flags = behavior == "gradients"
        checks = checks_of(types, relaxed=behavior == "relaxed", flags=flags)
        g, t = self.bind("g", guard), self.bind("t", checks)
        *aliases, ok = instr.results
        values = [f"v{o}" for o in instr.operands]
        is_quick = self.is_quick and not flags
        quick = quick_check(types, checks, values, self.bind) if is_quick else None
        listed = f"({', '.join(values)},)"
        slow = f"flags_hold({t}, {listed})" if flags else f"holds({t}, {listed})"
        if quick:
            sure = sure_miss(checks, values)
            unless = f"not ({sure}) and " if sure else ""
            # A guard never raises, whatever object the value is (R1.39).
            self.emit(depth, f"try: v{ok} = ({quick}) or {unless}{slow}")
            self.emit(depth, f"except AttributeError: v{ok} = {slow}")
        else:
            self.emit(depth, f"v{ok} = {slow}")
        for alias, value in zip(aliases, values, strict=True):
            self.emit(depth, f"v{alias} = {value}")
        self.emit(depth, f"if v{ok}: {g}.counted += 1; C.guard_hits += 1")
        misses = f"{g}.missed += 1; C.guard_misses += 1"
        self.emit(depth, f"else: {misses}; {g}.missed_types = tuple(map(noted, {listed}))")
        fails = guard_failures(knobs.stress, f"{self.main.name}/{index}")
        guard.stressed = fails is not None
        if fails is not None:
            self.emit(depth, f"if v{ok} and {self.bind('fails', fails)}():")
            undo = f"{g}.counted -= 1; C.guard_hits -= 1; {misses}"
            forced = f"v{ok} = False; {g}.forced += 1; C.forced_misses += 1"
            self.emit(depth + 1, f"{forced}; {undo}")
        self.open_guard[ok] = index

    def emit_group(self, instr: Instr, depth: int) -> None:
        callee = instr.attrs["callee"]
        kernel = self.bind("k", self.kernels[callee])
        outs = ", ".join(f"v{r}" for r in instr.results)
        given = [self.place(r) for r in instr.results] if callee in self.abis else []
        while given and given[-1] == "None":
            given.pop()
        if any(place.startswith("frame") for place in given):
            self.emit_frame(depth)
        args = ", ".join([*(f"v{o}" for o in instr.operands), *given])
        self.emit(depth, f"{outs} = {kernel}({args})")
        for result in (r for r in instr.results if r in self.spares):
            self.emit(depth, f"{self.spares[result]}.keep(v{result})")
        if not getattr(self.kernels[callee], "interprets", False):
            self.fresh.update(instr.results)

    def place(self, result: int) -> str:
        """Source of the array into which a kernel writes a result; ``"None"`` = a new array."""
        if self.inner and result in self.inner.index:
            return f"frame[{self.inner.index[result]}]"
        if result in self.spares:
            return f"{self.spares[result]}.take()"
        output = self.destined.get(result)
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

    def emit_graph(self, instr: Instr, depth: int) -> None:
        """A differentiable subgraph; its results are arrays of their own, as an executor's are."""
        graph = self.bind("d", self.graphs[instr.attrs["forward"]])
        args = ", ".join(f"v{o}" for o in instr.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        target = outs if len(instr.results) == 1 else f"[{outs}]"
        self.emit(depth, f"{target} = {graph}({args})")
        self.fresh.update(instr.results)

    # The results count as fresh: a fallback executor's results share no memory with its operands.
    def emit_fallback(self, instr: Instr, depth: int) -> None:
        fallback = self.bind("f", self.fallbacks[instr.attrs["callee"]])
        args = ", ".join(f"v{o}" for o in instr.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        if self.inner and not self.inner.shared.isdisjoint(instr.operands):
            self.emit_forfeit(depth)
        self.emit(depth, "C.fallback_calls += 1")
        self.emit(depth, f"[{outs}] = {fallback}([{args}])")
        self.fresh.update(instr.results)

    def emit_taking(self, instr: Instr, depth: int) -> bool:
        """An op that takes its operand, if nothing reads that afterwards; whether there is one."""
        (operand,) = instr.operands if len(instr.operands) == 1 else (None,)
        if self.adapt is not None or operand not in self.liveness.dead_after(instr):
            return False
        taking = instr.op.taking(instr.attrs)
        if taking is None:
            return False
        assert operand is not None
        self.taken.add(operand)
        self.emit(depth, f"taken = [v{operand}]")
        self.drop([operand], depth)
        self.emit(depth, f"{self.bind('e', located_at(taking, instr.loc))}(taken)")
        self.emit(depth, "C.evaluated_ops += 1")
        return True

    def emit_evaluate(self, instr: Instr, depth: int) -> None:
        if self.emit_taking(instr, depth):
            return
        evaluate = bound_evaluate(instr, self.overwrites)
        function = self.bind("e", self.adapt(instr, evaluate) if self.adapt else evaluate)
        args = ", ".join(f"v{o}" for o in instr.operands)
        outs = ", ".join(f"v{r}" for r in instr.results)
        self.emit(depth, f"{outs} = {function}({args})" if outs else f"{function}({args})")
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

    def emit_if(self, instr: Instr, depth: int) -> None:
        then, other = instr.blocks
        guard = self.open_guard.get(instr.operands[0])
        if guard is not None:
            self.link(self.guards[guard], then, other)
        self.emit(depth, f"if v{instr.operands[0]}:")
        if guard is not None:
            self.emit_timed(guard, then, depth + 1)
        else:
            self.block(then, depth + 1)
        self.hand_on(then, instr.results, depth + 1)
        self.emit(depth, "else:")
        self.block(other, depth + 1)
        self.hand_on(other, instr.results, depth + 1)
        for result, a, b in zip(instr.results, then.outputs, other.outputs, strict=True):
            if {a, b} <= self.fresh:
                self.fresh.add(result)

    def hand_on(self, side: Block, results: tuple[int, ...], depth: int) -> None:
        """Assign the outputs of one side of a branch to the branch's results."""
        self.yields(results, side.outputs, depth)
        self.drop(self.liveness.handed_on(side, results), depth)

    def emit_timed(self, index: int, then: Block, depth: int) -> None:
        """A guarded block, timed at one hit in ``time_every``; the first hit is not timed."""
        every = knobs.time_every
        g, now = self.bind("g", self.guards[index]), self.bind("now", time.perf_counter)
        self.emit(depth, f"start = {now}() if {g}.counted % {every} == {2 % every} else 0.0")
        self.block(then, depth)
        self.emit(depth, f"if start: {g}.timed_seconds += {now}() - start; {g}.timed += 1")

    @staticmethod
    def link(guard: Guard, then: Block, other: Block) -> None:
        for inner in then.instrs:
            if inner.op is FusionGroup:
                guard.callee = inner.attrs["callee"]
            elif inner.op is DiffGraph:
                guard.callee = inner.attrs["forward"]
        for inner in other.instrs:
            if inner.op is CallFallback:
                guard.fallback = inner.attrs["callee"]

    def emit_while(self, instr: Instr, depth: int) -> None:
        before, after = instr.blocks
        self.yields(before.args, instr.operands, depth)
        self.emit_spares(after, depth)
        check = self.emit_patience(instr, depth)
        self.emit(depth, "while True:")
        self.emit(depth + 1, check)
        self.block(before, depth + 1)
        self.emit(depth + 1, f"if not v{before.outputs[0]}: break")
        self.yields(after.args, before.outputs[1:], depth + 1)
        self.block(after, depth + 1)
        self.yields(before.args, after.outputs, depth + 1)
        self.yields(instr.results, before.outputs[1:], depth)

    def emit_spares(self, body: Block, depth: int) -> None:
        """Before a loop: what keeps memory for those results of kernels that rounds hand on."""
        from ..memory.spare import Spare  # few plans have loops

        groups = {r: i for i in body.walk() if i.op is FusionGroup for r in i.results}
        for result in made_by_groups(body, body.outputs):
            abi = self.abis.get(groups[result].attrs["callee"])
            if abi is not None and always_launches(abi):
                name = self.spares[result] = f"spare{result}"
                self.scope["Spare"] = Spare
                self.emit(depth, f"{name} = Spare()")

    def emit_patience(self, instr: Instr, depth: int) -> str:
        """What a round of a loop begins with: where no kernel is in it, Python may be sooner.

        A branch that no profile has seen is such a place: its loops are evaluated op by op.
        """
        kernels = (FusionGroup, DiffGraph, CallFallback)
        if any(i.op in kernels for block in instr.blocks for i in block.walk()):
            return "pass"
        end = f"end{len(self.scope)}_{depth}"
        self.scope |= {"end_of_patience": end_of_patience, "check_patience": check_patience}
        self.emit(depth, f"{end} = end_of_patience()")
        return f"check_patience({end})"

    def emit_for(self, instr: Instr, depth: int) -> None:
        (body,) = instr.blocks
        lower, upper, step, *inits = instr.operands
        index, *carried = body.args
        self.yields(carried, inits, depth)
        for k in () if self.overwrites is None else self.overwrites.owned(instr):
            self.scope["own_copy"] = own_copy
            self.emit(depth, f"v{carried[k]} = own_copy(v{carried[k]})")
        self.emit_spares(body, depth)
        check = self.emit_patience(instr, depth)
        self.emit(depth, f"for v{index} in range(v{lower}, v{upper}, v{step}):")
        self.emit(depth + 1, check)
        self.block(body, depth + 1)
        self.yields(carried, body.outputs, depth + 1)
        self.yields(instr.results, carried, depth)
