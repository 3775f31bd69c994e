"""Derivatives as functions return them: in memory that nothing else has, so that a caller may write to them.

Rules of ops share what they can: the gradients of both operands of a sum are one array, that of a view is a view, and
that of a sum over axes is a number, broadcast. What is written to one of these would be seen in the others. And a
pullback reads what its function has computed: that, too, may be written to before it is called.
"""

from __future__ import annotations

from typing import Any

from ..importers.numpy.tracing.current import trace_error
from ..importers.numpy.tracing.mutation import is_immutable, memory_of
from ..importers.numpy.tracing.operators import op, wrap
from ..importers.numpy.tracing.recorder import Recorder
from ..importers.numpy.tracing.traced import Traced
from ..ir.op import op_named
from ..ir.program import Block, Instr
from ..ir.types import TensorType
from ..ops.create import Constant
from ..ops.gradient_ops import SumTo
from ..trees.pytree import flatten, unflatten
from .rerun import values_read


def in_own_memory(rec: Recorder, tree: Any, since: int) -> Any:
    """A tree of derivatives, each array in memory of its own: copies of those of which that is not known.

    ``since``: the count of values before any of them was computed; what was there before is somebody's already.
    A copy of what nobody else reads costs nothing, as it is no part of the compiled graph.
    """
    if rec.evaluates:
        return tree
    leaves, structure = flatten(tree)
    taken: set[int] = set()
    return unflatten(structure, [_own(rec, leaf, since, taken) for leaf in leaves])


def _own(rec: Recorder, leaf: Any, since: int, taken: set[int]) -> Any:
    """A leaf, or a copy of it; ``taken``: the arrays that leaves before it are."""
    if not isinstance(leaf, Traced) or is_immutable(leaf):
        return leaf
    array = leaf.value
    while (maker := rec.defs.get(array)) is not None and maker.op is SumTo:
        array = maker.operands[0]  # which it is, where nothing is summed
    is_new = array >= since and maker is not None and not (maker.op.aliases or maker.blocks or maker.op is Constant)
    if not is_new or array in taken:
        return op("copy", leaf)
    taken.add(array)
    return leaf


class End:
    """The place in a trace where a function has ended of which there is a pullback.

    What the pullback reads is copied there, if it may be written to before the pullback is called.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec, self._block, self._count = rec, rec.blocks[-1], rec.program.count
        self._last = self._block.instrs[-1] if self._block.instrs else None

    def keep(self, reverse: Block, gradients: Any) -> Any:
        """Have a pullback, a block that is called at this point of the trace, read what was there at the end.

        Returns the tree of its gradients, which may be what was there.
        """
        leaves, tree = flatten(gradients)
        reverse.outputs = tuple([leaf.value for leaf in leaves if isinstance(leaf, Traced)])
        self._copy(reverse)
        outputs = iter(reverse.outputs)
        values = [next(outputs) if isinstance(leaf, Traced) else None for leaf in leaves]
        pairs = zip(leaves, values, strict=True)
        return unflatten(tree, [x if v is None or v == x.value else wrap(self._rec, v) for x, v in pairs])

    def _copy(self, reverse: Block) -> None:
        """Have a block read copies, made at the end, of what is written to afterwards."""
        rec, block = self._rec, self._block
        place = next((k + 1 for k, instr in enumerate(block.instrs) if instr is self._last), 0)
        read = [v for v in values_read(reverse) if v < self._count and isinstance(rec.hints[v], TensorType)]
        if rec.blocks[-1] is block:
            since = Block(instrs=block.instrs[place:])
            written = {memory_of(rec, instr.operands[0]) for instr in since.walk() if instr.op.writes}
            read = [v for v in read if memory_of(rec, v) in written]
        # Else it is called in a branch or a loop, and a later round may follow a write.
        if not read:
            return
        if not any(block is outer for outer in rec.blocks):
            raise trace_error("a pullback is called outside of the branch or the loop in which it was made")
        copies = {v: rec.new_value(rec.hints[v], home=block) for v in read}
        reverse.replace(copies)
        block.instrs[place:place] = [Instr(op_named("copy"), (v,), (copy,)) for v, copy in copies.items()]
