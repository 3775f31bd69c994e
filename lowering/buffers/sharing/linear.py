"""Indices as linear expressions: what is compared to tell whether two places are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from ....dialect.dataclass import dataclass

_SUMS = {"arith.addi": 1, "arith.subi": -1, "llvm.intr.sadd.with.overflow": 1, "llvm.intr.ssub.with.overflow": -1}
_PRODUCTS = ("arith.muli", "llvm.intr.smul.with.overflow")


@dataclass(frozen=True)
class Linear:
    """``const`` plus the sum of each value times its factor."""

    terms: Mapping[ir.Value, int]
    const: int = 0

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """The sum with a multiple of another one."""
        terms = dict(self.terms)
        for value, factor in other.terms.items():
            terms[value] = terms.get(value, 0) + factor * times
        kept = {value: factor for value, factor in terms.items() if factor}
        return Linear(kept, self.const + other.const * times)

    def factor(self, value: ir.Value) -> int:
        """By how much it grows with a value."""
        return self.terms.get(value, 0)


def constant_of(value: ir.Value) -> int | None:
    """The number that an integer constant is; None for other values."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr)):
        return int(attribute.value)
    return None


def linear(value: ir.Value) -> Linear:
    """An index as an expression over values that are not sums, modulo 2 to the power of 64."""
    itself = Linear({value: 1})
    if isinstance(value, ir.BlockArgument) or not _is_wide(value):
        return itself
    op = value.owner.operation
    constant = constant_of(value)
    if constant is not None:
        return Linear({}, constant)
    if op.name == "llvm.extractvalue":
        place = list(ir.DenseI64ArrayAttr(op.attributes["position"]))
        aggregate = op.operands[0]
        if place == [0] and not isinstance(aggregate, ir.BlockArgument):
            return _of_operands(aggregate.owner.operation) or itself
        return itself
    if op.name == "arith.index_cast" and _is_wide(op.operands[0]):
        return linear(op.operands[0])
    if op.name == "affine.apply":
        return _applied(op) or itself
    return _of_operands(op) or itself


def _is_wide(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IndexType) or str(value.type) == "i64"


def _of_operands(op: ir.Operation) -> Linear | None:
    if op.name in _SUMS:
        a, b = op.operands
        return linear(a).plus(linear(b), _SUMS[op.name])
    if op.name in _PRODUCTS:
        a, b = op.operands
        for one, other in ((a, b), (b, a)):
            factor = constant_of(one)
            if factor is not None:
                return Linear({}).plus(linear(other), factor)
    return None


def _applied(op: ir.Operation) -> Linear | None:
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    return _expression(map_.results[0], list(op.operands), map_.n_dims)


def _expression(expr: ir.AffineExpr, operands: Sequence[ir.Value], dims: int) -> Linear | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return Linear({}, expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return linear(operands[expr.position])
    if isinstance(expr, ir.AffineSymbolExpr):
        return linear(operands[dims + expr.position])
    if not isinstance(expr, (ir.AffineAddExpr, ir.AffineMulExpr)):
        return None
    a, b = (_expression(e, operands, dims) for e in (expr.lhs, expr.rhs))
    if a is None or b is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return a.plus(b)
    if not b.terms:
        return Linear({}).plus(a, b.const)
    return None if a.terms else Linear({}).plus(b, a.const)
