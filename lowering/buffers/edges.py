"""Rounds at the edges of an innermost loop, apart from those in the middle.

What a loop asks of its index, such as whether ``i - 1`` counts from the end, ``i + 1`` is still on
the axis, or ``j + 1 < n``, has one answer for all rounds but the first or the last ones. The loop
becomes three in a row, of which the one in the middle does not ask: its reads lie side by side.
Places that count down, or from a number that is known before the loop (``c - w``), are on their
axis in the middle, too; if that number is far away, the loop has no middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit, int_type
from .sharing.linear import Linear, constant_of, linear
from .temporaries import LOOP

_MOST = 120  # operations of a loop that may stand there three times
_FEW = 4  # rounds at an edge that is known
_NEAR, _FAR = 2**40, 2**62  # no index is as far away; what it is compared with may be
_SLT, _SLE, _SGT, _SGE, _ULT = 2, 3, 4, 5, 6  # of the predicates of ``arith.cmpi``
_KEPT = ("scf.for", "scf.while", "memref.alloc", "memref.alloca")
_SWAPPED = {_SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}


@dataclass(eq=False)
class _Place:
    """``rest`` plus the index, or less the index if it ``falls``."""

    rest: Linear
    falls: bool

    @property
    def ahead(self) -> int | None:
        """The number by which a growing index is increased, if it is known and small."""
        is_known = not self.falls and not self.rest.terms and abs(self.rest.const) < _NEAR
        return self.rest.const if is_known else None


@dataclass(eq=False)
class _Question:
    """A comparison of a place, which follows from the index, with what does not change in the loop.

    Attributes:
        test: the operation.
        bound: what the place is compared with; None = 0.
        place: the index, or what is left if it is taken away, and what is added.
        since: the answer changes where the place passes from below bound + since to that number.
        middle: the answer in the middle.
        is_first: whether the rounds with the other answer are the first ones.
    """

    test: ir.Operation
    bound: ir.Value | None
    place: _Place
    since: int
    middle: bool
    is_first: bool


def set_edges_apart(func: ir.Operation) -> bool:
    """Split the innermost loops of a function that ask for their edges; False: there are none."""
    changed = False
    for loop in [op for op in walk(func) if op.name == "scf.for"]:
        inner = list(walk(loop))
        if LOOP in loop.attributes or len(inner) > _MOST or any(op.name in _KEPT for op in inner):
            continue
        if constant_of(loop.operands[2]) != 1:
            continue
        questions = _questions(inner, loop)
        if questions:
            _split(loop, inner, questions)
            changed = True
    return changed


def _questions(inner: Sequence[ir.Operation], loop: ir.Operation) -> list[_Question]:
    """The questions that rounds in the middle of a loop ask, and those that need not be asked there."""
    questions: list[_Question] = []
    answers: dict[ir.Operation, bool] = {}
    for op in inner:
        if op.name == "arith.cmpi" and _is_reached(op, loop, answers):
            new = list(_asked(op, loop))
            questions += new
            answers.update((q.test, q.middle) for q in new)
    return questions


def _is_reached(op: ir.Operation, loop: ir.Operation, answers: Mapping[ir.Operation, bool]) -> bool:
    """True if rounds with these answers come to an operation, as far as branches tell."""
    while op != loop:
        block, op = op.block, op.parent.operation
        if op.name == "scf.if" and not isinstance(op.operands[0], ir.BlockArgument):
            answer = answers.get(op.operands[0].owner.operation)
            if answer is not None and block not in list(op.regions[0 if answer else 1].blocks):
                return False
    return True


def _asked(test: ir.Operation, loop: ir.Operation) -> Iterator[_Question]:
    """The questions that a comparison asks of the index of a loop, if few rounds have another answer."""
    predicate = ir.IntegerAttr(test.attributes["predicate"]).value
    index, bound = test.operands
    place = _place(index, loop)
    if predicate == _ULT:
        number = constant_of(bound)
        if place is None or is_inside(bound, loop) or (number is not None and number < 0):
            return
        # A place that falls leaves the axis at its start, and comes from behind its end.
        yield _Question(test, None, place, 0, True, is_first=not place.falls)
        yield _Question(test, bound, place, 0, True, is_first=place.falls)
        return
    if place is None or place.ahead is None:
        index, bound = bound, index
        place, predicate = _place(index, loop), _SWAPPED.get(predicate, -1)
    if place is None or place.ahead is None or is_inside(bound, loop):
        return
    if predicate not in _SWAPPED:
        return
    since = 1 if predicate in (_SLE, _SGT) else 0
    is_first = False
    number = constant_of(bound)
    if number is not None:
        begin, end = constant_of(loop.operands[0]), constant_of(loop.operands[1])
        turn = number + since - place.ahead
        is_first = turn - (begin or 0) <= _FEW
        if not is_first and end is not None and end - turn > _FEW:
            return
    yield _Question(test, bound, place, since, (predicate >= _SGT) == is_first, is_first)


def _split(loop: ir.Operation, inner: Sequence[ir.Operation], questions: Sequence[_Question]) -> None:
    index = loop.operands[0].type
    low, high = loop.operands[0], loop.operands[1]
    begin, end = low, high
    with ir.InsertionPoint(loop), loop.location:
        near: list[ir.Value] = []
        for question in questions:
            at = _turn(question, index, near)
            if question.is_first:
                begin = emit("arith.maxsi", index, begin, at)
            else:
                end = emit("arith.minsi", index, end, at)
        for is_near in near:
            begin = emit("arith.select", index, is_near, begin, high)
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


def _answer(copy: ir.Operation, inner: Sequence[ir.Operation], questions: Sequence[_Question], is_middle: bool) -> None:
    """Put the answers of the middle, or the opposite ones, into a copy of a loop."""
    places = {op: place for place, op in enumerate(inner)}
    copied = list(walk(copy))
    for question in questions:
        test, truth = copied[places[question.test]], question.middle == is_middle
        with ir.InsertionPoint(test):
            value = ir.IntegerAttr.get(int_type(1), int(truth))
            answer = emit("arith.constant", int_type(1), value=value)
        test.results[0].replace_all_uses_with(answer)


def _turn(question: _Question, index: ir.Type, near: list[ir.Value]) -> ir.Value:
    """The first index with another answer than the one before, if all of ``near`` are true."""
    place = question.place
    limit = _limit(question, index, near)
    if place.ahead is not None:
        if isinstance(limit, int):
            return _number(limit - place.ahead, index)
        return emit("arith.addi", index, limit, _number(-place.ahead, index))
    rest = _sum(place.rest, index)
    shifted = emit("arith.addi", index, rest, _number(_FAR // 2, index))
    near.append(_is_below(shifted, _FAR))
    if isinstance(limit, int):
        limit = _number(limit, index)
    if not place.falls:
        return emit("arith.subi", index, limit, rest)
    return emit("arith.addi", index, emit("arith.subi", index, rest, limit), _number(1, index))


def _limit(question: _Question, index: ir.Type, near: list[ir.Value]) -> ir.Value | int:
    """The place from which on the answer is another one."""
    bound = question.bound
    number = 0 if bound is None else constant_of(bound)
    if number is not None:
        return number + question.since
    assert bound is not None
    if bound.type != index:
        bound = emit("arith.index_cast", index, bound)
    if question.test.attributes["predicate"] == _predicate(_ULT):
        near.append(_is_below(bound, _FAR))
    else:
        for name, limit in (("arith.maxsi", -_FAR), ("arith.minsi", _FAR)):
            bound = emit(name, index, bound, _number(limit, index))
    return emit("arith.addi", index, bound, _number(question.since, index))


def _is_below(value: ir.Value, number: int) -> ir.Value:
    """True where a value is at least 0, and below a number."""
    limit = _number(number, value.type)
    return emit("arith.cmpi", int_type(1), value, limit, predicate=_predicate(_ULT))


def _sum(rest: Linear, index: ir.Type) -> ir.Value:
    """The value of an expression, modulo 2 to the power of 64."""
    total = _number(rest.const, index)
    for value, factor in rest.terms.items():
        if value.type != index:
            value = emit("arith.index_cast", index, value)
        if factor != 1:
            value = emit("arith.muli", index, value, _number(factor, index))
        total = emit("arith.addi", index, total, value)
    return total


def _number(value: int, index: ir.Type) -> ir.Value:
    return emit("arith.constant", index, value=ir.IntegerAttr.get(index, value))


def _predicate(number: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(int_type(64), number)


def _place(value: ir.Value, loop: ir.Operation) -> _Place | None:
    """A value as a place that follows from the index of a loop by steps of one."""
    expression = linear(value)
    index = loop.regions[0].blocks[0].arguments[0]
    factor = expression.factor(index)
    rest = expression.plus(Linear({index: 1}), -factor)
    if abs(factor) != 1 or any(is_inside(v, loop) for v in rest.terms):
        return None
    if any(abs(number) > _FAR for number in (rest.const, *rest.terms.values())):
        return None
    return _Place(rest, factor < 0)
