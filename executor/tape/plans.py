"""What is known of an op for operands of certain types: what its gradient reads, and how it runs.

All of it follows from the op's rule. Runs on small arrays consist of little else than asking.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import copysign, isfinite
from typing import Any, ClassVar

import numpy as np

from ...dialect.autodiff.reads import Reads, reads_of
from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.tracing.leaves import NUMBERS
from ...dialect.ir.dtypes import C128
from ...dialect.ir.op import Op
from ...dialect.ir.types import TensorType
from ...dialect.ops.elementwise.binary import Pow
from ...dialect.ops.elementwise.families import Binary, Elementwise, Unary
from .bounds import bounds_of, takes_sizes, with_bounds
from .builder import ArrayBuilder, Unsaved
from .node import Edge
from .straight import Pull, straight

MANY = 16  # values of a number, after which others are not told apart
OFTEN = 8  # runs of a rule with operands of the same types, after which it is recorded
_ARRAYS = (np.ndarray, np.generic)
_LIMIT = 4096  # plans that are kept: what comes in ever other sizes fills no memory
_BY_VALUE: set[type[Op]] = {Pow}


class Plan:
    """What is known of an op for operands of certain types, some of which require gradients.

    Attributes:
        op, attrs: the op; its attributes, with defaults.
        wanted: which operands require gradients.
        kept: which operands nodes keep, numbers among them.
        keeps: the same as bits.
        kept_results: which results they keep.
        blank: what stands for the operands that are not kept.
        pull: the rule as one function; None = it is not recorded, or cannot be.
        stamp: what tells nodes apart whatever their sizes and `numbers` are; None until `stamped`.
        numbers: which operands are numbers that may be others in the next run; () until `stamped`.
        bounds: numbers among the attributes that may be, such as the bounds of a slice that a
            batch decides; () until `stamped`.
        any_sizes: it is for operands and a result of any one shape.
        any_number: it is for any numbers of the types of its numbers.
    """

    __slots__ = (
        "_given", "_left", "attrs", "blank", "bounds", "builder", "keeps", "kept", "kept_results",
        "numbers", "op", "pull", "stamp", "wanted",
    )  # fmt: skip
    pull: Pull | None
    stamp: Hashable
    numbers: tuple[int, ...]
    bounds: tuple[int, ...]
    any_sizes: ClassVar[bool] = False
    any_number: ClassVar[bool] = False

    def __init__(
        self, op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any],
        wanted: Sequence[bool], reads: Reads,
    ) -> None:  # fmt: skip
        self.op, self.attrs, self.wanted = op, attrs, wanted
        self._given = [Unsaved(x.shape, x.dtype) if _is_array(x) else x for x in operands]
        numbers = {k for k, x in enumerate(operands) if not _is_array(x)}
        self.kept = tuple(sorted(reads[0] | numbers))
        self.keeps = sum(1 << k for k in self.kept)
        self.kept_results = tuple(sorted(reads[1]))
        self.blank = [None if w else x for x, w in zip(self._given, wanted, strict=True)]
        self.builder = ArrayBuilder(wanted)
        self.pull = None
        self.unstamp()
        self._left = OFTEN

    def unstamp(self) -> None:
        """Make the stamp anew when it is asked for, as `told_by_value` has changed."""
        self.stamp, self.numbers, self.bounds = None, (), ()

    def stamped(self) -> Hashable:
        """Make `stamp`: the op, its attributes but for shapes, and what operands are and keep.

        Rules of elementwise ops compute alike with any number, but for those of `told_by_value`,
        and so do those of ops whose sizes are operands.
        """
        known = self.attrs
        if self.op not in _BY_VALUE:
            self.bounds = bounds_of(self.op, known)
            if takes_sizes(self.op, known):
                self.numbers = tuple(k for k, x in enumerate(self._given) if type(x) is int)
            known = with_bounds(self.op, known, [True] * len(self.bounds))
        attrs = [
            (name, repr(v) if isinstance(v, (float, complex, np.ndarray)) else v)
            for name, v in known.items() if name != "shape"
        ]  # fmt: skip
        if issubclass(self.op, Elementwise) and self.op not in _BY_VALUE:
            # Rules do not multiply by 1 and -1, which would change signs of parts that are 0.
            signs = (1, -1) if any(_is_complex(x) for x in self._given) else ()
            self.numbers = tuple(
                k for k, x in enumerate(self._given) if may_change(x) and x not in signs
            )
        given = [
            (x.dtype, x.is_unknown or x.ndim) if type(x) is Unsaved
            else type(x) if k in self.numbers
            else (type(x), repr(x))
            for k, x in enumerate(self._given)
        ]  # fmt: skip
        kept = self.kept, self.kept_results, tuple(x is None for x in self.blank)
        parts = (*map(_hashable, attrs), *given, *kept, *self.wanted)
        self.stamp = (self.op, *parts)
        return self.stamp

    def ran(self) -> None:
        """Count a run of the rule; one that runs often is recorded."""
        left = self._left = self._left - 1
        if left == 0:
            self.pull = self._recorded()

    def _recorded(self) -> Pull | None:
        return straight(self.op, self.attrs, self._given, self.wanted)


def _is_complex(x: Any) -> bool:
    return type(x) is Unsaved and x.dtype.kind == "c"


def told_by_value(op: type[Op]) -> bool:
    """Have nodes of an op be told apart by the numbers among its operands: its rule asks for them.

    Returns whether they have not been before.
    """
    if op in _BY_VALUE:
        return False
    _BY_VALUE.add(op)
    short = _elementwise.get(op)
    tables = [plans.known for plans in list(_known.values()) if plans.op is op]
    for table in (*tables, *(short.known if short else ())):
        for plan in list(table.values()):
            if plan is not None:
                plan.unstamp()
    return True


def may_change(x: Any) -> bool:
    """Whether a value is a number like others: neither -0.0, which equals 0.0, nor infinite or NaN.

    An int must be one that kernels can be given.
    """
    if type(x) is float:
        return isfinite(x) and (x != 0.0 or copysign(1.0, x) > 0)
    return type(x) is int and -(2**63) <= x < 2**63


def _hashable(x: Any) -> Hashable:
    try:
        hash(x)
    except TypeError:
        return repr(x)
    return x


class OpPlans:
    """The plans of an op with attributes, by what operands are.

    Attributes:
        op, attrs: the op; its attributes, with defaults.
        known: the plans.
    """

    __slots__ = ("attrs", "known", "op")

    def __init__(self, op: type[Op], attrs: Mapping[str, Any]) -> None:
        self.op, self.attrs = op, op.full_attrs(attrs)
        self.known: dict[Any, Plan] = {}

    def of(self, values: Sequence[Any], edges: Sequence[Edge]) -> Plan:
        """The plan for operands with these edges."""
        if len(values) == 1:
            x = values[0]
            key: Any = x.shape, x.dtype
        else:
            key = tuple([
                (e is None, x.shape, x.dtype) if isinstance(x, _ARRAYS) else (type(x), repr(x))
                for x, e in zip(values, edges, strict=True)
            ])  # fmt: skip
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= _LIMIT:
                self.known.clear()
            wanted = [e is not None for e in edges]
            reads = _reads(self.op, self.attrs, values, wanted)
            found = self.known[key] = Plan(self.op, self.attrs, values, wanted, reads)
        return found


_known: dict[Any, OpPlans] = {}
_known_reads: dict[Any, Reads] = {}


def op_plans(op: type[Op], attrs: Mapping[str, Any]) -> OpPlans:
    """The plans of an op with attributes; those that are left out have their defaults."""
    try:
        # A float among them as text, in which 0.0 is not -0.0.
        key = (
            (op, *attrs, *[repr(v) if type(v) in (float, complex) else v for v in attrs.values()])
            if attrs else op
        )  # fmt: skip
        return _known[key]
    except KeyError:
        if len(_known) >= _LIMIT:
            _known.clear()
        found = _known[key] = OpPlans(op, attrs)
        return found
    except TypeError:  # an attribute that is not hashed
        return OpPlans(op, attrs)


def _reads(
    op: type[Op], attrs: Mapping[str, Any], values: Sequence[Any], wanted: Sequence[bool]
) -> Reads:
    """What the gradient of an op reads; looked up by what can decide it, which sizes do not."""
    if op.linear:  # operands decide alone, by which of them require gradients
        key: Any = (op, *wanted)
    else:
        kinds = [type(x) if type(x) in NUMBERS else (x.dtype.kind, x.ndim) for x in values]
        key = (op, *attrs.values(), *wanted, *kinds)
    try:
        found = _known_reads.get(key)
    except TypeError:
        return reads_of(op, attrs, values, wanted)
    if found is None:
        if len(_known_reads) >= _LIMIT:
            _known_reads.clear()
        found = _known_reads[key] = reads_of(op, attrs, values, wanted)
    return found


def forget() -> None:
    """Drop all plans."""
    for plans in _known.values():
        plans.known.clear()
    for short in _elementwise.values():
        for known in short.known if short else ():
            known.clear()


def _is_array(x: Any) -> bool:
    return isinstance(x, _ARRAYS)


class _AnySizes(Plan):
    """The plan of an elementwise op for operands of all sizes that are the same.

    Args:
        rank: of the operands that are arrays, 0 or more.
        table: has the plan, and None in its place once the rule turns out to depend on sizes.
        key: where.
    """

    __slots__ = ("_key", "_table")
    any_sizes = True

    def __init__(
        self, op: type[Op], operands: Sequence[Any], wanted: Sequence[bool], rank: int,
        table: dict[Any, Plan | None], key: Any,
    ) -> None:  # fmt: skip
        shape = (2,) if rank else ()
        given = [np.zeros(shape, x.dtype) if _is_array(x) else x for x in operands]
        super().__init__(op, {}, given, wanted, _reads(op, {}, given, wanted))
        self.blank = [None] * len(operands)  # their sizes are not known
        self._table, self._key = table, key

    def _recorded(self) -> Pull | None:
        found = straight(self.op, {}, self._given, self.wanted, any_sizes=True)
        if found is None:
            self._table[self._key] = None
        return found


class _AnyNumber(_AnySizes):
    """The same, for all numbers that `may_change` in the place of the one among the operands.

    Its rule is recorded from the start, and has a `pull` unless it asks for the number.
    """

    any_number = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pull = straight(
            self.op, {}, self._given, self.wanted, any_sizes=True, any_number=True
        )  # fmt: skip


class ElementwisePlans:
    """The plans of an elementwise op for real floats of the shape and dtype of the result.

    Attributes:
        known: a table for each sum of 1 and 2 for the operands that require gradients, 8 for arrays
            with axes, 16 and 32 for operands that are numbers. Each goes by the dtype of the
            result, then also by type and value of the number, and has None where there is no such
            plan. One that has had many values has a plan for all others, by dtype and type.
    """

    __slots__ = ("known", "numpy", "op")

    def __init__(self, op: type[Elementwise]) -> None:
        self.op, self.numpy = op, op.numpy
        self.known: list[dict[Any, Plan | None]] = [{} for _ in range(64)]

    def plan(self, table: int, key: Any, operands: Sequence[Any]) -> Plan | None:
        """The plan in a table at a key, made if there is none; None for what is no real float."""
        known = self.known[table]
        if key in known:
            return known[key]
        if len(known) > MANY and type(key) is tuple:
            found = self._any_number(table, key, operands)
            if found is not None:
                return found
        if len(known) >= _LIMIT:
            known.clear()
        dtype = key[0] if type(key) is tuple else key
        made: Plan | None = None
        if dtype.kind == "f":
            wanted = [bool(table >> k & 1) for k in range(len(operands))]
            made = _AnySizes(self.op, operands, wanted, table & 8, known, key)
        known[key] = made
        return made

    def _any_number(self, table: int, key: Any, operands: Sequence[Any]) -> Plan | None:
        """The plan for any number of the type of one among the operands; None if it has its own."""
        dtype, kind, _ = key
        known = self.known[table]
        made = known.get((dtype, kind), self)
        if made is None or self.op in _BY_VALUE or not may_change(operands[table >> 5]):
            return None
        if made is self:
            made = None
            if dtype.kind == "f":
                wanted = [bool(table >> k & 1) for k in range(len(operands))]
                plan = _AnyNumber(self.op, operands, wanted, table & 8, known, key)
                made = plan if plan.pull is not None else None
            known[dtype, kind] = made
        return made  # type: ignore[return-value]


_elementwise: dict[type[Op], ElementwisePlans | None] = {}


def elementwise_plans(op: type[Op]) -> ElementwisePlans | None:
    """The plans of an elementwise op of one or two operands; None for any other op."""
    try:
        return _elementwise[op]
    except KeyError:
        plain = issubclass(op, (Unary, Binary)) and _is_plain(op)
        made = _elementwise[op] = ElementwisePlans(op) if plain else None  # type: ignore[arg-type]
        return made


def _is_plain(op: type[Op]) -> bool:
    if op.partials is None or op.attrs or op.aliases:
        return False
    try:  # an op whose float result may come of complex operands has other derivatives for these
        found = op.infer([TensorType(C128, ())] * len(op.operands), {})[0]
    except ProfuseError:
        return True
    return isinstance(found, TensorType) and found.dtype is C128


__all__ = [
    "MANY", "OFTEN", "ElementwisePlans", "OpPlans", "Plan", "elementwise_plans", "forget",
    "may_change", "op_plans", "told_by_value",
]  # fmt: skip
