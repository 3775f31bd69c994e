"""The declaration layer: one class per op, registered by being defined.

An op class states its schema (fields), and as class methods its type inference, its evaluation
(the living definition, on NumPy), its lowering and later its gradient.  Everything else, the IRDL
module, the verifier, the evaluator, the importers, the docs, reads the one table `OPS`.

The field syntax follows upstream's newer ``mlir.dialects.ext`` so that this layer can be dropped
for it one day::

    class Tanh(Unary, name="tanh"):
        numpy = np.tanh

        @classmethod
        def scalar(cls, x): return x.math("tanh")
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ..dataclass import dataclass
from ..errors import InternalError, IRError, ProfuseError
from ..reasons import Kind, Reason
from .attrs import AttrKind
from .types import TENSOR, ListedType, ListType, TensorType, Type

if TYPE_CHECKING:
    from ...lowering.linalg.tensor_builder import Builder, TensorValue
    from .gradients import GradientBuilder, Partial

DIALECT = "profuse"
EVERY = -1  # in `Op.aliases`: every result
EACH = ((-1,),)  # as `Op.linear`: the op is linear in all of its operands together
Values = Sequence[Any]  # operands, results and gradients in rules for gradients
Attrs = Mapping[str, Any]  # attributes of an op by name; those that were left out are absent


class Fusion(Enum):
    """The uses of an op in a fusion group."""

    NONE = "none"  # never in a group
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    VIEW = "view"  # moves or drops elements only; never starts a group
    CONTRACTION = "contraction"  # becomes a library call inside the group
    QUERY = "query"  # scalar result computed from types; never starts a group


class Rounding(Enum):
    """The rounding by which an op's floats may differ, for equal operands, if it is computed in another way."""

    MOVES = "moves"  # nothing: it moves elements, signs of zeros included
    NONE = "none"  # nothing, but for which zero it is
    EACH = "each"  # every element is rounded
    SUMS = "sums"  # elements add or multiply up, and each step is rounded


class Failure(Enum):
    """The facts that decide, for operands of given dtypes and ranks, whether an op raises an error."""

    NEVER = "never"  # it raises none
    SIZES = "sizes"
    CONTENTS = "contents"  # of arrays, or values of numbers


@dataclass(frozen=True)
class OperandDef:
    """One operand field.

    Attributes:
        variadic: any number of operands (at most one such field per op).
        observed: profiling counts how often a non-tensor given here is None (R1.23).
    """

    name: str = ""
    variadic: bool = False
    observed: bool = False


@dataclass(frozen=True)
class ResultDef:
    """One result field."""

    name: str = ""
    variadic: bool = False


@dataclass(frozen=True)
class AttrDef:
    """One attribute field. With a default the attribute may be left out in IR."""

    kind: AttrKind
    name: str = ""
    optional: bool = False
    default: Any = None

    def is_default(self, value: Any) -> bool:
        """True if IR leaves the attribute out when it has this value."""
        if not self.optional:
            return False
        # Compared by type first: an array compares element by element, and True equals 1.
        if value is self.default:
            return True
        # repr tells 0.0 from -0.0, and 1 from True inside of tuples, where == does not.
        return type(value) is type(self.default) and repr(value) == repr(self.default)


def operand(*, variadic: bool = False, observed: bool = False) -> Any:
    """Declare an operand field."""
    return OperandDef(variadic=variadic, observed=observed)


def bare(results: tuple[Any, ...]) -> Any:
    """Results as `Op.evaluate` gives them: one by itself, several in a tuple."""
    return results[0] if len(results) == 1 else results


def unbared(results: Any, count: int) -> Any:
    """The ``count`` results that `Op.evaluate` has given, as a sequence. One may itself be a tuple."""
    return (results,) if count == 1 else results


def result(*, variadic: bool = False) -> Any:
    """Declare a result field."""
    return ResultDef(variadic=variadic)


@dataclass(frozen=True)
class View:
    """One execution of a view op, as `Op.put_back` wants it.

    Attributes:
        base: what is viewed.
        rank: its rank, None if that is not known.
        new: the elements that the view shall have.
        operands: the view op's operands after the first.
        result: which of its results is replaced.
        others: all of its results.
    """

    base: Any
    rank: int | None
    new: Any
    operands: tuple[Any, ...]
    result: int
    others: tuple[Any, ...]


# (op name, operands, attributes) -> results
Emit = Callable[[str, Sequence[Any], Mapping[str, Any]], Sequence[Any]]

_REQUIRED = object()


def attr(kind: AttrKind, default: Any = _REQUIRED) -> Any:
    """Declare an attribute field; ``default`` makes it optional in IR (None = absent)."""
    optional = default is not _REQUIRED
    return AttrDef(kind, optional=optional, default=default if optional else None)


OPS: dict[str, type[Op]] = {}


class Op:
    """Base of every op class. Class methods only: an op class is never instantiated.

    Class keywords: ``name`` (snake_case, without prefix; absent = abstract family), ``dialect``
    (for the few upstream ops we evaluate, such as ``scf.if``) and ``rounding`` (of what floats are
    compared by when a kernel is checked; inherited).

    ``exact`` (inherited): of bools, integers and floats of 32 and 64 bits kernels compute what
    ``evaluate`` does, to the last bit and in C order: elements are taken, compared, or rounded
    once, as IEEE 754 asks. Which NaN it is, is open.

    ``writes`` names the operands (by index) whose memory the op changes; `in-place-check` reads it.
    ``foreign`` marks ops that run code of users, of which no pass knows anything (R2.13).
    """

    name: ClassVar[str] = ""
    dialect: ClassVar[str] = DIALECT
    operands: ClassVar[tuple[OperandDef, ...]] = ()
    results: ClassVar[tuple[ResultDef, ...]] = ()
    attrs: ClassVar[dict[str, AttrDef]] = {}
    # Names of attributes for numbers of which DYNAMIC may stand: the last operands give these.
    dynamic: ClassVar[tuple[str, ...]] = ()
    pure: ClassVar[bool] = True
    # Operands whose memory the op changes; an op that writes is not pure.
    writes: ClassVar[tuple[int, ...]] = ()
    foreign: ClassVar[bool] = False
    # Result -> operand whose memory it may share; EVERY = all results.
    aliases: ClassVar[dict[int, int]] = {}
    # True if the memory order of the operand decides whether a result shares or is a copy.
    layout_decides: ClassVar[bool] = False
    fusion: ClassVar[Fusion] = Fusion.NONE
    rounding: ClassVar[Rounding] = Rounding.EACH
    exact: ClassVar[bool] = False
    failure: ClassVar[Failure] = Failure.SIZES
    lowers_complex: ClassVar[bool] = False  # True if `lower` takes and gives complex numbers
    regions: ClassVar[int] = 0
    # One of these, or `vjp`, says how gradients pass an op; see `ir.gradients`.
    no_gradient: ClassVar[bool] = False
    partials: ClassVar[Callable[..., Sequence[Partial]] | None] = None  # of operands and result
    singular: ClassVar[bool] = False  # partials may be infinite or NaN for usual operands
    linear: ClassVar[tuple[tuple[int, ...], ...]] = ()  # sets of operands it is linear in, each
    undifferentiable: ClassVar[str] = ""

    def __init_subclass__(
        cls, name: str = "", dialect: str = DIALECT, rounding: Rounding | None = None, **kw: Any
    ) -> None:
        super().__init_subclass__(**kw)
        if rounding is not None:
            cls.rounding = rounding
        operands, results, attrs = list(cls.operands), list(cls.results), dict(cls.attrs)
        for field, value in list(vars(cls).items()):
            if isinstance(value, OperandDef):
                operands.append(replace(value, name=field))
            elif isinstance(value, ResultDef):
                results.append(ResultDef(field, value.variadic))
            elif isinstance(value, AttrDef):
                attrs[field] = AttrDef(value.kind, field, value.optional, value.default)
        cls.operands, cls.results, cls.attrs = tuple(operands), tuple(results), attrs
        if cls.writes:
            cls.pure = False
        if not name:
            return
        cls.name, cls.dialect = name, dialect
        if cls.full_name() in OPS:
            raise InternalError(f"op {cls.full_name()} is declared twice")
        OPS[cls.full_name()] = cls

    @classmethod
    def full_name(cls) -> str:
        """Name in IR, e.g. ``profuse.tanh``."""
        return f"{cls.dialect}.{cls.name}"

    @classmethod
    def observed_operands(cls, count: int) -> tuple[int, ...]:
        """The numbers, of ``count`` operands, of those that belong to a field declared ``observed``."""
        extra = count - len(cls.operands)  # beyond one per field: the variadic one's
        positions: list[int] = []
        position = 0
        for definition in cls.operands:
            size = 1 + extra if definition.variadic else 1
            if definition.observed:
                positions += range(position, position + size)
            position += size
        return tuple(positions)

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        """The numbers, of ``count`` operands, of those that result number ``result`` may share memory with."""
        operand = cls.aliases.get(result, cls.aliases.get(EVERY))
        return () if operand is None else (operand,)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        """For an op whose result is a view: what it viewed, with the view's elements replaced.

        Emits pure ops and returns their value. Not declared = the view cannot be written through.
        """
        raise NotImplementedError

    @classmethod
    def can_put_back(cls) -> bool:
        """True if `put_back` is declared."""
        return cls.put_back.__func__ is not Op.put_back.__func__  # type: ignore[attr-defined]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        """Result types from operand types; unknown in, unknown out.

        Raises ShapeError / DTypeError when the operands can never fit.
        """
        return (TENSOR,) * len(cls.results)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        """Tier 0: the op on run-time values: its one result, or the tuple of several or none."""
        raise InternalError(f"{cls.full_name()} has no evaluation")

    @classmethod
    def bound(cls, attrs: Attrs, results: int) -> Callable[..., Any] | None:
        """`evaluate` for an op with these attributes and so many results; None = that itself.

        It gives one result bare.
        """
        return None

    @classmethod
    def counts_results(cls, attrs: Attrs) -> bool:
        """True if it is for the run to tell how many results there are."""
        return any(definition.variadic for definition in cls.results)

    @classmethod
    def source(
        cls, attrs: Attrs, operands: Sequence[str], results: Sequence[str], last: Container[str]
    ) -> Sequence[str] | None:
        """`evaluate` as lines of Python with these variables, for plans; ``calls`` is the run's `CaptureFrame`.

        None = there are none. Nothing reads the variables ``last`` afterwards.
        """
        return None

    @classmethod
    def overwrite(cls, attrs: Attrs, *args: Any) -> Any:
        """`evaluate`, with the result in the memory of the first operand, which nobody else reads.

        Not declared = the result is new memory in any case.
        """
        raise NotImplementedError

    @classmethod
    def can_overwrite(cls) -> bool:
        """True if `overwrite` is declared."""
        return cls.overwrite.__func__ is not Op.overwrite.__func__  # type: ignore[attr-defined]

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        """Emit linalg on tensors. ``args`` are `TensorValue`s or scalars, ``types`` the result types.

        Promotion has been made explicit by then: operands have the dtypes that `operand_dtypes`
        asks for.  Ops without a lowering are refused by fusion, with the reason counted.
        """
        raise NotImplementedError

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        """The gradient of operand ``k``, in which the op is linear; ``g`` is that of ``y``."""
        raise NotImplementedError

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        """The gradient of each operand, None for 0; ``gs`` are those of the results ``ys``.

        A result that nothing depends on has the gradient None; not all of them have.
        """
        raise NotImplementedError

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        """Dtype each operand is cast to before computing, or None where it stays as it is.

        None as a whole = no operand is ever cast. Read by the `insert-casts` pass.
        """
        return None

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        """Yield complaints about attributes that the schema cannot express (axes range, …)."""
        return iter(())

    @classmethod
    def can_lower(cls) -> bool:
        """True if a lowering is declared."""
        return cls.lower.__func__ is not Op.lower.__func__  # type: ignore[attr-defined]

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        """The reason why these operand types cannot be compiled, or None when they can.

        Asked by the passes that fuse, which add which op it is, and where.
        """
        if not cls.can_lower():
            return Reason(Kind.NO_LOWERING)
        try:
            results = cls.infer(types, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        for type_ in (*types, *results):
            if isinstance(type_, TensorType) and not type_.is_complete:
                return Reason(Kind.UNKNOWN_TYPE)
            if isinstance(type_, ListType) or (isinstance(type_, ListedType) and not type_.is_complete):
                return Reason(Kind.LISTS)
            if isinstance(type_, ListedType):
                continue
            if type_.dtype is not None and type_.dtype.is_complex and not cls.lowers_complex:
                return Reason(Kind.COMPLEX)
        return None

    @classmethod
    def full_attrs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """``given`` plus defaults; raises IRError on unknown or missing attributes."""
        if not given.keys() <= cls.attrs.keys():
            unknown = given.keys() - cls.attrs.keys()
            raise IRError(f"{cls.full_name()} has no attribute {sorted(unknown)[0]!r}")
        out = {}
        for key, field in cls.attrs.items():
            if key in given:
                out[key] = given[key]
            elif field.optional:
                out[key] = field.default
            else:
                raise IRError(f"{cls.full_name()} needs attribute {key!r}")
        return out


# Modules of ops that many programs do without, loaded in this order when an op is asked for that is not there.
_LATER = ("..ops.indexing.inplace_forms", "..ops.seldom")


def find_op(name: str) -> type[Op] | None:
    """The op class of a full or short name; None if there is none."""
    op = OPS.get(name) or OPS.get(f"{DIALECT}.{name}")
    for module in _LATER:
        if op is not None:
            break
        import_module(module, __package__)
        op = OPS.get(name) or OPS.get(f"{DIALECT}.{name}")
    return op


def op_named(name: str) -> type[Op]:
    """The op class of a full or short name; raises IRError."""
    op = find_op(name)
    if op is None:
        raise IRError(f"unknown op {name!r}", hint="profuse-opt --list-ops prints every op")
    return op
