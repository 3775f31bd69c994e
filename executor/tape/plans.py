"""Plans of ops on the tape, one per op and types of operands: what its gradient reads, and how it runs.

All of it follows from the op's rule, and is kept: on small arrays, finding it out would take longer than
the operation and its gradient.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import copysign, isfinite
from typing import Any, ClassVar

import numpy as np

from ...dialect.autodiff.reads import Reads, reads_of
from ...dialect.errors import ProfuseError
from ...dialect.ir.dtypes import C128
from ...dialect.ir.op import Op
from ...dialect.ir.types import TensorType
from ...dialect.ops.elementwise.families import Binary, Elementwise, Unary
from ...dialect.ops.elementwise.powers import Pow
from ...dialect.trees.leaves import NUMBERS
from .bounds import bounds_of, takes_sizes, with_bounds
from .eager_builder import ArrayBuilder, Unsaved
from .node import Edge
from .straight import Pull, straight

MANY = 16  # values of a number, after which others are not told apart
OFTEN = 8  # runs of a rule with operands of the same types, after which it is recorded
_ARRAYS = (np.ndarray, np.generic, Unsaved)
_LIMIT = 4096  # plans that are kept: what comes in ever other sizes fills no memory
_BY_VALUE: set[type[Op]] = {Pow}


class OpPlan:
    """The plan of an op for operands of certain types, some of which require gradients.

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
        "_given",
        "_left",
        "attrs",
        "blank",
        "bounds",
        "builder",
        "keeps",
        "kept",
        "kept_results",
        "numbers",
        "op",
        "pull",
        "stamp",
        "wanted",
    )
    pull: Pull | None
    stamp: Hashable
    numbers: tuple[int, ...]
    bounds: tuple[int, ...]
    any_sizes: ClassVar[bool] = False
    any_number: ClassVar[bool] = False

    def __init__(
        self, op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], wanted: Sequence[bool], reads: Reads
    ) -> None:
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
        bound_attrs = self.attrs
        if self.op not in _BY_VALUE:
            self.bounds = bounds_of(self.op, bound_attrs)
            if takes_sizes(self.op, bound_attrs):
                self.numbers = tuple(k for k, x in enumerate(self._given) if type(x) is int)
            bound_attrs = with_bounds(self.op, bound_attrs, [True] * len(self.bounds))
        attrs = [
            (name, repr(v) if isinstance(v, (float, complex, np.ndarray)) else v)
            for name, v in bound_attrs.items()
            if name != "shape"
        ]
        if issubclass(self.op, Elementwise) and self.op not in _BY_VALUE:
            # Rules do not multiply by 1 and -1, which would change signs of parts that are 0.
            signs = (1, -1) if any(_is_complex(x) for x in self._given) else ()
            self.numbers = tuple(k for k, x in enumerate(self._given) if may_change(x) and x not in signs)
        operands = [
            (x.dtype, x.is_unknown or x.ndim)
            if type(x) is Unsaved
            else type(x)
            if k in self.numbers
            else (type(x), repr(x))
            for k, x in enumerate(self._given)
        ]
        kept = self.kept, self.kept_results, tuple(x is None for x in self.blank)
        parts = (*map(_hashable, attrs), *operands, *kept, *self.wanted)
        self.stamp = (self.op, *parts)
        return self.stamp

    def ran(self) -> None:
        """Count a run of the rule; one that runs often is recorded."""
        runs_left = self._left = self._left - 1
        if runs_left == 0:
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
    """True if a value is a number like others: neither -0.0, which equals 0.0, nor infinite or NaN.

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
        self.known: dict[Any, OpPlan] = {}

    def of(self, values: Sequence[Any], edges: Sequence[Edge]) -> OpPlan:
        """The plan for operands with these edges."""
        if len(values) == 1:
            x = values[0]
            key: Any = x.shape, x.dtype
        else:
            key = tuple(
                [
                    (e is None, x.shape, x.dtype) if isinstance(x, _ARRAYS) else (type(x), repr(x))
                    for x, e in zip(values, edges, strict=True)
                ]
            )
        plan = self.known.get(key)
        if plan is None:
            if len(self.known) >= _LIMIT:
                self.known.clear()
            wanted = [e is not None for e in edges]
            reads = _reads(self.op, self.attrs, values, wanted)
            plan = self.known[key] = OpPlan(self.op, self.attrs, values, wanted, reads)
        return plan


_known: dict[Any, OpPlans] = {}
_known_reads: dict[Any, Reads] = {}


def op_plans(op: type[Op], attrs: Mapping[str, Any]) -> OpPlans:
    """The plans of an op with attributes; those that are left out have their defaults."""
    try:
        # A float among them as text, in which 0.0 is not -0.0.
        key = (op, *attrs, *[repr(v) if type(v) in (float, complex) else v for v in attrs.values()]) if attrs else op
        return _known[key]
    except KeyError:
        if len(_known) >= _LIMIT:
            _known.clear()
        plans = _known[key] = OpPlans(op, attrs)
        return plans
    except TypeError:  # an attribute that is not hashed
        return OpPlans(op, attrs)


def _reads(op: type[Op], attrs: Mapping[str, Any], values: Sequence[Any], wanted: Sequence[bool]) -> Reads:
    """The operands that the gradient of an op reads; looked up by what can decide it, which sizes do not."""
    if op.linear:  # operands decide alone, by which of them require gradients
        key: Any = (op, *wanted)
    else:
        kinds = [type(x) if type(x) in NUMBERS else (x.dtype.kind, x.ndim) for x in values]
        key = (op, *attrs.values(), *wanted, *kinds)
    try:
        reads = _known_reads.get(key)
    except TypeError:
        return reads_of(op, attrs, values, wanted)
    if reads is None:
        if len(_known_reads) >= _LIMIT:
            _known_reads.clear()
        reads = _known_reads[key] = reads_of(op, attrs, values, wanted)
    return reads


def forget() -> None:
    """Drop all plans."""
    for plans in _known.values():
        plans.known.clear()
    for short in _elementwise.values():
        for table in short.known if short else ():
            table.clear()


def _is_array(x: Any) -> bool:
    return isinstance(x, _ARRAYS)


class _AnySizes(OpPlan):
    """The plan of an elementwise op for operands of all sizes that are the same.

    Args:
        rank: of the operands that are arrays, 0 or more.
        table: has the plan, and None in its place once the rule turns out to depend on sizes.
        key: where.
    """

    __slots__ = ("_key", "_table")
    any_sizes = True

    def __init__(
        self,
        op: type[Op],
        operands: Sequence[Any],
        wanted: Sequence[bool],
        rank: int,
        table: dict[Any, OpPlan | None],
        key: Any,
    ) -> None:
        shape = (2,) if rank else ()
        examples = [np.zeros(shape, x.dtype) if _is_array(x) else x for x in operands]
        super().__init__(op, {}, examples, wanted, _reads(op, {}, examples, wanted))
        self.blank = [None] * len(operands)  # their sizes are not known
        self._table, self._key = table, key

    def _recorded(self) -> Pull | None:
        pull = straight(self.op, {}, self._given, self.wanted, any_sizes=True)
        if pull is None:
            self._table[self._key] = None
        return pull


class _AnyNumber(_AnySizes):
    """The same, for all numbers that `may_change` in the place of the one among the operands.

    Its rule is recorded from the start, and has a `pull` unless it asks for the number.
    """

    any_number = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pull = straight(self.op, {}, self._given, self.wanted, any_sizes=True, any_number=True)


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
        self.known: list[dict[Any, OpPlan | None]] = [{} for _ in range(64)]

    def plan(self, table: int, key: Any, operands: Sequence[Any]) -> OpPlan | None:
        """The plan in a table at a key, made if there is none; None for what is no real float."""
        plans = self.known[table]
        if key in plans:
            return plans[key]
        if len(plans) > MANY and type(key) is tuple:
            plan = self._any_number(table, key, operands)
            if plan is not None:
                return plan
        if len(plans) >= _LIMIT:
            plans.clear()
        dtype = key[0] if type(key) is tuple else key
        plan = None
        if dtype.kind == "f":
            wanted = [bool(table >> k & 1) for k in range(len(operands))]
            plan = _AnySizes(self.op, operands, wanted, table & 8, plans, key)
        plans[key] = plan
        return plan

    def _any_number(self, table: int, key: Any, operands: Sequence[Any]) -> OpPlan | None:
        """The plan for any number of the type of one among the operands; None if it has its own."""
        dtype, kind, _ = key
        plans = self.known[table]
        plan = plans.get((dtype, kind), self)
        if plan is None or self.op in _BY_VALUE or not may_change(operands[table >> 5]):
            return None
        if plan is self:
            plan = None
            if dtype.kind == "f":
                wanted = [bool(table >> k & 1) for k in range(len(operands))]
                candidate = _AnyNumber(self.op, operands, wanted, table & 8, plans, key)
                plan = candidate if candidate.pull is not None else None
            plans[dtype, kind] = plan
        return plan  # type: ignore[return-value]


_elementwise: dict[type[Op], ElementwisePlans | None] = {}


def elementwise_plans(op: type[Op]) -> ElementwisePlans | None:
    """The plans of an elementwise op of one or two operands; None for any other op."""
    try:
        return _elementwise[op]
    except KeyError:
        plain = issubclass(op, (Unary, Binary)) and _is_plain(op)
        plans = _elementwise[op] = ElementwisePlans(op) if plain else None  # type: ignore[arg-type]
        return plans


def _is_plain(op: type[Op]) -> bool:
    if op.partials is None or op.attrs or op.aliases:
        return False
    try:  # an op whose float result may come of complex operands has other derivatives for these
        result = op.infer([TensorType(C128, ())] * len(op.operands), {})[0]
    except ProfuseError:
        return True
    return isinstance(result, TensorType) and result.dtype is C128
