"""Speculation: observers, guards, fused or differentiable subgraphs, fallbacks (R1.16 to R1.42).

Subgraphs are private functions named by symbol, not regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from ..dataclass import dataclass
from ..errors import InternalError
from ..guards.checks import ALL_FREE
from ..guards.free_sizes import FreeSizes
from ..guards.mismatch import check_types, fits_relaxed, flags_fit
from ..guards.relaxed import relaxed
from ..ir.attrs import BOOL, I64, I64_ARRAY, I64_ARRAYS, STR, STR_ARRAY, SYMBOL, TYPE, TYPES, VALUE
from ..ir.op import Attrs, Op, attr, operand, result
from ..ir.program import Instr, Module, Program
from ..ir.size_algebra import multiple_of
from ..ir.symbolic import Sym
from ..ir.types import BOOL_SCALAR, TensorType, Type, with_shape
from .value_kinds import KINDS, ValueKind


class Identity(Op):
    """Family of observers: one value through, unchanged."""

    aliases = {0: 0}
    input = operand()
    output = result()
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (types[0],)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[0]


class Profile(Identity, name="profile"):
    """Record the type of a tensor; ``profiled_type`` is what all records agree on (R1.18).

    Pure: an observer that nobody reads observes nothing anybody will ask for.
    """

    site = attr(I64)
    profiled_type = attr(TYPE, default=None)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], TensorType):
            yield f"observes tensors, not {types[0]}"
        if not isinstance(attrs.get("profiled_type") or TensorType(), TensorType):
            yield f"profiled_type must be a tensor type, not {attrs['profiled_type']}"
        if attrs["site"] < 0:
            yield "site must not be negative"


class ProfileValue(Identity, name="profile_value"):
    """Record a value that is no tensor: how often it was None, and what it was otherwise (R1.23).

    ``none`` and ``present`` count hits; ``seen`` is there if every hit was the same number. An observer
    with a ``kind``, see `value_kinds`, has the value in the attribute of that kind instead, of which a
    conditional constant is made (R3.4); ``failed`` is set, and stays, once a hit has differed (R3.5).
    """

    site = attr(I64)
    seen = attr(VALUE, default=None)
    none = attr(I64, default=0)
    present = attr(I64, default=0)
    kind = attr(STR, default="")
    failed = attr(BOOL, default=False)
    profiled_int_list = attr(KINDS["int_list"].attribute, default=None)
    profiled_bool_list = attr(KINDS["bool_list"].attribute, default=None)
    profiled_reduction_size = attr(KINDS["reduction_size"].attribute, default=None)
    profiled_view_size = attr(KINDS["view_size"].attribute, default=None)
    profiled_bool = attr(KINDS["bool"].attribute, default=None)
    profiled_int = attr(KINDS["int"].attribute, default=None)
    profiled_string = attr(KINDS["string"].attribute, default=None)

    @classmethod
    def profiled(cls, attrs: Attrs) -> tuple[ValueKind, Any] | None:
        """The value that was profiled, and its kind: that of the first attribute there is, in the order of R3.4."""
        values = ((kind, attrs.get(kind.attr)) for kind in KINDS.values())
        return next(((kind, value) for kind, value in values if value is not None), None)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if isinstance(types[0], TensorType):
            yield f"observes values that are no tensors, not {types[0]}"
        if attrs["kind"] and attrs["kind"] not in KINDS:
            yield f"kind '{attrs['kind']}' is none of {', '.join(KINDS)}"
        for kind in KINDS.values():
            if attrs[kind.attr] is not None and attrs["failed"]:
                yield f"has failed, and {kind.attr}"
            if (attrs[kind.attr] is not None or attrs["kind"] == kind.name) and str(types[0]) != str(kind.type):
                yield f"a value of kind {kind.name} is of type {kind.type}, not {types[0]}"
        for field in ("site", "none", "present"):
            if attrs[field] < 0:
                yield f"{field} must not be negative"


class ProfileCounter(Op, name="profile_counter"):
    """Count one finished profiling run (R1.20). Last op of the top block."""

    pure = False
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return ()


class Guard(Op):
    """Family of checks: the operands again, with the types they were checked for, and an i1.

    ``behavior`` says what the guard asks of sizes, in the words of the fusion strategy: that they
    are those of the types (static), or that equal symbols are equal sizes (dynamic); a relaxed
    guard lets sizes other than 0 and 1 differ, and a guard on gradients all sizes.
    """

    behavior: ClassVar[Literal["static", "dynamic", "relaxed", "gradients"]] = "static"
    inputs = operand(variadic=True)
    refined = result(variadic=True)
    passed = result()
    types = attr(TYPES)
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def free_sizes(cls, attrs: Attrs) -> FreeSizes:
        """The relations between sizes that the check holds besides those of the types (A6)."""
        return ALL_FREE

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (result,) if result < count else ()

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (*map(_checked_part, attrs["types"]), BOOL_SCALAR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return (*args, check_types(attrs["types"], args))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        expected = attrs["types"]
        if len(expected) != len(types):
            yield f"{len(types)} operands but {len(expected)} types"
        for index, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                yield f"operand {index} must be a tensor, not {type_}"
        for index, type_ in enumerate(expected):
            if not isinstance(type_, TensorType):
                yield f"expected type {index} must be a tensor type, not {type_}"


def _checked_part(type_: Type) -> Type:
    """The facts that a passed check has established: sizes count only as a whole (R1.39)."""
    if isinstance(type_, TensorType) and None in (type_.shape or ()):
        return with_shape(type_, None)
    return type_


class TypeCheck(Guard, name="type_check"):
    """Compare what the expected types know with the tensors (R1.38, R1.39)."""


class DynamicGuard(Guard, name="dynamic_guard"):
    """Compare with types whose sizes are symbols: equal symbols, equal sizes (R1.40)."""

    behavior = "dynamic"

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        tensors = [t for t in attrs["types"] if isinstance(t, TensorType)]
        dims = [d for t in tensors for d in t.shape or ()]
        for index, type_ in enumerate(tensors):
            if not type_.is_complete:
                yield f"expected type {index} must have a dtype and all sizes"
        bound = {multiple[0] for d in dims if (multiple := multiple_of(d)) is not None}
        used = {name for d in dims if isinstance(d, Sym) for name in d.symbols}
        for name in sorted(used - bound):
            yield f"no operand has a dimension that is {name} or a multiple of it"


class Subgraph(Op):
    """Family of calls of a private function of the same module."""

    inputs = operand(variadic=True)
    outputs = result(variadic=True)
    callee = attr(SYMBOL)
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        # The number of results is the callee's; in the caller they are always bare.
        return ()


class FusionGroup(Subgraph, name="fusion_group"):
    """Run the fused kernel compiled from ``callee``, whose arguments have refined types."""


class CudaGroup(FusionGroup, name="cuda_group"):
    """A group of the fuser of device groups: its guard leaves sizes other than 0 and 1 free (R3.18, R3.35).

    Groups of one ``cache_id`` have equal bodies, and share a kernel (R3.49).
    """

    cache_id = attr(STR, default=None)


class FallbackGraph(Subgraph, name="fallback_graph"):
    """The unspecialised body of a group, run when its guard fails (R1.38)."""

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        # Unlike a kernel's or an executor's, results of an evaluated function may be views.
        return tuple(range(count))


class CallFallback(Subgraph, name="call_fallback"):
    """Call the executor made of a fallback graph, one level deeper (R1.41, R1.42)."""

    fallback = attr(I64, default=1)


# --- differentiable subgraphs (R1.29 - R1.39, R2.18) -------------------------------------------


class RgCheck(Guard, name="rg_check"):
    """True if tensors are of the dtypes and ranks, and carry the flags, of a differentiated graph.

    The flag of a tensor counts, whatever gradient mode is (R1.39). Sizes are not compared.
    """

    behavior = "gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (*attrs["types"], BOOL_SCALAR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return (*args, flags_fit(attrs["types"], args))


class CudaGuard(Guard, name="cuda_guard"):
    """Compare with the expected types, but let sizes other than 0 and 1 differ (R3.42).

    The sizes fit each other as `FreeSizes` says by ``equal`` and ``fit`` (A6), which follow from the ops
    that are guarded.
    """

    behavior = "relaxed"
    equal = attr(I64_ARRAYS, default=())
    fit = attr(STR_ARRAY, default=())

    @classmethod
    def free_sizes(cls, attrs: Attrs) -> FreeSizes:
        attrs = cls.full_attrs(attrs)
        return FreeSizes(tuple(attrs["equal"]), tuple(attrs["fit"]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from cls.free_sizes(attrs).complaints(attrs["types"])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (*map(relaxed, attrs["types"]), BOOL_SCALAR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return (*args, fits_relaxed(attrs["types"], args, cls.free_sizes(attrs)))


class DiffGraph(Op, name="diff_graph"):
    """Run a subgraph as one node of the tape.

    Before it is differentiated ``callee`` names its body. Afterwards ``forward`` and ``reverse``
    name its two halves, and the indices say what passes between them (R2.18, R2.29); they are
    those of `Gradient`.
    """

    inputs = operand(variadic=True)
    outputs = result(variadic=True)
    callee = attr(SYMBOL, default=None)
    forward = attr(SYMBOL, default=None)
    reverse = attr(SYMBOL, default=None)
    f_real_outputs = attr(I64, default=0)
    df_input_vjps = attr(I64_ARRAY, default=())
    df_input_captured_inputs = attr(I64_ARRAY, default=())
    df_input_captured_outputs = attr(I64_ARRAY, default=())
    df_output_vjps = attr(I64_ARRAY, default=())
    undifferentiable = "its halves are"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        # The functions that it names have results; in the caller they are bare.
        return ()

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        halves = (attrs["forward"], attrs["reverse"])
        if (attrs["callee"] is None) == (None in halves) or halves.count(None) == 1:
            yield "needs a callee, or a forward and a reverse half"
        if attrs["callee"] is not None:
            for name in _INDICES:
                if attrs[name]:
                    yield f"has {name} before it is differentiated"
            return
        for name, end, what in (
            ("df_input_captured_inputs", len(types), "operands"),
            ("df_output_vjps", len(types), "operands"),
            ("df_input_vjps", attrs["f_real_outputs"], "real outputs"),
        ):
            if any(not 0 <= k < end for k in attrs[name]):
                yield f"{name} names one of {end} {what} that there is not"
        if any(k < 0 for k in attrs["df_input_captured_outputs"]):
            yield "df_input_captured_outputs must not be negative"


_INDICES = (
    "f_real_outputs",
    "df_input_vjps",
    "df_input_captured_inputs",
    "df_input_captured_outputs",
    "df_output_vjps",
)


@dataclass(frozen=True)
class Gradient:
    """A differentiable graph as two programs, with the indices that R2.29 names.

    The forward one returns the real outputs, and then temporaries that the reverse one needs. The
    inputs of the reverse one are gradients of real outputs, captured inputs of the forward one,
    and captured outputs of it; its outputs are gradients of inputs.

    Attributes:
        forward: the graph with temporaries.
        reverse: its gradients.
        real_outputs: how many outputs of ``forward`` are those of the graph.
        input_vjps: the outputs that ``reverse`` takes gradients for.
        captured_inputs: the inputs of ``forward`` that ``reverse`` takes.
        captured_outputs: the outputs of ``forward`` that ``reverse`` takes.
        output_vjps: the inputs that ``reverse`` returns gradients for.
        remarks: sentences on how it was differentiated.
    """

    forward: Program
    reverse: Program
    real_outputs: int
    input_vjps: tuple[int, ...]
    captured_inputs: tuple[int, ...]
    captured_outputs: tuple[int, ...]
    output_vjps: tuple[int, ...]
    remarks: tuple[str, ...] = ()

    def pack(self, forward: str, reverse: str) -> dict[str, Any]:
        """Attributes of a `DiffGraph` whose halves are functions of these names (R2.18)."""
        indices = (self.real_outputs, self.input_vjps, self.captured_inputs, self.captured_outputs, self.output_vjps)
        return {"forward": forward, "reverse": reverse, **dict(zip(_INDICES, indices, strict=True))}

    @classmethod
    def of(cls, instr: Instr, module: Module) -> Gradient:
        """The description of a differentiated `DiffGraph` of a module (R2.18).

        Raises InternalError for any other op.
        """
        attrs = instr.op.full_attrs(instr.attrs)
        if instr.op is not DiffGraph or attrs["forward"] is None:
            raise InternalError(f"{instr.op.full_name()} is not a differentiated graph")
        forward, reverse = (module.functions[attrs[half]] for half in ("forward", "reverse"))
        return cls(forward, reverse, *(attrs[name] for name in _INDICES))
