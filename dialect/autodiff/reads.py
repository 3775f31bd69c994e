"""The rule of an op, recorded once for given operands; and what it reads of them.

What its result depends on is looked up in the record: that is what a run has to keep for it. Shapes
and dtypes are no contents: a rule that asks for these alone reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import ProfuseError
from ..importers.numpy.capture.scope import TraceScope
from ..importers.numpy.tracing.current import recording
from ..importers.numpy.tracing.operators import wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.world.journal import Journal
from ..ir.op import Op
from ..ir.program import Instr
from ..ir.types import ScalarType, Type, type_of
from ..ops.elementwise.families import Elementwise
from ..trees.leaves import NUMBERS
from .builder import NodeRuleBuilder, TraceBuilder
from .needed import contents_read
from .rules import pulled

Reads = tuple[frozenset[int], frozenset[int]]  # operands, results


@dataclass(frozen=True)
class RecordedRule:
    """The record of what a rule does for given operands, as instructions.

    Attributes:
        rec: what it was recorded by; has the types of values.
        operands, results, gradients: values of the op's operands and results, and of the gradients
            of results, None for results that are no floats.
        of_operands: the gradients of the operands, None for 0; None in place of all if recording them
            fails, or the record would hold for fewer operands than was asked for.
        instrs: what computes these, in order, without what they do not depend on.
        reruns: see `TraceBuilder`.
    """

    rec: Recorder
    operands: tuple[int, ...]
    results: tuple[int, ...]
    gradients: tuple[int | None, ...]
    of_operands: tuple[Any, ...] | None
    instrs: tuple[Instr, ...] = ()
    reruns: bool = False

    @property
    def reads(self) -> Reads:
        """The operands and the results that the gradients depend on; all, where that is unknown."""
        if self.of_operands is None:
            return frozenset(range(len(self.operands))), frozenset(range(len(self.results)))
        read = {g.value for g in self.of_operands if hasattr(g, "value")}
        read.update(v for instr in self.instrs for v in contents_read(instr))
        if self.reruns:
            read.update(self.operands)
        return _positions(self.operands, read), _positions(self.results, read)


def record_rule(
    op: type[Op],
    attrs: Mapping[str, Any],
    operands: Sequence[Any],
    wanted: Sequence[bool],
    *,
    exact: bool = False,
    any_number: bool = False,
) -> RecordedRule:
    """Record the gradients of the ``wanted`` operands of an op.

    Args:
        attrs: of the op, with defaults.
        operands: numbers, and whatever has a shape and a dtype; contents do not count.
        exact: the record holds for operands of these sizes, and these numbers; else for operands of
            any sizes, and of an elementwise op for numbers of these types.
        any_number: the record holds for any numbers of these types, which it reads as it does
            arrays. Nothing is recorded of a rule that asks for their values.

    Raises TraceError for an op that has no gradient.
    """
    rec = Recorder("rule", [_like(x) for x in operands if type(x) not in NUMBERS])
    rec.journal, rec.scope, rec.entry = Journal(), TraceScope(rec, record_rule), record_rule.__code__
    rec.sizes_hold = exact
    with recording(rec):
        arrays = iter(rec.inputs)
        values = tuple(
            next(arrays)
            if type(x) not in NUMBERS
            else rec.new_value(_number(x))
            if any_number
            else rec.constant(x if exact else _general(op, x))
            for x in operands
        )
        results = rec.emit(op, values, attrs)
        ys = [wrap(rec, v) for v in results]
        b = _EachProduct(rec) if exact else TraceBuilder(rec)
        b.wanted = wanted
        gs = [
            b.op("positive", y) if rec.is_float(v) and _is_float(y) else None for v, y in zip(results, ys, strict=True)
        ]
        start = len(rec.program.body.instrs)
        seeds = tuple(None if g is None else g.value for g in gs)
        nothing = RecordedRule(rec, values, results, seeds, None)
        try:
            gradients = tuple(pulled(b, op, attrs, [b.value(v) for v in values], ys, gs))
        except ProfuseError:
            if any_number:
                return nothing
            raise
        except Exception:  # a rule of the user's that is not made for traces
            return nothing
    if rec.numbers.guards and (any_number or not exact):  # else they hold by the sizes
        return nothing
    live = {g.value for g in gradients if hasattr(g, "value")}
    instrs: list[Instr] = []
    for instr in reversed(rec.program.body.instrs[start:]):
        if not live.isdisjoint(instr.results):
            live.update(contents_read(instr))
            instrs.append(instr)
    instrs.reverse()
    return RecordedRule(rec, values, results, seeds, gradients, tuple(instrs), b.reruns)


def reads_of(op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], wanted: Sequence[bool]) -> Reads:
    """The operands and the results that the gradients of the ``wanted`` operands depend on.

    Arguments and errors are those of `record_rule`. All of them, where recording the rule fails or
    depends on sizes.
    """
    return record_rule(op, attrs, operands, wanted).reads


class _EachProduct(NodeRuleBuilder):
    """Multiplies in the order in which a rule does, so that results are the same bits."""

    def product(self, g: Any, partial: Any) -> Any:
        return np.multiply(g, partial)


def _positions(values: Sequence[int], read: set[int]) -> frozenset[int]:
    return frozenset(k for k, v in enumerate(values) if v in read)


def _like(x: Any) -> np.ndarray:
    """An array of the shape and dtype of an operand in next to no memory."""
    shape, dtype = x.shape, x.dtype
    return np.ndarray(shape, dtype, bytes(dtype.itemsize), strides=(0,) * len(shape))


def _number(x: Any) -> Type:
    """The type of a number whose value is not known."""
    type_ = type_of(x)
    return ScalarType(type_.dtype) if isinstance(type_, ScalarType) else type_


def _general(op: type[Op], number: Any) -> Any:
    """A number in place of an operand; of an elementwise op, any one of the type decides alike."""
    return type(number)(3) if issubclass(op, Elementwise) else number


def _is_float(y: Any) -> bool:
    return np.dtype(getattr(y, "dtype", np.int64)).kind in "fcV"
