"""The profiling record: what observers saw, per run, and what of it can be relied on.

A run is one frame. Inside a frame repeated hits of an observer merge by R1.19; a finished frame
merges into the earliest (R1.20, R1.21), so that a record holds one frame however many runs there
are. When the counter reaches zero every observer of the instrumented program gets what has been
seen, ``profiled_type`` or ``seen``, and the record lets go of its frame.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.errors import IRError
from ...dialect.ir.attrs import TYPE, VALUE
from ...dialect.ir.device import device_of
from ...dialect.ir.dtypes import NUMBERS
from ...dialect.ir.program import Module
from ...dialect.ir.symbolic import symbol
from ...dialect.ir.types import UNDEFINED, MaybeDim, TensorType, listed_type, merge_types, type_of
from ...dialect.ops.speculation import Profile, ProfileValue
from ...dialect.ops.value_kinds import KINDS, MAX_ITEMS
from ..settings.fork_lock import ForkLock

Types = dict[int, TensorType]
Constant = Union[bool, int, float, complex, str, tuple, None]


@dataclass
class SeenValue:
    """The record of a `profile_value` observer (R1.23, R3.5).

    Only plain numbers, short lists of them and short strings are kept: a record must not hold on to
    what flows through it.

    Attributes:
        value: the one value seen; None once ``varied``.
        varied: True if values differed, in type or in value, or were of another kind.
        none, present: hits with None, and with anything else.
    """

    value: Constant = None
    varied: bool = False
    none: int = 0
    present: int = 0

    @classmethod
    def of(cls, value: Any) -> SeenValue:
        """One hit."""
        if value is None:
            return cls(none=1)
        if not _is_constant(value):
            return cls(varied=True, present=1)
        return cls(value, present=1)

    def add(self, other: SeenValue) -> None:
        """Merge other hits of the same observer into these."""
        if self.varied or other.varied or not _same_value(self.value, other.value):
            self.value, self.varied = None, True
        self.none += other.none
        self.present += other.present


class RunRecord:
    """The types and values that the observers of one graph saw during one run."""

    def __init__(self) -> None:
        self.types: Types = {}
        self.values: dict[int, SeenValue] = {}

    def observe_type(self, site: int, value: Any) -> None:
        """A hit of ``profile``: None is the undefined tensor, other non-tensors are ignored.

        An undefined tensor replaces what was seen before (R1.18).
        """
        if value is None:
            self.types[site] = UNDEFINED
        elif device_of(value) is not None:
            type_ = type_of(value)
            assert isinstance(type_, TensorType)
            old = self.types.get(site)
            if old != type_:  # else it is a later round of a loop, of which there may be thousands
                self.types[site] = type_ if old is None else merge_types(old, type_)

    def observe_value(self, site: int, value: Any) -> None:
        """A hit of ``profile_value``."""
        hit = SeenValue.of(value)
        if site in self.values:
            self.values[site].add(hit)
        else:
            self.values[site] = hit

    def __bool__(self) -> bool:
        return bool(self.types or self.values)


@dataclass(frozen=True)
class Observations:
    """The content of a ready record, by site: all that a plan is specialised by.

    Sites number the observers of a graph in order, so these hold for every copy of the graph.
    """

    types: Types
    values: dict[int, SeenValue]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "types": [[site, TYPE.to_json(seen)] for site, seen in self.types.items()],
            "values": [
                [site, _value_to_json(seen.value), seen.varied, seen.none, seen.present]
                for site, seen in self.values.items()
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observations:
        """The observations that `to_json` wrote; raises LookupError, TypeError, ValueError or IRError for others."""
        types = {_natural(site): TYPE.from_json(text) for site, text in data["types"]}
        if not all(isinstance(type_, TensorType) for type_ in types.values()):
            raise ValueError("an observed type is that of a tensor")
        values = {}
        for site, value, varied, none, present in data["values"]:
            constant = _value_from_json(value)
            counts = _natural(none), _natural(present)
            values[_natural(site)] = SeenValue(constant, bool(varied), *counts)
        return cls(types, values)


def _value_to_json(value: Constant) -> Any:
    return None if value is None else VALUE.to_json(value)


def _value_from_json(data: Any) -> Constant:
    value = None if data is None else VALUE.from_json(data)
    if value is not None and not _is_constant(value):
        raise ValueError(f"an observed value is a number, a short list or string, not {value!r}")
    return value


def _natural(data: Any) -> int:
    if type(data) is not int or data < 0:
        raise ValueError(f"expected a natural number, not {data!r}")
    return data


class Record:
    """The record of the observers of one instrumented graph, over its first runs.

    Args:
        module: the instrumented graph; `finish` writes what was seen into it.
        runs: runs to record before the record is ready; 0 = ready at once.

    Attributes:
        runs: as given.
        is_restored: nothing was recorded: another record's observations were taken over.
        values: what ``profile_value`` observers saw in all finished runs, by site.
    """

    def __init__(self, module: Module, runs: int) -> None:
        self.module = module
        self.runs = runs
        self.is_restored = False
        self.values: dict[int, SeenValue] = {}
        self._left = runs
        self._types: Types = {}
        self._names = (f"p{k}" for k in itertools.count())
        self._lock = ForkLock()

    @property
    def ready(self) -> bool:
        """True once enough runs have finished; read without the lock (R1.20)."""
        return self._left == 0

    @property
    def held(self) -> int:
        """Entries held: at most one per observer, and none once ready but those of `values`."""
        return len(self._types) + len(self.values)

    def finish(self, frame: RunRecord) -> bool:
        """Count a finished run; True if this one made the record ready.

        A record in which no observer was ever hit never becomes ready (R1.20), unless the graph
        has no observer at all, in which case there is nothing to wait for.
        """
        with self._lock:
            if self._left == 0:
                return False
            merge_frame(self._types, frame.types, self._names)
            for site, seen in frame.values.items():
                if site in self.values:
                    self.values[site].add(seen)
                else:
                    self.values[site] = replace(seen)
            if self._left == 1 and not self.held and self._has_observers():
                return False
            if self._left == 1:
                # Before the count says so: whoever finds the record ready reads the graph.
                self._write()
                self._types = {}
            self._left -= 1
            return self._left == 0

    def restore(self, observed: Observations) -> None:
        """Become ready at once, with what another record of the same graph has observed.

        Raises IRError if it was of another graph; then nothing has changed.
        """
        sites = {i.attrs["site"]: i.op for i in self.module.main.body.walk() if i.op in (Profile, ProfileValue)}
        for op, observations in ((Profile, observed.types), (ProfileValue, observed.values)):
            for site in observations:
                if sites.get(site) is not op:
                    raise IRError(f"the graph has no {op.name} with site {site}")
        with self._lock:
            self._types, self.values = dict(observed.types), dict(observed.values)
            self._write()
            self._types, self._left, self.is_restored = {}, 0, True

    def observations(self) -> Observations:
        """The content of this record, once it is ready."""
        types = {
            i.attrs["site"]: i.attrs["profiled_type"]
            for i in self.module.main.body.walk()
            if i.op is Profile and i.attrs.get("profiled_type") is not None
        }
        return Observations(types, dict(self.values))

    def _has_observers(self) -> bool:
        return any(i.op in (Profile, ProfileValue) for i in self.module.main.body.walk())

    def _write(self) -> None:
        for instr in self.module.main.body.walk():
            site = instr.attrs.get("site")
            if instr.op is Profile and site in self._types:
                instr.attrs["profiled_type"] = self._types[site]
            elif instr.op is ProfileValue and site in self.values:
                instr.attrs |= _recorded(instr.attrs.get("kind", ""), self.values[site])


def _recorded(kind: str, seen: SeenValue) -> dict[str, Any]:
    """The attributes of an observer of a kind that has seen this (R1.23, R3.5)."""
    attrs: dict[str, Any] = {"none": seen.none, "present": seen.present}
    if not kind:
        return {**attrs, "seen": seen.value} if type(seen.value) in NUMBERS else attrs
    stored = None if seen.varied else KINDS[kind].stored(seen.value)
    return {**attrs, "failed": True} if stored is None else {**attrs, KINDS[kind].attr: stored}


def _is_constant(value: Any) -> bool:
    """True for what a graph can hold as a constant, arrays aside, if it is not long."""
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if type(value) is tuple and listed_type(value) is not None:
        return len(value) <= MAX_ITEMS and all(map(_is_constant, value))
    if type(value) is str:
        return len(value) <= MAX_ITEMS
    return type(value) in (bool, float, complex)


def _same_value(a: Any, b: Any) -> bool:
    """Equal for a program: NaN is itself, and neither 0.0, -0.0 nor False is 0."""
    return type(a) is type(b) and repr(a) == repr(b)


def merge_frame(merged: Types, frame: Types, names: Iterator[str]) -> None:
    """Merge the types of a run into those of the runs before it, in place (R1.21).

    Equal sizes stay literal; a size that changed becomes a symbol shared by all positions with
    the same (old, new) pair; sizes already unknown get fresh symbols; differing ranks lose all.
    The rest of a type stays the first run's, but for strides where sizes changed.

    ``names``: names for new symbols.
    """
    shared: dict[tuple[MaybeDim, MaybeDim], MaybeDim] = {}
    for site, type_ in frame.items():
        old = merged.get(site)
        merged[site] = type_ if old is None else _merge_across(old, type_, shared, names)


def _merge_across(old: TensorType, new: TensorType, shared: dict, names: Any) -> TensorType:
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        return replace(old, shape=None, strides=None)
    shape: list[MaybeDim] = []
    for a, b in zip(old.shape, new.shape, strict=True):
        if a is not None and a == b:
            shape.append(a)
        elif a is None or b is None:
            shape.append(symbol(next(names)))
        else:
            if (a, b) not in shared:
                shared[a, b] = symbol(next(names))
            shape.append(shared[a, b])
    base = old if tuple(shape) == old.shape else replace(old, strides=_common_layout(old, new))
    return replace(base, shape=tuple(shape))


def _common_layout(old: TensorType, new: TensorType) -> str | None:
    """Exact strides of changing sizes mean nothing; C-contiguity in both runs does."""
    return "contiguous" if old.strides == new.strides == "contiguous" else None
