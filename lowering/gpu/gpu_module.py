"""Emits a scheduled function as a module of kernels and a launch plan."""

from __future__ import annotations

from typing import Any

from mlir import ir

from ...dialect.errors import InternalError, LoweringError
from ...dialect.mlir.context import loc_of
from ..buffers.bufferize import has_control_flow
from ..schedule import affine as ix
from ..schedule.affine import AffineIndex
from ..schedule.block_steps import BlockStep
from ..schedule.graph import Buffer, Graph, Product, Tensor, operands, results
from ..schedule.memory import buffer_of
from ..schedule.nests import Nest
from ..schedule.scheduling import Schedule, schedule
from .chip import DEFAULT
from .kernels.kernel import KernelMemory
from .kernels.kernel_choice import Either, Family, family_of
from .launch_plan import Choice, Condition, Launch, LaunchPlan, LibraryProduct, Matrix, Step
from .loops.loop_module import emit_loops

DIALECTS = ("gpu", "arith", "math", "scf", "memref", "vector", "llvm", "nvvm")
KERNELS = "kernels"
ONE_ROW = 1 << 14  # number of elements that the registers of one block can hold


def emit_gpu(function: Any, chip: str = DEFAULT) -> tuple[ir.Module, LaunchPlan]:
    """The kernels and the launch plan of a linalg ``func.func``, in the current context.

    Raises LoweringError for a function that has no kernels.
    """
    for dialect in DIALECTS:
        _ = ir.Context.current.dialects[dialect]
    if has_control_flow(function):
        with ir.Location.unknown():
            module, block = _module()
        return module, emit_loops(function, module, block)
    families: dict[Nest, Family | Either] = {}

    def temporaries(nest: Nest) -> list[Any]:
        families[nest] = family_of(nest, chip)
        return families[nest].temporaries()

    planned = schedule(
        function,
        temporaries=temporaries,
        accumulate=False,
        read_constants=False,
        one_row=ONE_ROW,
        halves=True,
        biases=True,
    )
    _refuse_complex(planned.graph)
    if planned.graph.opaque:
        raise LoweringError("a size has no closed form over the size symbols")
    with ir.Location.unknown():
        module, block = _module()
        steps = _Emitter(planned, block, families).steps()
    return module, LaunchPlan(planned.graph.name, planned.abi(), steps)


def _module() -> tuple[ir.Module, ir.Block]:
    """A module with a module for kernels, and the block of that."""
    module = ir.Module.create()
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(module.body):
        kernels = ir.Operation.create("gpu.module", attributes={"sym_name": ir.StringAttr.get(KERNELS)}, regions=1)
    return module, kernels.regions[0].blocks.append()


def _refuse_complex(graph: Graph) -> None:
    """Raise LoweringError, at the operation, if elements are complex."""
    for op in graph.operations:
        for tensor in (*operands(op), *results(op)):
            if isinstance(tensor.element, ir.ComplexType):
                where = getattr(op, "location", None)
                raise LoweringError(
                    f"no kernel for GPUs is generated for {tensor.element} values",
                    loc=None if where is None else loc_of(where),
                )


class _Emitter:
    def __init__(self, planned: Schedule, block: ir.Block, families: dict[Nest, Family | Either]) -> None:
        self.schedule, self.families = planned, families
        self.memory = KernelMemory(block, planned.graph, planned.offsets)

    def steps(self) -> tuple[Step, ...]:
        """Emit the kernels; returns the steps that run them."""
        steps: list[Step] = []
        for number, step in enumerate(self.schedule.steps):
            assert not isinstance(step, BlockStep), "only CPUs run blocks"
            if isinstance(step, Product):
                steps.append(self._product(step))
            else:
                steps.append(self._nest(number, step))
        return tuple(steps)

    def _nest(self, number: int, nest: Nest) -> Step:
        """Emit the kernels of a nest, for an `Either` those of both families."""
        name = f"{self.schedule.graph.name}_nest{number}"
        family = self.families[nest]
        if not isinstance(family, Either):
            return self._kernels(family, name)
        small = self._kernels(family.small, name)
        return Choice((family.fits,), (small,), (self._kernels(family.large, f"{name}_large"),))

    def _kernels(self, family: Family, name: str) -> Launch | Choice:
        """Emit a fast version, and a general one if the fast version has conditions."""
        conditions, fast = self._variant(family, name, True)
        if not conditions:
            return fast[0] if len(fast) == 1 else Choice((), fast, ())
        _, general = self._variant(family, f"{name}_general", False)
        return Choice(conditions, fast, general)

    def _variant(self, family: Family, name: str, fast: bool) -> tuple[tuple[Condition, ...], tuple[Launch, ...]]:
        kernels = family.kernels(self.memory, name, fast)
        conditions = dict.fromkeys(c for kernel, _ in kernels for c in kernel.conditions)
        return tuple(conditions), tuple(launch for _, launch in kernels)

    # --- library products ------------------------------------------------------------------------

    def _product(self, op: Product) -> LibraryProduct:
        return LibraryProduct(
            op.kind,
            op.halves or str(op.output.element),
            self._operand(op.left, *op.left_view),
            self._operand(op.right, *op.right_view),
            self._operand(op.output, op.output, ix.over_axes(ix.row_major(op.output.dims))),
            accumulate=op.init is not None,
            wide=op.halves is not None and str(op.output.element) == "f32",
            bias=self._operand(op.bias, *op.bias_view) if op.bias and op.bias_view else None,
        )

    def _operand(self, tensor: Tensor, stored: Tensor, offset: AffineIndex) -> Matrix:
        strides = tuple(str(offset.coefficient(k)) for k in range(tensor.rank))
        return Matrix(self._argument(buffer_of(stored)), str(offset.const), tuple(map(str, tensor.dims)), strides)

    def _argument(self, buffer: Buffer) -> tuple:
        if buffer.kind == "workspace":
            return ("workspace", str(self.schedule.offsets[buffer]), str(buffer.element))
        if buffer.kind == "constant":
            raise InternalError("a constant is an operand of a library product")
        return (buffer.kind, buffer.index)
