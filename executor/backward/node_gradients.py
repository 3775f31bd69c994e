"""The gradients of one node as a private function, made by the rule of its op class (R4.20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialect.analysis.tidy import tidied
from ...dialect.autodiff.builder import NodeRuleBuilder
from ...dialect.autodiff.rules import pulled
from ...dialect.errors import InternalError
from ...dialect.importers.numpy.capture.scope import TraceScope
from ...dialect.importers.numpy.tracing.current import recording
from ...dialect.importers.numpy.tracing.operators import as_value, op, wrap
from ...dialect.importers.numpy.tracing.recorder import Recorder
from ...dialect.importers.numpy.world.journal import Journal
from ...dialect.ir.attrs import DYNAMIC
from ...dialect.ir.dtypes import I64, dtype_of
from ...dialect.ir.op import Op
from ...dialect.ir.program import Program
from ...dialect.ir.symbolic import Dim
from ...dialect.ir.types import ScalarType, Shape, TensorType, Type


class Lifted:
    """An operand or a result that is an input of the function, of this type."""

    __slots__ = ("type",)

    def __init__(self, type_: Type) -> None:
        self.type = type_


class Sized:
    """An operand or a result of which the shape alone is known; its unknown sizes are inputs."""

    __slots__ = ("type",)

    def __init__(self, type_: TensorType) -> None:
        self.type = type_

    @property
    def unknown(self) -> int:
        """The number of sizes that are inputs."""
        return sum(not isinstance(d, int) for d in self.type.shape or ())


class RuleFunction:
    """A private function for the gradients of a node.

    Attributes:
        program: inputs are gradients that are there, then arrays, then sizes, in order.
        given: which operands have a gradient.
        types: of the results.
    """

    def __init__(self, program: Program, given: Sequence[bool], types: Sequence[Type]) -> None:
        self.program, self.given, self.types = program, tuple(given), tuple(types)


def camel(name: str) -> str:
    """``square_root`` as ``SquareRoot``, as it is in the names of functions."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def function_of(
    name: str,
    cls: type[Op],
    attrs: Mapping[str, Any],
    wanted: Sequence[bool],
    operands: Sequence[Any],
    results: Sequence[Any],
    gradients: Sequence[TensorType | None],
) -> RuleFunction:
    """Record the rule of an op class.

    Args:
        wanted: which operands need a gradient.
        operands, results: each `Lifted`, `Sized`, or a number.
        gradients: their types, None for a result without gradient.

    Raises TraceError where a rule asks for what is known in a run alone, and InternalError for one
    that reads an array of its own.
    """
    rec = Recorder(name, ())
    rec.entry, rec.journal = function_of.__code__, Journal()
    rec.scope = TraceScope(rec, function_of)
    rec.sizes_hold = True
    with recording(rec):
        gradient_values = [None if t is None else rec.new_value(t) for t in gradients]
        inputs = [v for v in gradient_values if v is not None]
        parts = [*operands, *results]
        values: list[Any] = list(parts)
        for k, x in enumerate(parts):
            if isinstance(x, Lifted):
                inputs.append(rec.new_value(x.type))
                values[k] = wrap(rec, inputs[-1])
        for k, x in enumerate(parts):
            if isinstance(x, Sized):
                sizes = [rec.new_value(ScalarType(I64, d)) for d in x.type.shape or () if not isinstance(d, int)]
                inputs += sizes
                values[k] = _stand_in(rec, x.type, sizes)
        b = NodeRuleBuilder(rec)
        b.wanted = list(wanted)
        gs = [None if v is None else wrap(rec, v) for v in gradient_values]
        xs, ys = values[: len(operands)], values[len(operands) :]
        all_gradients = pulled(b, cls, attrs, xs, ys, gs)
        operand_gradients = [g if w else None for g, w in zip(all_gradients, wanted, strict=True)]
        outputs = [as_value(rec, g) for g in operand_gradients if g is not None]
    if rec.captures.known or rec.numbers.guards:
        raise InternalError(f"the gradient of {cls.name} depends on more than its operands")
    rec.finish(inputs, outputs)
    tidied(rec.program)
    types = {v: _bare(t) for v, t in rec.hints.items() if v in inputs or v in outputs}
    rec.program.types.update(types)
    return RuleFunction(rec.program, [g is not None for g in operand_gradients], [types[v] for v in outputs])


def _bare(type_: Type) -> Type:
    """A type as IR spells it: a number without its value."""
    return ScalarType(type_.dtype) if isinstance(type_, ScalarType) else type_


def _stand_in(rec: Recorder, type_: TensorType, sizes: Sequence[int]) -> Any:
    """An array of zeros of a type: a rule asks for its shape alone."""
    shape: Shape = type_.shape or ()
    listed = tuple(d if isinstance(d, int) else DYNAMIC for d in shape)
    zero = rec.constant(0)
    rest = [wrap(rec, v) for v in sizes]
    return op("full", wrap(rec, zero), *rest, shape=listed, dtype=type_.dtype)


def tensor(shape: Sequence[Dim], dtype: Any) -> TensorType:
    """The type of an array of these sizes, symbols for those that change from run to run."""
    return TensorType(dtype_of(dtype), tuple(shape))
