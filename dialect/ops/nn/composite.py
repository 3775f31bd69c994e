"""Ops that are compositions: one `expand` gives evaluation, inference, lowering and gradients.

`expand` is written with operators and with ``b.op(…)`` for whatever has none. What it is given are
arrays where the op is evaluated, traced values or arrays of the tape where its gradient is asked
for, and `Part`s where the composition is recorded for operands of given types (`expansion`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import COMPLAINTS, LoweringError, ProfuseError, located
from ...ir.attrs import I64
from ...ir.dtypes import F32, NUMBERS, DType, dtype_of
from ...ir.op import Attrs, Values, attr, bare, op_named
from ...ir.program import Instr, Program
from ...ir.types import TENSOR, ScalarType, TensorType, Type
from ...reasons import Kind, Reason
from ..sizes import known_scalar
from ..structural import Proven
from .expanded_values import Part
from .lowered_expansion import lower_expansion

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder

UNDEFINED_OUTPUT = -1
_HALVES = ("f16", "bf16")
_KEPT = 1024  # expansions
_expansions: dict[Any, Program | None] = {}
_lock = threading.Lock()


class ArrayOps:
    """Evaluates ops on arrays at once."""

    @staticmethod
    def op(name: str, *operands: Any, **attrs: Any) -> Any:
        """The result of an op of the table, or the tuple of its results."""
        cls = op_named(name)
        return cls.evaluate(cls.full_attrs(attrs), *operands)


ARRAYS = ArrayOps()


class Composite(Proven):
    """Family of ops that are compositions of others.

    An op of optional operands names these in ``optional``, in the order of ATen's arguments. In IR
    they are one variadic field, and ``given`` says, bit by bit, which of them there are; `expand`
    gets None for each of the others.

    Attributes:
        optional: the names of the optional operands.
        numbers: the names of the operands that are Python's integers.
    """

    optional: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        """The op's result, or the tuple of its results; None for one that is undefined.

        Args:
            b: emits ops of the table: ``b.op("rsqrt", x)``.
            attrs: with defaults.
            xs: operands, None for optional ones that are not given.

        Raises ShapeError and DTypeError for operands that do not fit.
        """
        raise NotImplementedError

    @classmethod
    def results_of(cls, b: Any, attrs: Attrs, operands: Sequence[Any]) -> tuple[Any, ...]:
        """What `expand` gives for the op's operands, always as a tuple."""
        results = cls.expand(b, attrs, *cls.unpacked(attrs, operands))
        return tuple(results) if isinstance(results, tuple) else (results,)

    # --- operands that may be missing ----------------------------------------------------------

    @classmethod
    def optional_place(cls) -> int:
        """The position of the first optional operand."""
        return next((k for k, field in enumerate(cls.operands) if field.variadic), len(cls.operands))

    @classmethod
    def unpacked(cls, attrs: Attrs, operands: Sequence[Any]) -> list[Any]:
        """Operands in the order of the fields, with None for each that is not given."""
        if not cls.optional:
            return list(operands)
        place = cls.optional_place()
        bits = attrs.get("given", 0)
        count = bits.bit_count()
        present = iter(operands[place : place + count])
        flags = [bool(bits >> k & 1) for k in range(len(cls.optional))]
        return [
            *operands[:place],
            *[next(present, None) if flag else None for flag in flags],
            *operands[place + count :],
        ]

    @classmethod
    def packed(cls, operands: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The operands that are not None, and the attribute that says which these are.

        The inverse of `unpacked`; optional operands at the end may be left out.
        """
        if not cls.optional:
            return list(operands), {}
        place, count = cls.optional_place(), len(cls.optional)
        if place == len(cls.operands) - 1:
            operands = [*operands, *[None] * (place + count - len(operands))]
        optional = operands[place : place + count]
        bits = sum(1 << k for k, x in enumerate(optional) if x is not None)
        present = [x for x in optional if x is not None]
        return [*operands[:place], *present, *operands[place + count :]], {"given": bits} if bits else {}

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if cls.optional:
            bits, count = attrs.get("given", 0), len(types) - len(cls.operands) + 1
            if not 0 <= bits < 1 << len(cls.optional):
                yield f"given = {bits} names more than the {len(cls.optional)} optional operands"
                return
            if bits.bit_count() != count:
                yield f"given = {bits} names {bits.bit_count()} optional operands, but there are {count}"
                return
        xs = cls.unpacked(attrs, types)
        for index, (name, type_) in enumerate(zip(cls.names(len(xs)), xs, strict=True)):
            if type_ is not None and name not in cls.numbers and not isinstance(type_, TensorType):
                yield f"operand {index} ({name}) must be a tensor, not {type_}"

    # --- what follows from `expand` -------------------------------------------------------------

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        attrs = cls.full_attrs(attrs)
        xs = cls.unpacked(attrs, args)
        if any(type(x) in NUMBERS for x in xs):
            names = cls.names(len(xs))
            xs = [
                np.asarray(x) if type(x) in NUMBERS and name not in cls.numbers else x
                for x, name in zip(xs, names, strict=True)
            ]
        results = cls.expand(ARRAYS, attrs, *xs)
        return bare(tuple(results)) if isinstance(results, tuple) else results

    @classmethod
    def names(cls, count: int) -> list[str]:
        """The name of each of ``count`` operands, among which every optional one counts."""
        place, names = cls.optional_place(), [field.name for field in cls.operands]
        behind = names[place + 1 :]
        between = cls.optional or names[place : place + 1] * (count - place - len(behind))
        return [*names[:place], *between, *behind]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        program = cls.expansion(types, attrs)
        if program is None:
            return (TENSOR,) * len(cls.results)
        return tuple([TENSOR if v < 0 else program.type_of(v) for v in program.outputs])

    @classmethod
    def expansion(cls, types: Sequence[Type], attrs: Attrs) -> Program | None:
        """The composition for operands of these types, of which it is a program.

        An output of -1 is undefined. None for operands of which a dtype or a rank is not known.
        Raises what the ops raise for such operands.
        """
        return Expansion.of(cls, tuple(types), cls.full_attrs(attrs))

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        # Most kernels see the composition, of which `decompose` makes ops of their own.
        program = cls.expansion([x.type if hasattr(x, "at") else known_scalar(x) for x in args], attrs)
        assert program is not None
        return tuple(lower_expansion(b, program, args))

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        try:
            program = cls.expansion(types, attrs)
        except LoweringError as error:
            return Reason(Kind.UNPROVEN, detail=error.what)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        if program is None or any(isinstance(t, TensorType) and not t.is_complete for t in types):
            return Reason(Kind.UNKNOWN_TYPE)
        for instr in program.body.instrs:
            inner = [program.type_of(v) for v in instr.operands]
            reason = instr.op.can_lower_types(inner, instr.op.full_attrs(instr.attrs))
            if reason is not None:
                return reason
        return None

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        program = cls.expansion(types, attrs)
        if program is None:
            return
        for instr in program.body.instrs:
            if issubclass(instr.op, Proven):
                instr.op.prove([program.type_of(v) for v in instr.operands], instr.op.full_attrs(instr.attrs))

    @classmethod
    def undefined_results(cls, types: Sequence[Type], attrs: Attrs) -> tuple[int, ...]:
        """The numbers of the results that are undefined for operands of these types, None at run time."""
        program = cls.expansion(types, attrs)
        outputs = () if program is None else program.outputs
        return tuple(k for k, v in enumerate(outputs) if v == UNDEFINED_OUTPUT)

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        return cls.gradient_of_expansion(b, attrs, xs, ys, gs)

    @classmethod
    def with_others(
        cls, gradients: Values, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values
    ) -> Values:
        """Gradients that come from the first result, plus those that come from the others by the composition."""
        if all(g is None for g in gs[1:]):
            return gradients
        others = cls.gradient_of_expansion(b, attrs, xs, ys, [None, *gs[1:]])
        pairs = zip(gradients, others, strict=True)
        return [g if other is None else other if g is None else g + other for g, other in pairs]

    @classmethod
    def gradient_of_expansion(
        cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values, places: Iterable[int] | None = None
    ) -> Values:
        """The gradients of the operands by those of the ops that this one is composed of.

        ``places``: positions of the operands whose gradients are asked for; None = of all.
        """
        outputs = [k for k, g in enumerate(gs) if g is not None]
        program = cls.expansion([_type_without_sizes(x) for x in xs], attrs)
        reached = range(len(xs)) if program is None else _reached(program, outputs)
        asked = range(len(xs)) if places is None else places
        floats = [k for k in asked if np.dtype(getattr(xs[k], "dtype", bool)).kind in "fcV"]
        inputs = [k for k in floats if b.wants(k) and k in reached]
        if not inputs:
            return [None] * len(xs)

        def again(*values: Any) -> tuple[Any, ...]:
            operands = list(xs)
            for k, value in zip(inputs, values, strict=True):
                operands[k] = value
            results = cls.results_of(b, attrs, operands)
            return tuple(results[k] for k in outputs)

        gradients = dict(zip(inputs, b.pulled(again, [xs[k] for k in inputs], [gs[k] for k in outputs]), strict=True))
        return [gradients.get(k) for k in range(len(xs))]


def _type_without_sizes(x: Any) -> Type:
    """The type of an operand of which a gradient is asked for, without sizes."""
    if type(x) in NUMBERS or not hasattr(x, "ndim"):
        return ScalarType(dtype_of(np.asarray(x).dtype)) if type(x) in NUMBERS else TENSOR
    return TensorType(dtype_of(x.dtype), (None,) * x.ndim)


def _reached(program: Program, outputs: Sequence[int]) -> set[int]:
    """The numbers of the arguments that some outputs of a composition are computed of."""
    values = {program.outputs[k] for k in outputs}
    for instr in reversed(program.body.instrs):
        if not values.isdisjoint(instr.results) and not instr.op.no_gradient:
            values.update(instr.operands)
    return {k for k, v in enumerate(program.body.args) if v in values}


class Expansion:
    """Records what `Composite.expand` emits, with types.

    Attributes:
        program: the composition so far.
    """

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        self.program = Program(name)
        self.program.body.args = tuple(self.program.new_value(t) for t in types)

    @classmethod
    def of(cls, op: type[Composite], types: tuple[Type, ...], attrs: Attrs) -> Program | None:
        """`Composite.expansion`, remembered; nobody may change it."""
        key = (op, types, repr(sorted(attrs.items())))
        try:
            return _expansions[key]
        except KeyError:
            pass
        program = cls._recorded(op, types, attrs)
        with _lock:
            if len(_expansions) >= _KEPT:
                _expansions.clear()
            _expansions[key] = program
        return program

    @classmethod
    def _recorded(cls, op: type[Composite], types: tuple[Type, ...], attrs: Attrs) -> Program | None:
        if any(not _is_ranked(t) for t in types):
            return None
        recorder = cls(op.name, types)
        try:
            results = op.results_of(recorder, attrs, [Part(recorder, v) for v in recorder.program.body.args])
        except ProfuseError:
            raise
        except COMPLAINTS as error:
            raise located(error, None) from error
        recorder.program.body.outputs = tuple(UNDEFINED_OUTPUT if r is None else recorder.value(r) for r in results)
        return recorder.program

    def op(self, name: str, *operands: Any, **attrs: Any) -> Any:
        """The result of an op of the table, or the tuple of its results; a composite is taken apart."""
        cls = op_named(name)
        if issubclass(cls, Composite):
            return cls.expand(self, cls.full_attrs(attrs), *operands)
        values = tuple(self.value(x) for x in operands)
        types = cls.infer([self.program.type_of(v) for v in values], cls.full_attrs(attrs))
        results = tuple(self.program.new_value(t) for t in types)
        self.program.body.instrs.append(Instr(cls, values, results, dict(attrs)))
        parts = tuple(Part(self, r) for r in results)
        return parts[0] if len(parts) == 1 else parts

    def value(self, x: Any) -> int:
        """The value of an operand: a part of the composition, or a constant."""
        if isinstance(x, Part):
            return x.number
        if type(x) in NUMBERS or isinstance(x, (np.ndarray, np.generic)):
            constant: Part = self.op("constant", value=x if type(x) in NUMBERS else np.asarray(x))
            return constant.number
        raise TypeError(f"an object of type {type(x).__name__} is no operand of an op")


def _is_ranked(type_: Type) -> bool:
    if isinstance(type_, TensorType):
        return type_.dtype is not None and type_.shape is not None
    return isinstance(type_, ScalarType)


class WithOptional(Composite):
    """Family of composites with optional operands."""

    given = attr(I64, default=0)


def inside(x: Any) -> DType:
    """The dtype in which sums of ``x`` are taken: f32 for 16-bit floats, else its own."""
    dtype = dtype_of(x.dtype)
    return F32 if dtype.name in _HALVES else dtype


def cast(b: Any, x: Any, dtype: DType) -> Any:
    """``x`` in a dtype."""
    return x if dtype_of(x.dtype) is dtype else b.op("cast", x, dtype=dtype)


def widened(b: Any, x: Any) -> Any:
    """``x`` in the dtype in which its sums are taken; None for None."""
    return None if x is None else cast(b, x, inside(x))


def like(b: Any, value: Any, x: Any) -> Any:
    """``value`` in the dtype of ``x``."""
    return cast(b, value, dtype_of(x.dtype))
