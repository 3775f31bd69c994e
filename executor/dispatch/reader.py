"""Makes a `Leaf`, from which code can be emitted, of the steps of a plan.

A plan that needs more than guards, kernels, sizes and fallbacks is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from ...dialect.ir.dtypes import dtype_named, dtype_of
from ...dialect.ir.program import Instr
from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.create import Constant, Full, Iota
from ...dialect.ops.gradient_ops import Definedness
from ...dialect.ops.host_call import HostCall
from ...dialect.ops.indexing.slicing import Pick, Slice
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.queries import Dim as DimOp
from ...dialect.ops.queries import DTypeCode, Item
from ...dialect.ops.size_lists import AllTrue, OfTruths, SizeEq, SizesOf
from ...dialect.ops.sizes import is_nonnegative, normalize_axis
from ...dialect.ops.speculation import CallFallback, DiffGraph, FusionGroup, Guard
from ..memory.offsets import Refused, size_of
from ..plans.plan_steps import PlanBlock, PlanStep, PlanSteps
from .conditions.guards import guard_tests
from .conditions.relaxed_guards import size_tests
from .conditions.speculated import SpeculatedValues
from .derived_sizes import DerivedSizes
from .host_calls import expect, host_step, is_late, reads_host
from .leaf_spec import HostKernel, Kernel, KernelStep, Leaf
from .leaf_values import ArrayValue, HostValue, MadeValue, Test, Value
from .number_ops import computed_number, is_returned
from .number_values import NUMBERS, SizeNumber
from .refs import is_python_number

if TYPE_CHECKING:
    from ..cuda.launching.device_plans import DeviceKernel

# Kind of a kernel scalar's dtype -> the Python types whose 8 bytes the kernel can read as it.
_NUMBERS: dict[str, tuple[type, ...]] = {"f": (float,), "i": (int, bool), "u": (), "b": (bool,), "c": ()}
_TAKEN = (np.bool, np.int64, np.float64, np.complex128)  # elements that are Python's own numbers
_SIZES = (DimOp, SizesOf, SizeEq)


@dataclass(frozen=True)
class Fallback:
    """The fallback behind a plan's only guard, if it computes all outputs of the graph.

    Attributes:
        inputs: the values that the fallback gets.
        checked: the arrays that the guard checks.
        order: for each output of the graph, the index among the fallback's outputs.
        numbers: positions in ``order`` of outputs whose one element is what the graph returns.
    """

    inputs: tuple[Value, ...]
    checked: tuple[ArrayValue, ...]
    order: tuple[int, ...]
    numbers: tuple[int, ...] = ()


def leaf_of(
    steps: PlanSteps, kernels: Mapping[str, Kernel], inputs: Sequence[Value], order: Sequence[int] | None = None
) -> tuple[Leaf, Fallback | None]:
    """The leaf of a plan, and the fallback of its guard; None = no such fallback.

    The caller adds arity, the structure of the results, and the tests of the inputs (`tests_of`).

    Args:
        steps: the steps of the plan.
        kernels: fusion function name -> kernel; a function without a kernel is absent.
        inputs: the inputs of the graph.
        order: indices of the outputs that are returned; None = all.

    Raises Refused if the plan needs Python.
    """
    reader = _PlanReader(steps, kernels, inputs)
    order = range(len(steps.body.outputs)) if order is None else order
    return reader.leaf_for(order), reader.fallback_for(order)


@dataclass(frozen=True)
class LeafSubgraph:
    """The differentiable subgraph that a graph consists of.

    Attributes:
        tests: conditions under which it runs.
        operands: what it takes.
        chosen: for each output of the graph, which result of the subgraph it is.
    """

    tests: tuple[Test, ...]
    operands: tuple[Value, ...]
    chosen: tuple[int, ...]


def subgraph_of(
    steps: PlanSteps, inputs: Sequence[Value], order: Sequence[int] | None = None
) -> tuple[LeafSubgraph, Fallback | None]:
    """The differentiable subgraph that is all of a plan, as `leaf_of` gives a leaf.

    Raises Refused if the plan does anything else.
    """
    reader = _PlanReader(steps, {}, inputs)
    order = range(len(steps.body.outputs)) if order is None else order
    return reader.subgraph_for(order), reader.fallback_for(order)


def _is_numpys(instr: Instr) -> bool:
    """True for arrays of sizes, and parts of arrays, that only the call tells: NumPy makes them."""
    return instr.op in (Full, Iota, Pick, Slice) and bool(instr.operands)


def _in_python(refused: Instr, steps: Sequence[PlanStep]) -> str:
    """The reason why a block with the instruction ``refused`` is left to Python.

    The reason names a loop or a branch if the block has one, else an op, and a constant only if the
    block has nothing else: constants are made for other ops.
    """
    instrs = [step.instr for step in steps]
    checks = {r for i in instrs if issubclass(i.op, (Guard, OfTruths)) for r in i.results}
    others = [
        i
        for i in instrs
        if i.op not in _SIZES
        and not issubclass(i.op, (FusionGroup, Guard, OfTruths))
        and not (i.op is If and i.operands[0] in checks)
    ]
    instr = min([refused, *others], key=lambda i: (not i.blocks, i.op is Constant))
    place = "" if instr.loc is None else f" at {instr.loc}"
    return f"{instr.op.full_name()}{place} runs in Python"


class _PlanReader:
    def __init__(self, steps: PlanSteps, kernels: Mapping[str, Kernel], inputs: Sequence[Value]) -> None:
        self.steps, self.kernels = steps, kernels
        self.leaf = Leaf()
        self.chosen: dict[int, int] = {}  # result of a branch -> what the side that runs has made
        self.turned: dict[int, tuple[int, tuple[int, ...]]] = {}  # view -> its array, its axes
        self.taken: dict[int, int] = {}  # Python number -> the array without axes that it is in
        self.parts: set[int] = set()  # of arguments, whose memory they share
        # Boolean result of a check -> the guard whose hits are timed, and the checked values.
        self.guarded: dict[int, tuple[int | None, set[int]]] = {}
        self.sizes: dict[int, tuple[Dim, ...]] = {}  # value -> a size, or all sizes of an array
        self.speculated = SpeculatedValues(steps.main)
        self.derived = DerivedSizes()
        self.checks: list[tuple[int, ...]] = []  # per guard, the values that it checks
        self.branches: list[PlanStep] = []
        self.graphs: list[tuple[Instr, tuple[int, ...]]] = []  # subgraphs, with their operands
        if len(steps.main.inputs) != len(inputs):
            raise Refused("the graph has inputs that are no arguments")
        self.leaf.values = dict(zip(steps.main.inputs, inputs, strict=True))
        self.block(steps.body, None, set())

    def leaf_for(self, order: Sequence[int]) -> Leaf:
        values, outputs = self.leaf.values, self.steps.body.outputs
        roots = [self.root(outputs[k]) for k in order]
        self.leaf.outputs = tuple(map(self.shown, roots))
        if len(set(self.leaf.outputs)) < len(set(roots)):
            raise Refused("an array is returned with its axes in several orders")
        self.leaf.numbers = frozenset(self.shown(o) for o in roots if o in self.taken)
        self.leaf.turned = dict(self.turned[o] for o in roots if o in self.turned)
        host_results = self.leaf.host_results
        if not self.parts.isdisjoint(self.leaf.outputs):
            raise Refused("a part of an argument is returned, in memory of its own")
        if not all(o in host_results or is_returned(values.get(o)) for o in self.leaf.outputs):
            raise Refused("an output is an argument or is computed outside of kernels")
        return self.leaf

    def shown(self, value: int) -> int:
        """The array of which a value is a view or the element; else the value itself."""
        if value in self.turned:
            return self.turned[value][0]
        return self.root(self.taken[value]) if value in self.taken else value

    def subgraph_for(self, order: Sequence[int]) -> LeafSubgraph:
        outputs = [self.root(self.steps.body.outputs[k]) for k in order]
        instr, operands = self.graphs[0] if self.graphs else (None, ())
        if instr is None or not set(outputs) <= set(instr.results) or self.leaf.evaluated:
            raise Refused("a call that gradients are noted of is more than one subgraph")
        if not set(operands) <= self.leaf.values.keys():
            raise Refused("a differentiable subgraph takes a size")
        return LeafSubgraph(
            tuple(self.leaf.tests),
            tuple(self.leaf.values[o] for o in operands),
            tuple(instr.results.index(o) for o in outputs),
        )

    def fallback_for(self, order: Sequence[int]) -> Fallback | None:
        if (
            len(self.branches) != 1
            or len(self.checks) != 1
            or self.sizes
            or self.leaf.host_results
            or self.speculated.tests
        ):
            return None
        results, other = self.branches[0].instr.results, self.branches[0].blocks[1]
        returned = [self.steps.body.outputs[k] for k in order]
        outputs = [self.taken.get(o, o) for o in returned]
        if len(other.steps) != 1 or not set(outputs) <= set(results):
            return None
        call, yielded = other.steps[0], [other.outputs[results.index(o)] for o in outputs]
        if not set(yielded) <= set(call.instr.results):
            return None
        values = self.leaf.values
        checked = [values[o] for o in self.checks[0]]
        arrays = tuple(value for value in checked if isinstance(value, ArrayValue))
        if len(arrays) != len(checked):
            return None
        return Fallback(
            inputs=tuple(values[self.root(o)] for o in call.operands),
            checked=arrays,
            order=tuple(call.instr.results.index(y) for y in yielded),
            numbers=tuple(k for k, o in enumerate(returned) if o in self.taken),
        )

    def root(self, value: int) -> int:
        while value in self.chosen:
            value = self.chosen[value]
        return value

    def block(self, block: PlanBlock, guard: int | None, checked: set[int]) -> None:
        """Add the steps of a block.

        Args:
            block: its steps.
            guard: index of the guard that protects the block; None = no guard.
            checked: the values that guards have checked before the block runs.
        """
        for step in block.steps:
            instr, operands = step.instr, tuple(self.root(o) for o in step.operands)
            if issubclass(instr.op, Guard):
                self.guarded[instr.results[-1]] = len(self.checks), set(operands) | checked
                self.checks.append(operands)
                types, behavior = instr.attrs["types"], instr.op.behavior
                tests = expect(types, operands, self.leaf.values)
                values = [self.leaf.values[o] for o in operands]
                modes = {"relaxed": behavior == "relaxed", "flags": behavior == "gradients"}
                tests += guard_tests(types, values, **modes, free=instr.op.free_sizes(instr.attrs))
                self.test(tests)
                self.derived.note_guard(types, values)
            elif instr.op in _SIZES:
                self.leaf.evaluated += 1
                self.size(instr, operands, guard, checked)
            elif (derived := self.derived.takes(instr, operands, self.leaf.values, self.sizes)) is not None:
                self.leaf.evaluated += bool(operands)
                self.test(derived)
            elif self.speculated.takes(instr, operands, self.leaf.values, self.sizes):
                self.leaf.evaluated += bool(operands)
            elif instr.op is AllTrue and self.are_tested(operands):
                self.leaf.evaluated += 1
                self.guarded[instr.results[0]] = self.all_of(operands)
            elif issubclass(instr.op, Definedness):
                self.leaf.evaluated += 1
                if not instr.op.evaluate(instr.attrs, *operands):  # all of them are defined
                    raise Refused("gradients are expected to be undefined")
                self.guarded[instr.results[0]] = guard, checked
            elif instr.op is DiffGraph and not self.graphs:
                self.graphs.append((instr, operands))
            elif instr.op is If and instr.operands[0] in self.guarded:
                then, other = step.blocks
                if any(inner.instr.op not in (CallFallback, DTypeCode) for inner in other.steps):
                    raise Refused("the other side of a guard does more than call its fallback")
                self.branches.append(step)
                self.block(then, *self.guarded[instr.operands[0]])
                self.chosen |= dict(zip(instr.results, then.outputs, strict=True))
            elif issubclass(instr.op, HostCall) or _is_numpys(instr) or self.is_of_host(instr):
                self.leaf.evaluated += bool(operands)
                call = host_step(instr, operands, self.leaf.values)
                self.leaf.between.append((len(self.leaf.steps), call))
                if instr.op.aliases and (
                    operands[0] in self.parts or isinstance(self.leaf.values.get(operands[0]), ArrayValue)
                ):
                    self.parts.update(instr.results)
                self.leaf.values |= dict.fromkeys(instr.results, HostValue())
            elif issubclass(instr.op, Permutation):
                self.leaf.evaluated += 1
                self.turn(instr, operands[0])
            elif instr.op is Item and self.takes(instr, operands[0]):
                self.leaf.evaluated += 1
                self.taken[instr.results[0]] = step.operands[0]
            elif (number := computed_number(instr, operands, self.leaf.values)) is not None:
                self.leaf.evaluated += bool(operands)
                self.leaf.values[instr.results[0]] = number
            elif issubclass(instr.op, FusionGroup):
                self.step(instr.attrs["callee"], operands, instr.results, guard, checked)
            else:
                raise Refused(_in_python(instr, block.steps))

    def are_tested(self, answers: Sequence[int]) -> bool:
        """True if emitted code can tell whether answers of guards and of other checks are all true."""
        return all(answer in self.guarded or answer in self.speculated.tests for answer in answers)

    def all_of(self, answers: Sequence[int]) -> tuple[int | None, set[int]]:
        """The guard among checks all of which hold, and the values that they have checked; adds their tests."""
        guard: int | None = None
        checked: set[int] = set()
        for answer in answers:
            if answer in self.speculated.tests:
                self.test(self.speculated.tests[answer])
                continue
            own, values = self.guarded[answer]
            guard, checked = own if guard is None else guard, checked | values
        return guard, checked

    def test(self, tests: list[Test]) -> None:
        """Add tests, those of what functions of libraries give between the kernels."""
        late = [test for test in tests if is_late(test)]
        self.leaf.tests += [test for test in tests if not is_late(test)]
        if late:
            self.leaf.between.append((len(self.leaf.steps), late))

    def turn(self, instr: Instr, source: int) -> None:
        """Note a view of what a kernel makes; only `leaf_for` may make anything of it."""
        value = self.leaf.values.get(source)
        shown = (array for array, _ in self.turned.values())
        if not isinstance(value, MadeValue) or value.device != HOST or source in shown:
            raise Refused(_in_python(instr, ()))
        axes = cast("type[Permutation]", instr.op).permutation(len(value.sizes), instr.attrs)
        self.turned[instr.results[0]] = source, axes

    def is_of_host(self, instr: Instr) -> bool:
        """True for the number in an array that NumPy makes between kernels."""
        return instr.op is Item and isinstance(self.leaf.values.get(instr.operands[0]), HostValue)

    def takes(self, instr: Instr, source: int) -> bool:
        """True if emitted code can return the element of an array, which is not returned itself."""
        value, dtype = self.leaf.values.get(source), instr.attrs.get("dtype")
        if not isinstance(value, MadeValue) or value.sizes or value.device != HOST:
            return False
        return value.dtype.type in _TAKEN and dtype in (None, dtype_of(value.dtype))

    def size(self, instr: Instr, operands: tuple[int, ...], guard: int | None, checked: set[int]) -> None:
        if instr.op in (DimOp, SizesOf):
            value = self.leaf.values.get(operands[0])
            if not isinstance(value, (ArrayValue, MadeValue)):
                raise Refused("a size of what is no array is asked for")
            if instr.op is SizesOf:
                self.sizes[instr.results[0]] = tuple(value.sizes)
                return
            axis = normalize_axis(instr.attrs["axis"], len(value.sizes))
            size = value.sizes[axis]
            self.sizes[instr.results[0]] = (size,)
            if not reads_host(size):
                self.leaf.values[instr.results[0]] = SizeNumber(size)
        else:
            if len(operands) > 1:
                raise Refused("whether an array can be summed to sizes is checked, as Python does")
            if operands[0] not in self.sizes:
                raise Refused("sizes that are not those of an array are checked")
            self.guarded[instr.results[0]] = guard, checked
            self.leaf.tests += size_tests(instr.attrs["reference"], self.sizes[operands[0]])

    def step(
        self, callee: str, operands: tuple[int, ...], results: tuple[int, ...], guard: int | None, checked: set[int]
    ) -> None:
        if callee not in self.kernels:
            raise Refused(f"@{callee} has no kernel")
        kernel = self.kernels[callee]
        if self.leaf.steps and kernel.device != self.leaf.device:
            raise Refused("kernels run on several devices")
        values = self.leaf.values
        for spec, operand in zip(kernel.abi.inputs, operands, strict=True):
            if operand in self.turned:
                raise Refused(f"@{callee} reads a view of what another kernel makes")
            if operand in self.taken:
                raise Refused(f"@{callee} reads a number that another kernel makes")
            value = values[operand]
            if isinstance(value, HostValue):
                raise Refused(f"@{callee} reads what a library gives, which no guard has checked")
            if spec.kind == "scalar":
                kinds = _NUMBERS[dtype_named(spec.dtype).kind]
                if not isinstance(value, NUMBERS) or value.kind not in kinds:
                    raise Refused(f"@{callee} takes a number of another kind than the argument")
            elif isinstance(value, NUMBERS):
                raise Refused(f"@{callee} takes a number as a tensor")
            elif value.device != kernel.device:
                raise Refused(f"@{callee} runs on {kernel.device} and reads an array elsewhere")
            is_python = isinstance(value, ArrayValue) and is_python_number(value.ref)
            if isinstance(value, ArrayValue) and operand not in checked and not is_python:
                raise Refused(f"@{callee} reads an array that no guard has checked")
        kernel_step = KernelStep(kernel, operands, results, guard)
        sizes = self.leaf.sizes(kernel_step)
        kernel_step = replace(kernel_step, workspace=size_of(parse_dim(kernel.abi.workspace), sizes, guarded=True))
        if not isinstance(kernel, HostKernel):
            kernel_step = replace(kernel_step, actions=kernel.actions(sizes, self.strides(kernel, operands)))
        self.leaf.steps.append(kernel_step)
        if self.leaf.between and not isinstance(kernel, HostKernel):
            raise Refused("a function of a library runs between kernels of a device")
        if kernel.abi.can_violate and not isinstance(kernel, HostKernel):
            raise Refused("a kernel reports indices out of range, which the host has to look at")
        for result, spec in zip(results, kernel.abi.results, strict=True):
            exprs = tuple(map(parse_dim, spec.dims))
            dims = tuple(size_of(dim, sizes) for dim in exprs)
            self.leaf.tests += [
                Test(("less", size, 0), 0) for dim, size in zip(exprs, dims, strict=True) if not is_nonnegative(dim)
            ]
            values[result] = MadeValue(dtype_named(spec.dtype).numpy, dims, kernel.device)

    def strides(self, kernel: DeviceKernel, operands: tuple[int, ...]) -> dict[str, Dim]:
        """The stride that each run-time stride of a kernel stands for, in elements."""
        out = {}
        for name, (k, axis) in kernel.strides().items():
            value = self.leaf.values[operands[k]]
            assert isinstance(value, (ArrayValue, MadeValue))
            out[name] = value.stride(axis)
        return out
