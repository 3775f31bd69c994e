"""``prim::If``: the branch that is known while tracing, or both, recorded; exceptions of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import ModelError, TraceError
from ....ir.program import Block
from ....ir.types import ScalarType, TensorType, Type
from ...numpy.source.branches import emit_if
from ...numpy.source.exits import Exits
from ...numpy.source.source import ConvertedSource
from ...numpy.tracing.current import current, trace_error
from ...numpy.tracing.operators import Recording, as_value, op
from ...numpy.tracing.recorder import Recorder
from ...numpy.tracing.traced_control import join_hints, truth
from ..foreign_graph import ForeignBlock
from ..interpreter import Divided, NodeContext
from .carried_structures import UNINITIALIZED, built, joined
from .script_table import script


class _Branch:
    """A branch that is being recorded, among the open statements."""

    is_loop = False


def is_open(value: Any) -> bool:
    """True for a traced value whose truth only a run tells."""
    return isinstance(value, Recording) and value.is_open


@script("prim::If")
def branches(call: NodeContext, condition: Any) -> Any:
    """The results of one branch, or of both."""
    if not is_open(condition):
        return _results(call, call.run_block(0 if condition else 1))
    for number, block in enumerate(call.node.blocks):
        if _raises(block):
            return _leaving(call, condition, number)
    rec = current()
    assert rec is not None
    return _results(call, _OpenBranch(call, rec, condition).run())


class _OpenBranch:
    """A branch both ways of which are recorded.

    Args:
        call: the node.
        rec: the trace.
        condition: which only a run tells.
    """

    def __init__(self, call: NodeContext, rec: Recorder, condition: Any) -> None:
        self._call, self._rec, self._condition = call, rec, condition

    def run(self) -> tuple[Any, ...]:
        """What the node gives; raises Divided where its ways have no values in common."""
        interpreter, rec = self._call.interpreter, self._rec
        mark, statements = rec.mark(), list(interpreter.statements)
        held = exits_of(rec, self._call.node.blocks)
        before = dict(held)
        blocks, outputs = (Block(), Block()), []
        chosen = truth(rec, self._condition)
        statement = _Branch()
        interpreter.statements.append(statement)
        for number, recorded in enumerate(blocks):
            held.update(before)
            with rec.nested(recorded), interpreter.assuming(self._condition, number == 0):
                outputs.append((*self._call.run_block(number), *held.values()))
        interpreter.statements.remove(statement)
        try:
            behind = self._joined(chosen, blocks, outputs)
        except TraceError as error:
            held.clear()
            held.update(before)
            interpreter.statements[:] = statements
            if any(statement.is_loop for statement in statements):
                raise
            rec.reset(mark)
            raise Divided(error.what, loc=error.loc, hint=error.hint) from None
        count = len(behind) - len(held)
        held.update(zip(held, behind[count:], strict=True))
        return tuple(behind[:count])

    def _joined(self, chosen: int, blocks: tuple[Block, Block], outputs: list[tuple[Any, ...]]) -> list[Any]:
        """The values behind both ways."""
        rec = self._rec
        leaves: list[tuple[Any, ...]] = []
        structures = [joined(sides, leaves, keeps=True) for sides in zip(*outputs, strict=True)]
        values, hints = [], []
        for pair in leaves:
            if not (_is_truth(pair) or _is_same(pair)):
                sides, hint = _values(rec, blocks, pair)
                values.append(sides)
                hints.append(hint)
        columns = [[sides[k] for sides in values] for k in range(2)]
        results = iter(emit_if(rec, chosen, blocks, columns, hints))
        parts = []
        for pair in leaves:
            if _is_truth(pair):
                parts.append(self._condition if pair[0] else op("logical_not", self._condition))
            else:
                parts.append(pair[0] if _is_same(pair) else next(results))
        return [built(structure, parts) for structure in structures]


def _is_truth(pair: tuple[Any, ...]) -> bool:
    """True for values of the two ways that say which one is taken: further branches know that they do."""
    return all(type(leaf) is bool for leaf in pair) and pair[0] is not pair[1]


def _is_same(pair: tuple[Any, ...]) -> bool:
    """True for one number on both ways, such as that a loop goes on."""
    return type(pair[0]) in (bool, int) and type(pair[0]) is type(pair[1]) and pair[0] == pair[1]


def _values(rec: Recorder, blocks: tuple[Block, Block], pair: tuple[Any, ...]) -> tuple[list[int], Type]:
    """A leaf's value in either branch, and the type of the result."""
    values: list[Any] = [None, None]
    for k, leaf in enumerate(pair):
        if leaf is not UNINITIALIZED:
            with rec.nested(blocks[k]):
                values[k] = as_value(rec, leaf)
                rec.check_visible(values[k])
    for k, leaf in enumerate(pair):
        if leaf is UNINITIALIZED:
            with rec.nested(blocks[k]):
                values[k] = as_value(rec, any_of(rec.hints[values[1 - k]]))
    hint = join_hints(rec.hints[values[0]], rec.hints[values[1]])
    if hint is None:
        shown = " and ".join(_shown(rec.hints[value]) for value in values)
        raise trace_error(f"a tensor is {shown}, which only a run decides", "convert it on one of the ways")
    return values, hint


def any_of(hint: Type) -> Any:
    """A value of a type, for what is not read."""
    if isinstance(hint, TensorType) and hint.dtype is not None and hint.shape is not None:
        return np.zeros(tuple(size or 1 for size in hint.shape), hint.dtype.numpy)
    assert isinstance(hint, ScalarType)
    return hint.dtype.numpy.type(0).item()


def _shown(hint: Type) -> str:
    rank = len(hint.shape) if isinstance(hint, TensorType) and hint.shape is not None else 0
    return f"of {getattr(hint, 'dtype', None)} with {rank} axes"


def _results(call: NodeContext, outputs: tuple[Any, ...]) -> Any:
    return outputs[0] if len(call.node.results) == 1 else outputs


# --- exceptions of the model --------------------------------------------------------------------


def exits_of(rec: Recorder, blocks: tuple[ForeignBlock, ...]) -> dict[str, Any]:
    """What says that no exit has been taken, which a statement with these blocks carries."""
    if any(node.op == "prim::RaiseException" for block in blocks for node in block.walk()):
        _exits(rec).begin()
    return {} if rec.source is None else rec.source.exits.held


def _exits(rec: Recorder) -> Exits:
    if rec.source is None:
        if rec.policy is None:
            raise trace_error("the model raises an exception if contents of tensors say so, and loops are not recorded")
        rec.source = ConvertedSource(rec)
    return rec.source.exits


def _raises(block: ForeignBlock) -> bool:
    return any(node.op == "prim::RaiseException" for node in block.nodes)


@script("prim::RaiseException")
def raise_exception(call: NodeContext, message: Any, kind: Any = None) -> Any:
    """Raise the model's exception, which it raises for all arguments of these types."""
    raise ModelError(f"the model raises {_exception(message, kind)}", loc=call.node.loc)


def _exception(message: Any, kind: Any) -> str:
    name = str(kind).rpartition(".")[2] if kind else "Exception"
    return f"{name}: {message}"


def _leaving(call: NodeContext, condition: Any, number: int) -> Any:
    """The results of the branch that does not raise; runs that take the other one are void."""
    rec = current()
    assert rec is not None
    message = _message(call, rec, number)
    holds = op("logical_not", condition) if number == 0 else condition
    _exits(rec).leave_unless(holds, len(rec.blocks), message)
    return _results(call, call.run_block(1 - number))


def _message(call: NodeContext, rec: Recorder, number: int) -> str:
    """The message of the branch that raises, which is recorded for that and dropped."""
    with rec.nested(Block()):
        try:
            call.run_block(number)
        except ModelError as error:
            return error.what
    raise trace_error("a branch raises an exception on some of its ways only")
