"""Rounds at the edges of an innermost loop, apart from those in the middle.

What a loop asks of its index, such as whether ``i - 1`` counts from the end, ``i + 1`` is still on
the axis, or ``j + 1 < n``, has one answer for all rounds but the first or the last ones. The loop
becomes three in a row, of which the one in the middle does not ask: its reads lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit, int_type
from .sharing.linear import constant_of, linear
from .temporaries import LOOP

_MOST = 120  # operations of a loop that may stand there three times
_FEW = 4  # rounds at an edge that is known
_NEAR, _FAR = 2**40, 2**62  # no index is as far away; what it is compared with may be
_SLT, _SLE, _SGT, _SGE, _ULT = 2, 3, 4, 5, 6  # of the predicates of ``arith.cmpi``
_KEPT = ("scf.for", "scf.while", "memref.alloc", "memref.alloca")
_SWAPPED = {_SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}


@dataclass(eq=False)
class _Question:
    """A comparison of an index, plus ``ahead``, with what does not change in the loop.

    Attributes:
        test: the operation.
        bound: what the index is compared with.
        ahead: what is added to the index before.
        since: the answer changes with the first round in which index + ahead is bound + since.
        middle: the answer in the middle.
        is_first: whether the rounds with the other answer are the first ones.
    """

    test: ir.Operation
    bound: ir.Value
    ahead: int
    since: int
    middle: bool
    is_first: bool


def set_edges_apart(func: ir.Operation) -> bool:
    """Split the innermost loops of a function that ask for their edges; False: there are none."""
    found = False
    for loop in [op for op in walk(func) if op.name == "scf.for"]:
        inner = list(walk(loop))
        if LOOP in loop.attributes or len(inner) > _MOST or any(op.name in _KEPT for op in inner):
            continue
        if constant_of(loop.operands[2]) != 1:
            continue
        questions = [q for op in inner if op.name == "arith.cmpi" for q in _asked(op, loop)]
        if questions:
            _split(loop, inner, questions)
            found = True
    return found


def _asked(test: ir.Operation, loop: ir.Operation) -> Iterator[_Question]:
    """What a comparison asks of the index of a loop, if few rounds have another answer."""
    predicate = ir.IntegerAttr(test.attributes["predicate"]).value
    index, bound = test.operands
    ahead = _ahead(index, loop)
    if ahead is None:
        index, bound = bound, index
        ahead, predicate = _ahead(index, loop), _SWAPPED.get(predicate, -1)
    if ahead is None or is_inside(bound, loop):
        return
    number = constant_of(bound)
    if predicate == _ULT:
        if number is not None and number >= 0:
            yield _Question(test, bound, ahead, -number, True, is_first=True)
            yield _Question(test, bound, ahead, 0, True, is_first=False)
        return
    if predicate not in _SWAPPED:
        return
    since = 1 if predicate in (_SLE, _SGT) else 0
    is_first = False
    if number is not None:
        begin, end = constant_of(loop.operands[0]), constant_of(loop.operands[1])
        turn = number + since - ahead
        is_first = turn - (begin or 0) <= _FEW
        if not is_first and end is not None and end - turn > _FEW:
            return
    yield _Question(test, bound, ahead, since, (predicate >= _SGT) == is_first, is_first)


def _split(
    loop: ir.Operation, inner: Sequence[ir.Operation], questions: Sequence[_Question]
) -> None:
    index = loop.operands[0].type
    low, high = loop.operands[0], loop.operands[1]
    begin, end = low, high
    with ir.InsertionPoint(loop), loop.location:
        for question in questions:
            at = _turn(question, index)
            if question.is_first:
                begin = emit("arith.maxsi", index, begin, at)
            else:
                end = emit("arith.minsi", index, end, at)
        begin = low if begin == low else emit("arith.minsi", index, begin, high)
        end = high if end == high else emit("arith.maxsi", index, end, begin)
        only = len(questions) == 1  # whose answer is known on both sides
        carried = list(loop.operands)[3:]
        for one, other in ((low, begin), (begin, end), (end, high)):
            if one == other:
                continue
            copy = loop.clone()
            for place, value in enumerate((one, other, loop.operands[2], *carried)):
                copy.operands[place] = value
            is_middle = one == begin and other == end
            if is_middle or only:
                _answer(copy, inner, questions, is_middle)
            carried = list(copy.results)
    for old, new in zip(list(loop.results), carried, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _answer(
    copy: ir.Operation, inner: Sequence[ir.Operation], questions: Sequence[_Question],
    is_middle: bool,
) -> None:  # fmt: skip
    """Put the answers of the middle, or the opposite ones, into a copy of a loop."""
    places = {op: place for place, op in enumerate(inner)}
    copied = list(walk(copy))
    for question in questions:
        test, truth = copied[places[question.test]], question.middle == is_middle
        with ir.InsertionPoint(test):
            value = ir.IntegerAttr.get(int_type(1), int(truth))
            known = emit("arith.constant", int_type(1), value=value)
        test.results[0].replace_all_uses_with(known)


def _turn(question: _Question, index: ir.Type) -> ir.Value:
    """The first index with another answer than the one before."""
    number = constant_of(question.bound)
    if number is not None:
        place = number + question.since - question.ahead
        return emit("arith.constant", index, value=ir.IntegerAttr.get(index, place))
    bound = question.bound
    if bound.type != index:
        bound = emit("arith.index_cast", index, bound)
    for name, limit in (("arith.maxsi", -_FAR), ("arith.minsi", _FAR)):
        far = emit("arith.constant", index, value=ir.IntegerAttr.get(index, limit))
        bound = emit(name, index, bound, far)
    by = ir.IntegerAttr.get(index, question.since - question.ahead)
    return emit("arith.addi", index, bound, emit("arith.constant", index, value=by))


def _ahead(value: ir.Value, loop: ir.Operation) -> int | None:
    """The known number by which a value differs from the index of a loop."""
    found = linear(value)
    index = loop.regions[0].blocks[0].arguments[0]
    is_near = dict(found.terms) == {index: 1} and abs(found.const) < _NEAR
    return found.const if is_near else None


__all__ = ["set_edges_apart"]
