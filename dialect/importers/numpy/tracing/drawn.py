"""The draws from random generators that one trace has recorded (see `world.draws`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ....ir.program import Block
from ....ir.symbolic import Sym

if TYPE_CHECKING:
    from ..world.draws import Draw
    from ..world.round_draws import RoundDraws


class Draws:
    """The draws of one trace.

    Attributes:
        are_taken: they are inputs of the graph; else they are refused.
        are_refused: those from the user's generators are, whatever the graph takes.
        made: these, in the order of the program.
        has_drawn: there was one, also where it has failed.
        in_loops: what the rounds of loops draw, by the id of the bit generator.
        examples: what a draw might give, by the input of the graph that has its result.
        shapes: of these inputs, over the leaves.
        copies: these inputs, by what the function gets of them.
        arrays: captured arrays that draws read.
        joining: the open blocks that join the one around them, so that what they draw is drawn once for each run of
            that: of functions that are differentiated, or have a gradient of their own.
    """

    def __init__(self) -> None:
        self.are_taken = self.are_refused = self.has_drawn = False
        self.made: list[Draw] = []
        self.in_loops: dict[int, RoundDraws] = {}
        self.examples: dict[int, Any] = {}
        self.shapes: dict[int, tuple[int | Sym, ...]] = {}
        self.copies: dict[int, int] = {}
        self.arrays: set[int] = set()
        self.joining: list[Block] = []

    @contextmanager
    def once(self, block: Block) -> Iterator[None]:
        """Record a block that will join the one around it."""
        self.joining.append(block)
        try:
            yield
        finally:
            self.joining.pop()

    def repeating(self, blocks: Sequence[Block]) -> int:
        """How many of these open blocks, of which the first is the body of the graph, may run more often, or never."""
        joining = {id(block) for block in self.joining}
        return sum(id(block) not in joining for block in blocks[1:])

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Refuse what is drawn from the user's generators: what is recorded is recorded once more."""
        before, self.are_refused = self.are_refused, True
        try:
            yield
        finally:
            self.are_refused = before

    def has(self, value: int) -> bool:
        """True if one of them has given a value of the graph."""
        return any(draw.value == value for draw in self.made)
