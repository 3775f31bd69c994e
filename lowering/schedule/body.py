"""Facts about the regions of generics: cost, tensors read by index, combiners of reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.postorder import postorder
from ...dialect.ir.symbolic import Dim
from ...dialect.mlir.rewrite import blocks_in, ops_in
from ..linalg.element import WINDOW
from . import affine as ix
from .affine import AffineIndex
from .graph import Body, Combiner, Tensor, definition

SCALAR = ("arith.", "math.", "complex.")  # dialects of operations on scalars
CHEAP = 8  # largest cost at which recomputing an element is faster than storing and loading it
_COSTS = {
    "arith.divf": 8,
    "arith.divsi": 30,
    "arith.divui": 30,
    "arith.remsi": 30,
    "arith.remui": 30,
    "arith.remf": 60,
    "arith.floordivsi": 30,
    "math.sqrt": 8,
    "math.absf": 1,
    "math.copysign": 1,
    "math.fma": 1,
    "math.floor": 1,
    "math.ceil": 1,
    "math.trunc": 1,
    "math.roundeven": 1,
    "math.ctpop": 2,
    "tensor.extract": 4,
    "arith.constant": 0,
    "linalg.index": 0,
    "arith.index_cast": 0,
    "linalg.yield": 0,
    "scf.yield": 0,
    "scf.if": 1,
    "complex.create": 0,
    "complex.re": 0,
    "complex.im": 0,
}
_MATH_COST = 20
_REORDERABLE = {
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.addi",
    "arith.muli",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.maxsi",
    "arith.minsi",
    "arith.maxui",
    "arith.minui",
}
_FLOAT = {"arith.addf", "arith.mulf"}
_CLAMPS = ("arith.index_cast", "arith.maxsi", "arith.minsi")


def cost_of(name: str) -> int:
    """Cycles that an operation of this name takes, relative to an addition."""
    return _COSTS.get(name, _MATH_COST if name.startswith("math.") else 1)


def read_body(
    block: ir.Block | None,
    function: ir.Block,
    captured: Sequence[ir.Value],
    tensors: dict[ir.Value, Tensor],
    known_size: Callable[[ir.Value], Dim | None],
) -> tuple[Body, list[Combiner | None]]:
    """Facts about a region, and for each yielded value its combiner, if it has one.

    Args:
        block: the region's block; None for a fill.
        function: the function's block, which computes captured scalars.
        captured: scalars that the operation uses besides those in its region.
        tensors: SSA value -> tensor.
        known_size: integer SSA value outside of regions -> size expression, or None.
    """
    reader = _Facts(function, tensors, known_size)
    for value in captured:
        reader.capture(value)
    if block is None:
        return reader.body(None), []
    reader.arguments = {a: k for k, a in enumerate(block.arguments)}
    reader.walk(block)
    yielded = list(reader.terminator.operands)
    inputs = len(block.arguments) - len(yielded)
    body = reader.body(block)
    if len(yielded) == 1:
        view = reader.arguments.get(yielded[0])
        if view is not None and view < inputs:
            body.view = view
    combiners = [_combiner(value, block.arguments[inputs + k], block) for k, value in enumerate(yielded)]
    return body, combiners


def read_view(
    block: ir.Block, known_size: Callable[[ir.Value], Dim | None], tensors: dict[ir.Value, Tensor]
) -> tuple[Tensor, tuple[AffineIndex, ...]] | None:
    """The tensor and the index of a region that only yields one extracted element.

    The index must be a linear function of the loops; else the result is None. Slices with symbolic
    sizes have this form, and so become views.
    """
    indices: dict[ir.Value, AffineIndex] = {}
    extracts: dict[ir.Value, tuple[Tensor, tuple[AffineIndex, ...]]] = {}

    def index_of(value: ir.Value) -> AffineIndex | None:
        if value not in indices:
            size = known_size(value)
            if size is None:
                return None
            indices[value] = ix.constant(size)
        return indices[value]

    for op in ops_in(block):
        if op.name == "linalg.yield":
            return extracts.get(op.operands[0]) if len(op.operands) == 1 else None
        if op.name == "linalg.index":
            indices[op.results[0]] = ix.atom(ir.IntegerAttr(op.attributes["dim"]).value)
            continue
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            if isinstance(attribute, ir.IntegerAttr):
                indices[op.results[0]] = ix.constant(attribute.value)
            continue
        first = 1 if op.name == "tensor.extract" else 0
        parts = [index_of(v) for v in list(op.operands)[first:]]
        if any(p is None for p in parts):
            return None
        operands = tuple(p for p in parts if p is not None)
        if first:
            extracts[op.results[0]] = (tensors[op.operands[0]], operands)
            continue
        index = ix.arithmetic(op.name, operands)
        if index is None:
            return None
        indices[op.results[0]] = index
    return None


def unclamped(value: ir.Value) -> ir.Value:
    """The value from which clamps and conversions between types of indices make another one."""
    while (op := definition(value)) is not None and op.name in _CLAMPS:
        value = op.operands[0]
    return value


class _Facts:
    def __init__(
        self, function: ir.Block, tensors: dict[ir.Value, Tensor], known_size: Callable[[ir.Value], Dim | None]
    ) -> None:
        self.function, self.tensors, self.known_size = function, tensors, known_size
        self.windows: dict[tuple[Tensor, tuple[AffineIndex, ...]], None] = {}
        self.whole: set[Tensor] = set()  # what is read by other extracts
        self.arguments: dict[ir.Value, int] = {}
        self.extracts: dict[Tensor, None] = {}
        self.used: set[int] = set()
        self.direct: dict[int, None] = {}
        self.loops: set[int] = set()
        self.cost = 0
        self.inner: set[ir.Value] = set()
        self.seen: set[ir.Value] = set()
        self.terminator: Any = None

    def body(self, block: ir.Block | None) -> Body:
        windows = tuple(w for w in self.windows if w[0] not in self.whole)
        return Body(
            block,
            tuple(self.extracts),
            windows,
            frozenset(self.used),
            tuple(self.direct),
            frozenset(self.loops),
            self.cost,
        )

    def walk(self, block: ir.Block, in_branch: bool = False) -> None:
        for op in ops_in(block):
            name = op.name
            self.cost += cost_of(name)
            self.inner.update(op.results)
            for value in op.operands:
                if value in self.arguments:
                    self.used.add(self.arguments[value])
                    if not in_branch:
                        self.direct[self.arguments[value]] = None
                elif value not in self.inner and value not in self.tensors:
                    self.capture(value)
            if name == "tensor.extract":
                self._extract(op)
            elif name == "linalg.index":
                self.loops.add(ir.IntegerAttr(op.attributes["dim"]).value)
            elif name == "linalg.yield":
                self.terminator = op
            elif name == "scf.if":
                for inner in blocks_in(op):
                    self.walk(inner, in_branch=True)
            elif not name.startswith((*SCALAR, "scf.yield")):
                raise LoweringError(f"{name} in a kernel body cannot be scheduled")

    def capture(self, value: ir.Value) -> None:
        """Note the tensors from which a scalar outside of the region is computed."""
        for scalar in postorder([value], self._scalar_operands):
            op = definition(scalar)
            if op is not None and op.name == "tensor.extract":
                self._extract(op)
            elif op is not None and not op.name.startswith(SCALAR):
                raise LoweringError(f"a kernel body uses the result of {op.name}")

    def _scalar_operands(self, value: ir.Value) -> list[ir.Value]:
        op = definition(value)
        if op is None or value in self.seen:
            return []
        self.seen.add(value)
        return [v for v in op.operands if v not in self.tensors]

    def _extract(self, op: ir.Operation) -> None:
        tensor = self.tensors[op.operands[0]]
        self.extracts[tensor] = None
        index = self._window(op) if WINDOW in op.attributes and not tensor.digits else None
        if index is None:
            self.whole.add(tensor)
        else:
            self.windows[tensor, index] = None

    def _window(self, op: ir.Operation) -> tuple[AffineIndex, ...] | None:
        """The indices of a read through a window, over the loops, as they are without clamps."""
        maybe_indices = [self._linear(v) for v in list(op.operands)[1:]]
        indices = tuple(index for index in maybe_indices if index is not None)
        return indices if len(indices) == len(maybe_indices) else None

    def _linear(self, value: ir.Value) -> AffineIndex | None:
        value = unclamped(value)
        op = definition(value)
        if value not in self.inner or op is None:
            size = self.known_size(value)
            return None if size is None else ix.constant(size)
        if op.name == "linalg.index":
            return ix.atom(ir.IntegerAttr(op.attributes["dim"]).value)
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            is_int = isinstance(attribute, ir.IntegerAttr)
            return ix.constant(attribute.value) if is_int else None
        parts = [self._linear(v) for v in op.operands]
        if any(p is None for p in parts):
            return None
        return ix.arithmetic(op.name, [p for p in parts if p is not None])


def _combiner(value: ir.Value, accumulator: ir.Value, block: ir.Block) -> Combiner | None:
    op = definition(value)
    if op is None or op.block != block:
        return None
    name = op.name
    if name not in _REORDERABLE and name not in _FLOAT:
        return None
    left, right = op.operands
    if (left == accumulator) == (right == accumulator):
        return None
    if sum(1 for _ in accumulator.uses) != 1 or sum(1 for _ in value.uses) != 1:
        return None
    ordered = name in _FLOAT and not may_reassociate(op)
    return Combiner(name, ordered)


def may_reassociate(op: ir.Operation) -> bool:
    """True for an operation on floats whose operands may come in any order."""
    if "fastmath" not in op.attributes:
        return False
    text = str(op.attributes["fastmath"])
    return "reassoc" in text or "fast>" in text
