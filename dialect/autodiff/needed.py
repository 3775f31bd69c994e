"""The recorded instructions that anything depends on; the rest is removed.

An instruction may be asked for what it computes, or for the shape of that alone, which may follow
from the shapes of what it reads. A loop carries what its results depend on, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..analysis.alias import SHAPED_LIKE
from ..ir.op import Fusion
from ..ir.program import Block, Instr
from ..ir.types import TensorType
from ..ops.control_flow.control import For, If
from ..ops.elementwise.families import Elementwise
from ..ops.indexing.additions import Adding
from ..ops.indexing.scatter import Scatter
from .rerun import values_read

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder


def contents_read(instr: Instr) -> Sequence[int]:
    """The operands of which an instruction reads more than the shape and the dtype."""
    if instr.op.fusion is Fusion.QUERY:
        return ()
    read = instr.operands[:1] if instr.op in SHAPED_LIKE else instr.operands
    return (*read, *values_read(*instr.blocks)) if instr.blocks else read


class Needed:
    """The values that some values depend on.

    Attributes:
        contents: those of which more than the shape matters.
        shapes: those of which the shape matters, at least.
    """

    def __init__(self, rec: Recorder, contents: Iterable[int]) -> None:
        self.rec = rec
        self.contents, self.shapes = set(contents), set[int]()

    def __contains__(self, value: int) -> bool:
        return value in self.contents or value in self.shapes

    def block(self, block: Block, removes: bool = True) -> None:
        """Find what is needed of a block, and remove what is not.

        What its instructions read from outside is among the values that are found.
        """
        kept = []
        for instr in reversed(block.instrs):
            if _has_effects(instr):
                self.contents.update((*instr.operands, *values_read(*instr.blocks)))
            elif any(r in self for r in instr.results):
                self._instr(instr, removes)
            else:
                continue
            kept.append(instr)
        if removes:
            block.instrs = kept[::-1]

    def _instr(self, instr: Instr, removes: bool) -> None:
        if instr.op is If:
            self.contents.update(instr.operands)
            for block in instr.blocks:
                self.contents.update(block.outputs)
                self.block(block, removes)
        elif instr.blocks:
            self.loop(instr, removes)
        elif _is_shaped_by_shapes(instr) and self.contents.isdisjoint(instr.results):
            for value in instr.operands:
                (self.shapes if self._is_floats(value) else self.contents).add(value)
        else:
            read = contents_read(instr)
            self.contents.update(read)
            self.shapes.update(v for v in instr.operands if v not in read)

    def _is_floats(self, value: int) -> bool:
        """False for what sizes or indices may be made of."""
        hint = self.rec.hints[value]
        return isinstance(hint, TensorType) and self.rec.dtype(value).kind in "fcV"

    def loop(self, instr: Instr, removes: bool = True) -> None:
        """Find what is needed of a loop some of whose results are; it carries no more."""
        kept = {k for k, r in enumerate(instr.results) if r in self}
        while True:
            inside = self._inside(instr, kept, False)
            more = {k for args in _carried(instr) for k, v in enumerate(args) if v in inside}
            if more <= kept:
                break
            kept |= more
        if removes:
            inside = self._inside(instr, kept, True)
            _keep(instr, kept)
        self.contents |= inside.contents
        self.shapes |= inside.shapes
        fixed = len(instr.operands) - len(instr.results)
        self.contents.update(instr.operands[:fixed])
        carried = instr.operands[fixed:]
        self.contents.update(carried if removes else (carried[k] for k in kept))

    def _inside(self, instr: Instr, kept: set[int], removes: bool) -> Needed:
        """The values that the blocks of a loop need where it carries some of its values on."""
        inside = Needed(self.rec, ())
        for block in reversed(instr.blocks):
            first = len(block.outputs) - len(instr.results)  # the condition comes before
            inside.contents.update(block.outputs[:first])
            inside.contents.update(block.outputs[first + k] for k in kept)
            inside.block(block, removes)
        return inside


def _is_shaped_by_shapes(instr: Instr) -> bool:
    """True if the shape of a result follows from shapes of operands, and from numbers."""
    shaped = (Elementwise, Scatter, Adding, *SHAPED_LIKE)
    return instr.op.fusion is Fusion.VIEW or issubclass(instr.op, shaped)


def _has_effects(instr: Instr) -> bool:
    every = (instr, *(inner for block in instr.blocks for inner in block.walk()))
    return any(not i.op.pure or i.op.writes for i in every)


def _carried(instr: Instr) -> list[tuple[int, ...]]:
    """The arguments of a loop's blocks that stand for what it carries."""
    first = 1 if instr.op is For else 0
    return [block.args[first:] for block in instr.blocks]


def _keep(instr: Instr, kept: set[int]) -> None:
    """Let a loop carry some of its values alone."""
    count = len(instr.results)

    def chosen(values: Sequence[int]) -> tuple[int, ...]:
        fixed = len(values) - count
        return (*values[:fixed], *(v for k, v in enumerate(values[fixed:]) if k in kept))

    instr.operands, instr.results = chosen(instr.operands), chosen(instr.results)
    for block in instr.blocks:
        block.args, block.outputs = chosen(block.args), chosen(block.outputs)
