"""The arrays that branches and loops may give: arrays from before these, views of them, or arrays that they make.

`Origins` follows a result to the array that owns its memory, as far as ops lead there. Where a branch or a loop gives
the result, contents decide which array that is. `Choices` finds all arrays that it may be, its *ways*; `choice_flags`
has the graph tell which one it is in a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations, product
from typing import Any, Protocol

from ...dialect.dataclass import dataclass
from ...dialect.errors import Loc, TraceError
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ops.control_flow.control import For, If
from ...dialect.ops.indexing.slicing import Pick

_MOST_WAYS = 16


@dataclass(eq=False)
class Way:
    """An array that a value may be.

    Attributes:
        root: an array from before all branches and loops, or from beside the value.
        viewed: the array of which this one is a view; None = it is the root.
        link: the instruction that takes the view.
        operand: which of its operands is what it views.
        is_endless: each round of a loop takes a view of the one before.
    """

    root: int
    viewed: Way | None = None
    link: Instr | None = None
    operand: int = 0
    is_endless: bool = False

    @property
    def links(self) -> list[tuple[Instr, int]]:
        """The instructions that lead from the root to the array, each with the operand that it views."""
        if self.viewed is None or self.link is None:
            return []
        return [*self.viewed.links, (self.link, self.operand)]


@dataclass(eq=False)
class Possible:
    """All that a value may be.

    Attributes:
        ways: arrays from before all branches and loops, and views of them.
        own: arrays that branches and loops make, by the values that have been the first to stand for them.
    """

    ways: dict[Way, None] = field(default_factory=dict)
    own: frozenset[int] = frozenset()


Ways = dict[int, list[Way]]  # of what branches and loops give


class Facts(Protocol):
    """What is known of the values of a trace: see `Origins`."""

    def is_number(self, value: int) -> bool: ...

    def rank(self, value: int) -> int | None: ...

    def is_array(self, value: int) -> bool:
        """True if an input is an array, also where it has no axes."""
        ...

    def taken(self, value: int, loc: Loc | None) -> Instr | None:
        """The instruction that takes the view of which a value is a copy; None = it is no such copy."""
        ...


class Choices:
    """What the results of branches and loops of a program may be.

    Args:
        program: the program.
        facts: what is known of its values.
        same: values outside of blocks that stand for others.

    Attributes:
        results: by the values that branches and loops outside of blocks give, all that they may be.
        inside: likewise by the values in blocks.
        links: by the views in blocks, the instructions that take them.
        outer: all values outside of blocks.
    """

    def __init__(self, program: Program, facts: Facts, same: Mapping[int, int]) -> None:
        self._facts, self._same = facts, same
        self.results: dict[int, Possible] = {}
        self.links: dict[int, Instr] = {}
        self.inside: dict[int, Possible] = {}
        self._inner: dict[int, frozenset[int]] = {}  # by the identity of instructions, the values in their blocks
        self._related: set[frozenset[int]] = set()  # names that may stand for one array
        self._known: dict[tuple[int, int], Way] = {}
        self.outer = {*program.inputs, *(v for instr in program.body.instrs for v in instr.results)}
        for instr in program.body.instrs:
            if instr.blocks:
                self._flow(instr)
                for value in instr.results:
                    if (possible := self.inside.pop(value, None)) is not None:
                        self.results[value] = possible

    def of(self, value: int) -> Possible:
        """All that a value may be."""
        if value not in self.outer:
            return self.inside.get(value, Possible())
        return Possible({self.itself(value): None})

    def itself(self, value: int) -> Way:
        """The way of a value that is this one."""
        value = self._same.get(value, value)
        return self._way((value, -1), value)

    def _way(self, key: tuple[int, int], *parts: Any) -> Way:
        if key not in self._known:
            self._known[key] = Way(*parts)
        return self._known[key]

    # --- what blocks give ---------------------------------------------------------------------

    def _run(self, block: Block) -> list[Possible]:
        """Find what the instructions of a block may give; returns what its outputs may be."""
        for instr in block.instrs:
            if instr.blocks:
                self._flow(instr)
                continue
            for number, value in enumerate(instr.results):
                if not self._facts.is_number(value):
                    self.inside[value] = self._of_op(instr, number, value)
        return [self.of(v) for v in block.outputs]

    def _of_op(self, instr: Instr, number: int, value: int) -> Possible:
        """All that a result of an instruction without blocks may be."""
        link, operand = self._facts.taken(value, instr.loc), 0
        if link is None:
            shared = instr.op.shared_operands(number, len(instr.operands))
            is_value = instr.op is Pick and not self._facts.rank(value)  # a NumPy scalar
            if len(shared) != 1 or is_value or self._facts.is_number(instr.operands[shared[0]]):
                return Possible({}, frozenset([value]))
            link, (operand,) = instr, shared
        array = self.of(link.operands[operand])
        if instr.op.writes:
            return array
        self.links[value] = link
        return Possible({self._extended(way, value, operand): None for way in array.ways}, array.own)

    def _extended(self, way: Way, value: int, operand: int) -> Way:
        """The way that leads on to a view."""
        link = self.links[value]
        if way.is_endless or any(link is other for other, _ in way.links):
            return self._way((way.root, -2), way.root, None, None, 0, True)
        return self._way((id(way), value), way.root, way, link, operand)

    def _flow(self, instr: Instr) -> None:
        """Find what a branch or a loop may give, of all that is outside of it."""
        inner = self._inner.get(id(instr))
        if inner is None:
            inner = self._inner[id(instr)] = frozenset(v for block in instr.blocks for v in values_of(block))
        if instr.op is If:
            for possible in [self._run(block) for block in instr.blocks]:
                self._join(instr.results, possible, inner)
            return
        is_for = instr.op is For
        inits = [self.of(v) for v in instr.operands[3 if is_for else 0 :]]
        first, last = instr.blocks[0], instr.blocks[-1]
        carried = first.args[1:] if is_for else first.args
        self._join(carried, inits, frozenset())
        while True:
            before = self._size()
            ends = self._run(first)
            if not is_for:
                self._join(last.args, ends := ends[1:], inner)
                ends = [self.of(v) for v in last.args]
                self._join(carried, self._run(last), inner)
            else:
                self._join(carried, ends, inner)
            if self._size() == before:
                break
        self._join(instr.results, [self.of(v) for v in carried] if is_for else ends, inner)

    def _join(self, values: Sequence[int], more: Sequence[Possible], inner: frozenset[int]) -> None:
        """Have values be what they may be now, or any of these.

        ``inner``: the values of a block that ends here. What it has made has the name of the value from now on.
        """
        for k, (value, possible) in enumerate(zip(values, more, strict=True)):
            if self._facts.is_number(value):
                continue
            have = self.inside.setdefault(value, Possible())
            own = possible.own - inner
            if own != possible.own:
                own |= {value}
            self.inside[value] = Possible(have.ways | possible.ways, have.own | own)
            for other, its in zip(values[:k], more[:k], strict=True):
                names, others = possible.own & inner, its.own & inner
                if not names.isdisjoint(others) or self._pairs(names, others):
                    self._related.add(frozenset((value, other)))

    def _size(self) -> int:
        """A number that grows with each array that some value may be."""
        return len(self._related) + sum(len(p.ways) + len(p.own) for p in self.inside.values())

    def _pairs(self, names: Iterable[int], others: Iterable[int]) -> set[frozenset[int]]:
        """The pairs of names, the first one of some and the second of others, that may stand for one array."""
        return {pair for pair in map(frozenset, product(names, others)) if pair in self._related}

    def may_share(self, a: int, b: int) -> bool:
        """True if two values may be, or be parts of, one array that a branch or a loop makes."""
        names, others = self.of(a).own, self.of(b).own
        return not names.isdisjoint(others) or bool(self._pairs(names, others))

    # --- which of these have to be told apart -------------------------------------------------

    def ways(self, roots: Sequence[int], root_of: Callable[[int], int], inputs: Collection[int]) -> Ways:
        """The ways that a call has to tell apart, by what branches and loops give.

        These are arrays of the caller's, and those of which another result is a part, too. Raises TraceError where
        a graph cannot tell them apart.

        Args:
            roots: the arrays to which the results of the program belong.
            root_of: gives the array to which a value outside of blocks belongs.
            inputs: those of the program.
        """
        bases: dict[int, frozenset[int]] = {}

        def bases_of(value: int) -> frozenset[int]:
            root = root_of(value)
            if root not in bases:
                ways = self.results[root].ways if root in self.results else ()
                bases[root] = frozenset([root]).union(*(bases_of(way.root) for way in ways))
            return bases[root]

        reached = [bases_of(root) for root in roots]
        twins = {p for some, others in combinations(reached, 2) for p in self._pairs(some, others)}
        counts = Counter(base for some in reached for base in some)
        needed = {base for base, count in counts.items() if count > 1 or base in inputs}
        needed = needed.union(*twins)
        ways: Ways = {}
        for value in sorted(self.results.keys() & {base for some in reached for base in some}):
            apart = [way for way in self.results[value].ways if not needed.isdisjoint(bases_of(way.root))]
            apart += [self.itself(min(pair)) for pair in twins if max(pair) == value]
            if self._facts.rank(value) == 0:  # a number, but for an array of the caller's
                apart = [way for way in apart if way.link is None and self._facts.is_array(way.root)]
            if not apart:
                continue
            if len(apart) > _MOST_WAYS or any(way.is_endless for way in apart):
                raise TraceError(
                    "contents decide of which view of an array a result is a view in turn",
                    hint="return a copy of it: y.copy()",
                )
            ways[value] = apart
        return ways


def values_of(block: Block) -> Iterator[int]:
    """The values of a block and of those in it, in order: results of an instruction behind what its blocks have."""
    yield from block.args
    for instr in block.instrs:
        for inner in instr.blocks:
            yield from values_of(inner)
        yield from instr.results
