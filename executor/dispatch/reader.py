"""Reading off an optimised plan what emitted code has to do for it.

A plan that does anything besides guards, kernels and fallbacks is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...dialect.ir.dtypes import dtype_named
from ...dialect.ir.program import Block, Instr, Module
from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim
from ...dialect.ops.control import If
from ...dialect.ops.create import Constant
from ...dialect.ops.device_guards import SizeEq
from ...dialect.ops.lists import ListConstruct
from ...dialect.ops.queries import Dim as DimOp
from ...dialect.ops.sizes import is_nonnegative, normalize_axis
from ...dialect.ops.speculation import CallFallback, FusionGroup, Guard
from ..cuda.launches import DeviceKernel
from ..memory.placement import Refused, size_of
from .guards import guard_tests
from .leaf_spec import ArrayValue, Kernel, Leaf, MadeValue, NumberValue, Step, Test, Value
from .relaxed_guards import size_tests

# Python numbers whose 8 bytes a kernel reads as a scalar of this kind of dtype.
_NUMBERS: dict[str, tuple[type, ...]] = {
    "f": (float,), "i": (int, bool), "u": (), "b": (bool,), "c": (),
}  # fmt: skip
_SIZES = (DimOp, ListConstruct, SizeEq)


@dataclass(frozen=True)
class Fallback:
    """The other side of a plan's only guard, where that gives all outputs of the graph.

    Attributes:
        callee: its name.
        inputs: what it is called with.
        checked: what the guard checks.
        order: per output of the graph, which output of the fallback it is.
    """

    callee: str
    inputs: tuple[Value, ...]
    checked: tuple[ArrayValue, ...]
    order: tuple[int, ...]


def leaf_of(
    module: Module,
    kernels: Mapping[str, Kernel],
    inputs: Sequence[Value],
    order: Sequence[int] | None = None,
) -> tuple[Leaf, Fallback | None]:
    """The leaf for an optimised graph and where its guard leads otherwise; raises Refused.

    Tests of the inputs themselves (`tests_of`), arity and container are left to the caller.

    Args:
        module: the decoded graph.
        kernels: of fusion functions; those without a kernel are absent.
        inputs: of the graph.
        order: which outputs are returned; None = all.
    """
    reader = _Reader(module, kernels, inputs)
    order = range(len(module.main.outputs)) if order is None else order
    return reader.leaf_for(order), reader.fallback_for(order)


def _in_python(refused: Instr, instrs: Sequence[Instr]) -> str:
    """Why a block is refused of which an instruction is.

    A loop or a branch is told of, if there is one, else an op: not the constants made for them.
    """
    checks = {r for i in instrs if issubclass(i.op, (Guard, SizeEq)) for r in i.results}
    others = [
        i for i in instrs
        if i.op not in _SIZES
        and not issubclass(i.op, (FusionGroup, Guard))
        and not (i.op is If and i.operands[0] in checks)
    ]  # fmt: skip
    told = min([refused, *others], key=lambda i: (not i.blocks, i.op is Constant))
    place = "" if told.loc is None else f" at {told.loc}"
    return f"{told.op.full_name()}{place} runs in Python"


class _Reader:
    def __init__(
        self,
        module: Module,
        kernels: Mapping[str, Kernel],
        inputs: Sequence[Value],
    ) -> None:
        self.module, self.kernels = module, kernels
        self.leaf = Leaf()
        self.alias: dict[int, int] = {}
        # Boolean -> the guard that times what comes behind it, and all values that are checked.
        self.guarded: dict[int, tuple[int | None, set[int]]] = {}
        self.sizes: dict[int, tuple[Dim, ...]] = {}  # sizes, and lists of them, that are asked for
        self.checks: list[tuple[int, ...]] = []  # per guard the values that it checks
        self.others: list[tuple[Instr, Block]] = []  # guarded instructions, their other sides
        if len(module.main.inputs) != len(inputs):
            raise Refused("the graph has inputs that are no arguments")
        self.leaf.values = dict(zip(module.main.inputs, inputs, strict=True))
        self.block(module.main.body, None, set())

    def leaf_for(self, order: Sequence[int]) -> Leaf:
        made, outputs = self.leaf.values, self.module.main.outputs
        self.leaf.outputs = tuple(self.root(outputs[k]) for k in order)
        if any(not isinstance(made.get(o), MadeValue) for o in self.leaf.outputs):
            raise Refused("an output is an argument or is computed outside of kernels")
        return self.leaf

    def fallback_for(self, order: Sequence[int]) -> Fallback | None:
        if len(self.others) != 1 or len(self.checks) != 1 or self.sizes:
            return None
        branch, other = self.others[0]
        calls = [inner for inner in other.walk() if inner.op is CallFallback]
        outputs = [self.module.main.outputs[k] for k in order]
        if len(calls) != 1 or not set(outputs) <= set(branch.results):
            return None
        yielded = [other.outputs[branch.results.index(o)] for o in outputs]
        if not set(yielded) <= set(calls[0].results):
            return None
        values = self.leaf.values
        checked = [values[o] for o in self.checks[0]]
        arrays = tuple(value for value in checked if isinstance(value, ArrayValue))
        if len(arrays) != len(checked):
            return None
        return Fallback(
            callee=calls[0].attrs["callee"],
            inputs=tuple(values[self.root(o)] for o in calls[0].operands),
            checked=arrays,
            order=tuple(calls[0].results.index(y) for y in yielded),
        )

    def root(self, value: int) -> int:
        while value in self.alias:
            value = self.alias[value]
        return value

    def block(self, block: Block, guard: int | None, checked: set[int]) -> None:
        """The instructions of a block that runs behind the guard with this index (None: none)."""
        for instr in block.instrs:
            operands = tuple(self.root(o) for o in instr.operands)
            if issubclass(instr.op, Guard):
                *aliases, ok = instr.results
                self.alias |= dict(zip(aliases, operands, strict=True))
                self.guarded[ok] = len(self.checks), set(operands) | checked
                self.checks.append(operands)
                values = [self.leaf.values[o] for o in operands]
                types, relaxed = instr.attrs["types"], instr.op.behavior == "relaxed"
                self.leaf.tests += guard_tests(types, values, relaxed=relaxed)
            elif instr.op in _SIZES:
                self.leaf.evaluated += 1
                self.size(instr, operands, guard, checked)
            elif instr.op is If and instr.operands[0] in self.guarded:
                then, other = instr.blocks
                if any(inner.op is not CallFallback for inner in other.walk()):
                    raise Refused("the other side of a guard does more than call its fallback")
                self.others.append((instr, other))
                self.block(then, *self.guarded[instr.operands[0]])
                self.alias |= dict(zip(instr.results, then.outputs, strict=True))
            elif instr.op is FusionGroup:
                self.step(instr.attrs["callee"], operands, instr.results, guard, checked)
            else:
                raise Refused(_in_python(instr, block.instrs))

    def size(
        self, instr: Instr, operands: tuple[int, ...], guard: int | None, checked: set[int]
    ) -> None:
        if instr.op is DimOp:
            value = self.leaf.values.get(operands[0])
            if not isinstance(value, (ArrayValue, MadeValue)):
                raise Refused("a size of what is no array is asked for")
            axis = normalize_axis(instr.attrs["axis"], len(value.sizes))
            self.sizes[instr.results[0]] = (value.sizes[axis],)
        elif instr.op is ListConstruct:
            if any(operand not in self.sizes for operand in operands):
                raise Refused("a list holds something else than sizes")
            found = (size for operand in operands for size in self.sizes[operand])
            self.sizes[instr.results[0]] = tuple(found)
        else:
            if operands[0] not in self.sizes:
                raise Refused("sizes that are no list of sizes are checked")
            self.guarded[instr.results[0]] = guard, checked
            self.leaf.tests += size_tests(instr.attrs["reference"], self.sizes[operands[0]])

    def step(
        self,
        callee: str,
        operands: tuple[int, ...],
        results: tuple[int, ...],
        guard: int | None,
        checked: set[int],
    ) -> None:
        if callee not in self.kernels:
            raise Refused(f"@{callee} has no kernel")
        kernel = self.kernels[callee]
        if self.leaf.steps and kernel.device != self.leaf.device:
            raise Refused("kernels run on several devices")
        values = self.leaf.values
        for spec, operand in zip(kernel.abi.inputs, operands, strict=True):
            value = values[operand]
            if spec.kind == "scalar":
                kinds = _NUMBERS[dtype_named(spec.dtype).kind]
                if not isinstance(value, NumberValue) or value.kind not in kinds:
                    raise Refused(f"@{callee} takes a number of another kind than the argument")
            elif isinstance(value, NumberValue):
                raise Refused(f"@{callee} takes a number as a tensor")
            elif value.device != kernel.device:
                raise Refused(f"@{callee} runs on {kernel.device} and reads an array elsewhere")
            if isinstance(value, ArrayValue) and operand not in checked:
                raise Refused(f"@{callee} reads an array that no guard has checked")
        made = Step(kernel, operands, results, guard)
        sizes = self.leaf.sizes(made)
        made = replace(made, workspace=size_of(parse_dim(kernel.abi.workspace), sizes))
        if isinstance(kernel, DeviceKernel):
            made = replace(made, actions=kernel.actions(sizes, self.strides(kernel, operands)))
        self.leaf.steps.append(made)
        if kernel.abi.can_violate and isinstance(kernel, DeviceKernel):
            raise Refused("a kernel reports indices out of range, which the host has to look at")
        for result, spec in zip(results, kernel.abi.results, strict=True):
            wanted = tuple(map(parse_dim, spec.dims))
            dims = tuple(size_of(dim, sizes) for dim in wanted)
            self.leaf.tests += [
                Test(("less", size, 0), 0)
                for dim, size in zip(wanted, dims, strict=True)
                if not is_nonnegative(dim)
            ]
            values[result] = MadeValue(dtype_named(spec.dtype).numpy, dims, kernel.device)

    def strides(self, kernel: DeviceKernel, operands: tuple[int, ...]) -> dict[str, Dim]:
        """What the run-time strides of a kernel stand for, in elements."""
        out = {}
        for name, (k, axis) in kernel.strides().items():
            value = self.leaf.values[operands[k]]
            assert not isinstance(value, NumberValue)
            out[name] = value.stride(axis)
        return out
