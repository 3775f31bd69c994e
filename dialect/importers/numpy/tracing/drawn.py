"""What one trace has recorded of draws from random generators (see `world.draws`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....ir.symbolic import Sym

if TYPE_CHECKING:
    from ..world.draws import Draw
    from ..world.round_draws import RoundDraws


class Draws:
    """The draws of one trace.

    Attributes:
        are_taken: they are inputs of the graph; else they are refused.
        made: these, in the order of the program.
        has_drawn: there was one, also where it has failed.
        in_loops: what the rounds of loops draw, by the id of the bit generator.
        examples: what a draw might give, by the input of the graph that has its result.
        shapes: of these inputs, over the leaves.
        copies: these inputs, by what the function gets of them.
        arrays: captured arrays that draws read.
    """

    def __init__(self) -> None:
        self.are_taken = self.has_drawn = False
        self.made: list[Draw] = []
        self.in_loops: dict[int, RoundDraws] = {}
        self.examples: dict[int, Any] = {}
        self.shapes: dict[int, tuple[int | Sym, ...]] = {}
        self.copies: dict[int, int] = {}
        self.arrays: set[int] = set()

    def has(self, value: int) -> bool:
        """True if one of them has given a value of the graph."""
        return any(draw.value == value for draw in self.made)


__all__ = ["Draws"]
