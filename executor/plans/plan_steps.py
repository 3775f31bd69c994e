"""A plan as a list of steps, with its tests and the places of its arrays: made once, by one walk.

The Python function of a plan (`python_source`), code for its calls (`dispatch.reader`) and what is
told of its memory are read from this list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field

import numpy as np

from ...dialect.analysis.alias import uses
from ...dialect.dataclass import dataclass
from ...dialect.errors import ShapeError
from ...dialect.ir.dtypes import dtype_named
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.size_algebra import multiple_of, parse_dim
from ...dialect.ir.symbolic import Dim, Dimension, Sym, symbol
from ...dialect.ir.types import ScalarType
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.size_lists import AllTrue
from ...dialect.ops.sizes import is_nonnegative
from ...dialect.ops.speculation import CallFallback, DiffGraph, FusionGroup, Guard
from ...lowering.abi import KernelABI
from ..memory.intermediates import Intermediates, bytes_in_block
from ..memory.offsets import Moment, Refused, lay_out, size_of
from .guard import PlanGuard


@dataclass(eq=False)
class PlanStep:
    """One step of a plan.

    Attributes:
        instr: the instruction that the step runs.
        operands: the values that it reads. The aliases that guards give are replaced by their values.
        blocks: the steps of the instruction's blocks.
        guard: the guard that the step is, or whose answer a branch or a conjunction depends on; None = neither.
        dead: arrays made in the step's own block that no later step reads.
    """

    instr: Instr
    operands: tuple[int, ...]
    blocks: tuple[PlanBlock, ...] = ()
    guard: PlanGuard | None = None
    dead: list[int] = field(default_factory=list)


@dataclass(eq=False)
class PlanBlock:
    """The steps of a block.

    Attributes:
        steps: in order.
        outputs: the values that the block yields, without aliases.
        arrays: the values made in the block that may be arrays; constants are not among them.
        destined: result of a group of the block, or of a branch in it -> index of the output of the
            block that it becomes, if the group runs once in a run of the block.
    """

    steps: list[PlanStep] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    arrays: list[int] = field(default_factory=list)
    destined: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class PlanSteps:
    """The steps of a graph, and the memory of what they make.

    Attributes:
        main: the graph.
        body: the steps; its `destined` are the results that kernels may write into given arrays.
        guards: the guards, in order.
        makers: result of a group that has a kernel -> ABI of the kernel.
        intermediates: the arrays that can lie in the thread's block; None = there are none.
        donations: pairs (output, input): the output may be written into the input's memory. Each is in
            at most one pair.
    """

    main: Program
    body: PlanBlock
    guards: list[PlanGuard]
    makers: Mapping[int, KernelABI]
    intermediates: Intermediates | None
    donations: tuple[tuple[int, int], ...]


def plan_steps(
    main: Program, abis: Mapping[str, KernelABI], donated: Sequence[int] = (), *, taken: bool = False
) -> PlanSteps:
    """The steps of a graph.

    Args:
        main: the graph.
        abis: fusion function name -> ABI of its native kernel; other groups are interpreted.
        donated: indices of inputs that may be overwritten if they overlap no other input.
        taken: the inputs, each of which an op reads, are let go like other values.
    """
    walk = _PlanWalk(main, abis, main.inputs if taken else ())
    return PlanSteps(main, walk.body, walk.guards, walk.makers, walk.placed(), walk.donations(donated))


class _PlanWalk:
    """The walk over a graph.

    An array that only kernels read can lie in the thread's block. Any other reader may keep an array
    or a view of it: an evaluated op, an interpreted group (also after a violation), or the caller.
    Guards keep nothing. A fallback may keep an array, but fallbacks are rare: if one runs, the plan
    gives up its block (`thread_block.forfeit`).

    All values that may be the same array form a *web* (a union-find set). A place becomes free when
    no value of the web is read any more.
    """

    def __init__(self, main: Program, abis: Mapping[str, KernelABI], taken: Sequence[int] = ()) -> None:
        self.main, self.abis = main, abis
        self.guards: list[PlanGuard] = []
        self.makers: dict[int, KernelABI] = {}
        self._answers: dict[int, PlanGuard] = {}  # value of a guard's boolean -> guard
        self._aliases: dict[int, int] = {}  # what a guard gives -> the value that it has checked
        self._path: list[PlanStep] = []  # the steps under way, the outermost first
        self._depths: dict[int, int] = {}  # array -> index in `_path` of the step that made it
        self._last: dict[int, PlanStep] = {}  # array -> the step of its block that read it last
        self._webs: dict[int, int] = {}
        self._kept: set[int] = set()  # what readers other than kernels may keep
        self._interpreted: set[int] = set()  # what groups read that may run op by op
        self._moments: list[Moment] = []
        self._groups: list[tuple[PlanStep, int]] = []  # with the number of its moment
        self._branches: list[list[int]] = []  # moments: first, first of the other side, end
        # Sizes are predicted: the kernel call compares them. Of a single kernel nothing is placed.
        self._sized = len(abis) > 1
        self._inputs: dict[int, int] = {v: v for v in main.inputs}  # input, or its alias -> input
        self._shapes: dict[int, tuple[Dim, ...]] = {}
        self._dtypes: dict[int, np.dtype] = {}
        self._nbytes: dict[int, Dim] = {}
        self.body = self._block(main.body, {o: k for k, o in enumerate(main.outputs)}, taken)
        self._kept.update(self.body.outputs)

    def donations(self, donated: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The pairs of outputs and inputs that share memory; see `PlanSteps`.

        The fusion group that makes the output must be the last reader of the input, and its kernel
        must be able to write in place.
        """
        pairs: dict[int, int] = {}
        for step, moment in self._groups:
            abi = self.abis.get(step.instr.attrs["callee"])
            if abi is None or abi.can_violate:
                continue  # after a violation, the group is evaluated again from the same arguments
            for number, result in enumerate(step.instr.results):
                output = self.body.destined.get(result)
                if output is None or output in pairs.values():
                    continue
                for k in donated:
                    value = self.main.inputs[k]
                    reads = [n for n, operand in enumerate(step.operands) if operand == value]
                    in_place = reads and all((number, n) in abi.in_place for n in reads)
                    if in_place and k not in pairs and self._dies_at(value, moment):
                        pairs[k] = output
                        break
        return tuple((output, k) for k, output in pairs.items())

    def _dies_at(self, value: int, moment: int) -> bool:
        """True if nothing keeps a value, or reads it after a moment."""
        others = [range(other, end) for then, other, end in self._branches if then <= moment < other]
        later = (k for k, m in enumerate(self._moments) if k > moment and value in m.touched)
        return value not in self._kept and all(any(k in side for side in others) for k in later)

    # --- steps ------------------------------------------------------------------------------

    def _block(self, block: Block, targets: Mapping[int, int], taken: Sequence[int] = ()) -> PlanBlock:
        """The steps of a block; ``targets``: value of the block -> the output that it becomes."""
        body, depth = PlanBlock(arrays=list(taken)), len(self._path)
        self._depths |= dict.fromkeys(taken, depth)
        for instr in block.instrs:
            step = PlanStep(instr, ())
            self._path[depth:] = [step]
            step.operands = self._read(instr.operands)
            body.steps.append(step)
            if issubclass(instr.op, Guard):
                self._guard(step)
                continue
            if instr.op is AllTrue:
                guards = [self._answers[o] for o in instr.operands if o in self._answers]
                if len(guards) == 1:
                    step.guard = self._answers[instr.results[0]] = guards[0]
            if instr.op is If:
                self._branch(step, targets, body)
            elif issubclass(instr.op, FusionGroup):
                self._group(step)
                body.destined |= {r: targets[r] for r in instr.results if r in targets}
            elif instr.op is CallFallback:
                self._touch(step)
            elif instr.op.dialect == "scf":
                self._loop(step)
            else:
                self._kept.update(step.operands, instr.results)
            if instr.operands:
                arrays = [r for r in instr.results if not isinstance(self.main.type_of(r), ScalarType)]
                body.arrays += arrays
                self._depths |= dict.fromkeys(arrays, depth)
                self._last |= dict.fromkeys(arrays, step)
        body.outputs = self._read(block.outputs)
        for value in body.arrays:
            if value not in body.outputs:
                self._last[value].dead.append(value)
        del self._path[depth:]
        return body

    def _read(self, values: Sequence[int]) -> tuple[int, ...]:
        """The values without aliases, noted as read by the steps under way."""
        roots = tuple([self._aliases.get(v, v) for v in values])
        self._last |= {v: self._path[self._depths[v]] for v in roots if v in self._depths}
        return roots

    def _guard(self, step: PlanStep) -> None:
        op, attrs = step.instr.op, step.instr.attrs
        assert issubclass(op, Guard)
        types, free = attrs["types"], op.free_sizes(attrs)
        *aliases, ok = step.instr.results
        guard = PlanGuard(types, op.behavior, free, operands=step.instr.operands, answer=ok)
        step.guard = self._answers[ok] = guard
        self.guards.append(step.guard)
        self._touch(step)
        self._aliases |= zip(aliases, step.operands, strict=True)
        if not self._sized or op.behavior not in ("static", "dynamic"):
            return  # others let sizes differ from those of the types
        checked = list(zip(step.operands, types, strict=True))
        # A symbol has one value in a guard: if an argument has the size, so have evaluated ops.
        symbols: dict[str, Dim] = {}
        for value, type_ in checked:
            for axis, dim in enumerate(type_.shape or ()):
                multiple, size = multiple_of(dim), self._size(value, axis)
                if multiple is not None and size is not None:
                    symbols.setdefault(multiple[0], size // multiple[1])
        for value, type_ in checked:
            if value not in self._inputs and value not in self._shapes and type_.shape is not None:
                with suppress(Refused):
                    self._shapes[value] = tuple(size_of(dim, symbols) for dim in type_.shape)

    def _branch(self, step: PlanStep, targets: Mapping[int, int], around: PlanBlock) -> None:
        instr = step.instr
        self._touch(step)
        moments = [len(self._moments)]
        for block in instr.blocks:
            pairs = zip(block.outputs, instr.results, strict=True)
            side = self._block(block, {o: targets[r] for o, r in pairs if r in targets})
            around.destined |= side.destined
            self._kept.update(set(side.outputs).intersection(self.main.inputs))
            step.blocks += (side,)
            moments.append(len(self._moments))
        self._branches.append(moments)
        for result, *values in zip(instr.results, *(b.outputs for b in step.blocks), strict=True):
            for value in reversed(values):  # the first side is last, since its sizes shall win
                self._same(result, value)
        step.guard = self._answers.get(instr.operands[0])
        if step.guard is not None:
            then, other = instr.blocks
            for inner in then.instrs:
                if issubclass(inner.op, (FusionGroup, DiffGraph)):
                    step.guard.callee = inner.attrs["forward" if inner.op is DiffGraph else "callee"]
            for inner in other.instrs:
                if inner.op is CallFallback:
                    step.guard.fallback = inner.attrs["callee"]

    def _loop(self, step: PlanStep) -> None:
        """Treat arrays from outside as read until the loop's end; all carried values are kept."""
        instr = step.instr
        self._kept.update(step.operands, instr.results)
        for block in instr.blocks:
            is_round = block is instr.blocks[-1]  # else the condition
            body = self._block(block, {o: k for k, o in enumerate(block.outputs)} if is_round else {})
            self._kept.update(block.args, body.outputs)
            step.blocks += (body,)
        inside = {r for block in instr.blocks for i in block.walk() for r in i.results}
        self._moments.append(Moment((), {self._aliases.get(v, v) for v in uses(instr) - inside}))

    def _group(self, step: PlanStep) -> None:
        abi, results = self.abis.get(step.instr.attrs["callee"]), step.instr.results
        self._groups.append((step, len(self._moments)))
        self._touch(step)
        if abi is None or abi.can_violate:
            self._interpreted.update(step.operands)
        if abi is None:
            return
        self.makers |= dict.fromkeys(results, abi)
        if not self._sized:
            return
        sizes = {
            name: size // times
            for name, (index, axis, times) in abi.symbols.items()
            if (size := self._size(step.operands[index], axis)) is not None
        }
        for result, spec in zip(results, abi.results, strict=True):
            dtype, dims = dtype_named(spec.dtype).numpy, tuple(map(parse_dim, spec.dims))
            try:
                shape = tuple(size_of(dim, sizes) for dim in dims)
                nbytes = bytes_in_block(dtype, shape)
            except (Refused, ShapeError):
                continue  # the size is unknown before the call
            if not all(map(is_nonnegative, dims)):
                continue  # NumPy refuses negative sizes, and places would overlap
            self._shapes[result], self._dtypes[result] = shape, dtype
            if nbytes is not None:
                self._nbytes[result] = nbytes

    # --- places -----------------------------------------------------------------------------

    def _touch(self, step: PlanStep) -> None:
        results = step.instr.results
        self._moments.append(Moment(results, {*step.operands, *results}))

    def _web(self, value: int) -> int:
        """The representative of all values that may be the same array as this one."""
        webs = self._webs
        while (parent := webs.setdefault(value, value)) != value:
            webs[value] = value = webs[parent]  # path halving
        return value

    def _same(self, alias: int, value: int) -> None:
        """Note that two values may be the same array, and that the alias has the value's sizes."""
        self._webs[self._web(alias)] = self._web(value)
        if value in self._inputs:
            self._inputs[alias] = self._inputs[value]
        if value in self._shapes:
            self._shapes[alias] = self._shapes[value]

    def _size(self, value: int, axis: int) -> Dim | None:
        if value in self._inputs:
            return symbol(Dimension(self._inputs[value], axis))
        shape = self._shapes.get(value)
        return None if shape is None or axis >= len(shape) else shape[axis]

    def placed(self) -> Intermediates | None:
        """The arrays that can lie in the block, with their places; None = there are none."""
        others = set(map(self._web, self._kept | self._interpreted))
        nbytes = {v: n for v, n in self._nbytes.items() if self._web(v) not in others}
        if not nbytes:
            return None
        try:
            placement = lay_out(self._moments, nbytes, self._web)
        except ShapeError:
            return None
        webs = set(map(self._web, nbytes))
        shapes = tuple(self._shapes[v] for v in nbytes)
        sizes = [size for shape in shapes for size in shape if isinstance(size, Sym)]
        return Intermediates(
            index={v: k for k, v in enumerate(nbytes)},
            shapes=shapes,
            dtypes=tuple(self._dtypes[v] for v in nbytes),
            placement=placement,
            reads=tuple(sorted({(leaf.array, leaf.axis) for s in sizes for leaf in s.symbols})),
            shared=frozenset(v for v in (*self._webs, *self._aliases) if self._web(self._aliases.get(v, v)) in webs),
        )
