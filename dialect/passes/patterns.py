"""Patterns, and the driver of the passes that are lists of them.

A pattern names the op classes that it matches, and rewrites such an op or declines to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ..ir.op import OPS, Op
from ..mlir.aliases import WrittenMemory
from ..mlir.facts import sharing_matters
from ..mlir.rewrite import attrs_of, functions, symbol_of, walk
from .base import Pass

if TYPE_CHECKING:
    from mlir import ir


class FunctionFacts:
    """Facts of the function that an op is in, each computed when a pattern first asks for it."""

    def __init__(self, func: ir.Operation, module: ir.Module, shared: dict[str, bool]) -> None:
        self._func, self._module = func, module
        self._shared = shared  # of all functions, empty until the first of them is asked

    @cached_property
    def memory(self) -> WrittenMemory:
        """The memory that is written in the function."""
        return WrittenMemory(self._func)

    @cached_property
    def careful(self) -> bool:
        """True if a caller can see that two results share memory."""
        if not self._shared:
            self._shared.update(sharing_matters(self._module))
        return self._shared[symbol_of(self._func)]


class Match:
    """An op of a class that a pattern names."""

    def __init__(self, op: ir.Operation, cls: type[Op], function: FunctionFacts, options: Any) -> None:
        self.op, self.cls, self.function = op, cls, function
        self.options = options  # the pass, which holds its options

    @cached_property
    def attrs(self) -> dict[str, Any]:
        """`attrs_of` the op, which may raise IRError."""
        return attrs_of(self.op)


@dataclass(frozen=True)
class Pattern:
    """A rewrite of one op.

    Attributes:
        counted: the statistic that counts the changes.
        ops: the classes of the ops, families included.
        rewrite: changes the op, or replaces it, and returns how many changes that were; None
            leaves the op to the next pattern. It erases no op that a pattern of the pass may yet
            be asked about, but the op itself and what is inside it.
    """

    counted: str
    ops: tuple[type[Op], ...]
    rewrite: Callable[[Match], int | None]


@dataclass(frozen=True)
class PatternPass(Pass):
    """Base of passes that ask each op, once, which of their patterns rewrites it.

    The first pattern that does not decline has the op. What patterns make is not asked.
    """

    counts_changes: ClassVar[bool] = True
    patterns: ClassVar[Sequence[Pattern]] = ()

    @staticmethod
    def order(func: ir.Operation, /) -> Iterator[ir.Operation]:
        """The ops of a function in the order in which they are asked."""
        return walk(func)

    def wants(self, match: Match) -> bool:
        """False for an op that is left as it is, whatever pattern matches it."""
        return True

    def run(self, module: ir.Module) -> None:
        matching = _MATCHING.get(type(self))
        if matching is None:
            matching = _MATCHING[type(self)] = _Matching(self.patterns)
        shared: dict[str, bool] = {}
        for func in functions(module):
            # Listed before anything changes: an op that is made or erased later is not met.
            sites = [(op, entry) for op in self.order(func) if (entry := matching[op.name])]
            if not sites:
                continue
            function = FunctionFacts(func, module, shared)
            for op, (cls, patterns) in sites:
                match = Match(op, cls, function, self)
                for pattern in patterns if self.wants(match) else ():
                    changes = pattern.rewrite(match)
                    if changes:
                        self.count(pattern.counted, changes)
                    if changes is not None:
                        break


class _Matching(dict[str, "tuple[type[Op], list[Pattern]] | None"]):
    """By name in IR: the class of an op and the patterns that name it, in order; None for none."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns

    def __missing__(self, name: str) -> tuple[type[Op], list[Pattern]] | None:
        cls = OPS.get(name)
        if cls is None:
            return None  # a class of this name may yet be declared
        patterns = [pattern for pattern in self._patterns if issubclass(cls, pattern.ops)]
        self[name] = (cls, patterns) if patterns else None
        return self[name]


_MATCHING: dict[type[PatternPass], _Matching] = {}
