"""Lists of tensors: made, taken apart, grown in place (R1.24, R1.26).

A list has an identity: two lists of the same tensors are two lists once one of them grows. So no
op here is pure; `lower-lists` and `remove-list-mutation` make them disappear. As to memory, a list
is a view of its tensors; growing it writes none of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.op import EVERY, Attrs, Op, bare, operand, result
from ...ir.types import ListType, Type


class ListConstruct(Op, name="list_construct"):
    """A new list of these tensors."""

    items = operand(variadic=True)
    out = result()
    pure = False
    undifferentiable = "`lower-lists` and `remove-list-mutation` take lists apart first"

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (ListType(),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return list(args)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        for index, type_ in enumerate(types):
            if isinstance(type_, ListType):
                yield f"operand {index} is a list; lists hold tensors"


class _OfList(Op):
    """Family of ops whose first operand is a list."""

    list = operand()
    pure = False
    undifferentiable = "`lower-lists` and `remove-list-mutation` take lists apart first"

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], ListType):
            yield f"operand 0 must be a list, not {types[0]}"


class ListUnpack(_OfList, name="list_unpack"):
    """The tensors of a list, one result each. Running it raises ShapeError for another number."""

    items = result(variadic=True)
    aliases = {EVERY: 0}

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()  # how many results there are is for the IR to say

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return bare(tuple(args[0]))


class ListAppend(_OfList, name="list_append"):
    """Add a tensor to the end of a list, in place."""

    item = operand()

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        args[0].append(args[1])
        return ()
