"""Rules as straight Python code: what a rule does for operands of given types, and no questions.

A rule that runs often with operands of the same types is recorded once (`record_rule`), and the
instructions become the lines of a function. It computes what the rule computes, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dialect.autodiff.reads import RecordedRule, record_rule
from ...dialect.dataclass import dataclass
from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.op import Fusion, Op
from ...dialect.ir.program import Instr
from ...dialect.ir.types import ScalarType, TensorType
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise.families import Binary, Elementwise, Unary
from ...dialect.ops.gradient_ops import AbsorbingMul, SumTo
from ...dialect.ops.linalg.contract import Matmul
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.manipulation.shape import BroadcastTo, ExpandDims, Reshape, Squeeze
from .eager_builder import absorbed, repeated

# Of the gradient of the one result, the operands and the results that are kept: the gradients.
Pull = Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]
_NAME = re.compile(r"\bv\d+\b")
_RESHAPING = (Reshape, ExpandDims, Squeeze)
# What computes ops of one array from that and the shape of the result.
_SHAPED: dict[type[Op], Callable[[Any, tuple[int, ...]], Any]] = {SumTo: SumTo.summed, BroadcastTo: repeated}
# These take no memory for the result by position.
_NO_THIRD = (np.maximum, np.minimum)
_BY_NUMPY = {family.evaluate.__func__ for family in (Elementwise, Unary, Binary)}  # type: ignore[attr-defined]


def straight(
    op: type[Op],
    attrs: Mapping[str, Any],
    operands: Sequence[Any],
    wanted: Sequence[bool],
    *,
    any_sizes: bool = False,
    any_number: bool = False,
) -> Pull | None:
    """The rule of an op of one result for operands of these types, as one function.

    Args:
        attrs: of the op, with defaults.
        operands: numbers, for which alone the function holds, and whatever has a shape and a dtype.
        wanted: which operands need a gradient.
        any_sizes: the function shall hold for operands of all sizes that are the same.
        any_number: it shall hold for all numbers of these types.

    None for a rule that cannot be recorded, or decides by contents.
    """
    try:
        rule = record_rule(op, attrs, operands, wanted, exact=True, any_number=any_number)
    except ProfuseError:
        return None
    if rule.of_operands is None or len(rule.results) != 1 or rule.gradients[0] is None:
        return None
    if any(instr.blocks or len(instr.results) != 1 for instr in rule.instrs):
        return None
    if any(None in rule.rec.shape(v) for instr in rule.instrs for v in instr.results):
        return None  # sizes that only a run tells
    if any_sizes and (
        rule.rec.captures.known or not all(issubclass(i.op, (Elementwise, Constant)) for i in rule.instrs)
    ):
        return None
    return _RuleWriter(rule).function(f"gradient of {op.name}")


@dataclass(frozen=True)
class _Line:
    """A line of a function.

    Attributes:
        variable: the variable.
        text: what it becomes.
        reads: variables in the text.
        type: of the array that a ufunc makes; None where the text is something else.
    """

    variable: str
    text: str
    reads: list[str]
    type: TensorType | None


class _RuleWriter:
    """Writes the function of a recorded rule."""

    def __init__(self, rule: RecordedRule) -> None:
        self._rule, self._rec = rule, rule.rec
        self._scope: dict[str, Any] = {}
        self._lines: list[_Line] = []
        self._fresh: dict[str, TensorType] = {}  # variables that are arrays of their own
        self._names: dict[int, str] = {rule.gradients[0]: "g"}  # type: ignore[dict-item]
        self._same: dict[tuple, str] = {}

    def function(self, what: str) -> Pull | None:
        """The function; None if a gradient is no value."""
        rule = self._rule
        reads, results = rule.reads
        for k in sorted(reads):
            self._line(rule.operands[k], f"xs[{k}]")
        for k in sorted(results):
            self._line(rule.results[k], f"ys[{k}]")
        captured = self._rec.captures.known.values()
        for array, value, _ in captured:  # what the rule has made of sizes alone
            self._names[value] = self._bound(array)
        for instr in rule.instrs:
            if all(r in self._rec.known for r in instr.results):
                continue  # a number that follows from sizes alone
            self._write(instr)
        gradients = []
        for g in rule.of_operands or ():
            if g is not None and not hasattr(g, "value"):
                return None
            gradients.append("None" if g is None else self._name(g.value))
        last = f"return ({', '.join(gradients)},)"
        lines = ["def pull(g, xs, ys):", *self._used(last), last]
        exec(compile("\n ".join(lines), generated_file(what), "exec"), self._scope)
        pull: Pull = self._scope["pull"]
        return pull

    def _used(self, last: str) -> list[str]:
        """The lines that compute what the last one reads, in memory that nothing reads any more."""
        used, lines = set(_NAME.findall(last)), []
        kept = used | {x for line in self._lines if line.type is None for x in line.reads}
        for line in reversed(self._lines):
            if line.variable not in used:
                continue
            text = line.text
            if line.type is not None:
                again = [x for x in line.reads if x not in used | kept and x in self._fresh]
                if again and self._fresh[again[0]] == line.type:
                    text = f"{text[:-1]}, {again[0]})"
            used.update(line.reads)
            lines.append(f"{line.variable} = {text}")
        return lines[::-1]

    def _line(self, value: int, text: str, type_: TensorType | None = None) -> None:
        """Have a variable be made; ``type_``: by a ufunc, as an array of this type."""
        name = self._names[value] = f"v{value}"
        self._lines.append(_Line(name, text, _NAME.findall(text), type_))
        if type_ is not None:
            self._fresh[name] = type_

    def _bound(self, value: Any) -> str:
        name = f"c{len(self._scope)}"
        self._scope[name] = value
        return name

    def _name(self, value: int, like: np.dtype | None = None) -> str:
        """The variable of a value; ``like``: the dtype in which a number is computed with."""
        name = self._names.get(value)
        if name is not None:
            return name
        constant = self._rec.known[value]
        if like is not None and type(constant) in (int, float):
            constant = np.array(constant, like)  # a ufunc takes an array sooner than a number
        return self._bound(constant)

    def _write(self, instr: Instr) -> None:
        (result,) = instr.results
        key = (instr.op, instr.operands, repr(instr.attrs))
        name = self._same.get(key)
        if name is None:
            text = self._text(instr)
            if not _NAME.fullmatch(text):
                type_ = self._rec.hints[result]
                is_new = isinstance(type_, TensorType) and bool(type_.shape)
                function = self._scope.get(text.partition("(")[0])
                by_ufunc = (
                    issubclass(instr.op, Elementwise) and isinstance(function, np.ufunc) and function not in _NO_THIRD
                )
                self._line(result, text, type_ if is_new and by_ufunc else None)  # type: ignore[arg-type]
                text = self._names[result]
            name = self._same[key] = text
        self._names[result] = name

    def _text(self, instr: Instr) -> str:
        op, hints = instr.op, self._rec.hints
        result_type = hints[instr.results[0]]
        shape = result_type.shape if isinstance(result_type, TensorType) else None
        first = hints[instr.operands[0]] if instr.operands else None
        if (
            issubclass(op, Elementwise)
            and op.evaluate.__func__ in _BY_NUMPY  # type: ignore[attr-defined]
            and not all(isinstance(hints[v], ScalarType) for v in instr.operands)
        ):
            return self._elementwise(op, instr)
        if isinstance(first, TensorType) and shape is not None:
            x = self._names.get(instr.operands[0])
            if x is not None and op in _RESHAPING:
                return x if first.shape == shape else f"{x}.reshape({shape})"
            if x is not None and issubclass(op, Permutation):
                return f"{x}.transpose({op.permutation(len(shape), op.full_attrs(instr.attrs))})"
            if x is not None and op in _SHAPED:
                if op is BroadcastTo:  # of one element it does not matter which axes it has
                    x = self._number(instr.operands[0]) or x
                return f"{self._bound(_SHAPED[op])}({x}, {shape})"
            if op is Matmul:
                return f"{self._bound(np.matmul)}({', '.join(map(self._name, instr.operands))})"
        operands = [] if op.fusion is Fusion.QUERY else map(self._name, instr.operands)
        attrs = self._bound(op.full_attrs(instr.attrs))
        return f"{self._bound(op.evaluate)}({', '.join([attrs, *operands])})"

    def _number(self, value: int) -> str | None:
        """The value without axes that a value of one element is a reshape of."""
        instr = self._rec.defs.get(value)
        if instr is None or instr.op not in _RESHAPING or self._rec.shape(instr.operands[0]) != ():
            return None
        return self._names.get(instr.operands[0])

    def _elementwise(self, op: type[Elementwise], instr: Instr) -> str:
        dtype = self._rec.dtype(instr.results[0])
        types = (self._rec.hints[v] for v in instr.operands)
        dtypes = {t.dtype.numpy for t in types if isinstance(t, TensorType) and t.dtype is not None}
        is_one = dtypes == {dtype} and dtype.kind == "f" and isinstance(op.numpy, np.ufunc)
        call = self._bound(absorbed if op is AbsorbingMul else op.numpy)
        names = (self._name(v, dtype if is_one else None) for v in instr.operands)
        return f"{call}({', '.join(names)})"
