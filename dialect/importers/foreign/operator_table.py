"""Tables of operators: one for each source, from an operator's name to the function that records it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from ...errors import TraceError
from .foreign_graph import ForeignBlock, ForeignNode

_Handler = TypeVar("_Handler", bound=Callable)


class OperatorTable:
    """The operators of one source that can be imported.

    Args:
        source: name of the system, for messages: ``"ATen"``.
        base: a table that this one extends: its handlers serve names that have none here.
        home: the module, and the name in it, of the table with all of its handlers: where a pickle of a function finds
            the table, which is code.

    Attributes:
        advice: what to do about operators that no graph can hold, by their names.

    The name of an overload, ``"add.Tensor"``, has a handler of its own, or that of the name in front of the dot; both
    are looked for here, then in the base. A handler takes the `NodeContext`, the operands and, by name, the attributes,
    all with traced values in the place of references; it returns the result, or a tuple of several.
    """

    def __init__(self, source: str, base: OperatorTable | None = None, *, home: tuple[str, str] | None = None) -> None:
        self.source, self._base, self._home = source, base, home
        self.advice: dict[str, str] = {}
        self._handlers: dict[str, Callable[..., Any]] = {}

    def register(self, *names: str) -> Callable[[_Handler], _Handler]:
        """Decorate the handler of the operators with these names; a name has one handler."""

        def add(handler: _Handler) -> _Handler:
            for name in names:
                if name in self._handlers:
                    raise ValueError(f"{self.source}'s operator {name} has a handler")
                self._handlers[name] = handler
            return handler

        return add

    def __reduce__(self) -> tuple:
        if self._home is None:
            raise TypeError(f"the table of {self.source}'s operators has no home where a pickle finds it")
        return _table_at, self._home

    def find(self, name: str) -> Callable[..., Any] | None:
        """The handler of an operator; None if there is none."""
        own = self._own(name)
        if own is not None or self._base is None:
            return own
        handler = self._base.find(name)
        return None if handler is None else self._inherited(handler)

    def _own(self, name: str) -> Callable[..., Any] | None:
        """The handler that this table itself has. Tables of names with more forms extend this."""
        handler = self._handlers.get(name)
        return self._handlers.get(name.partition(".")[0]) if handler is None else handler

    def _inherited(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """A handler of the base, as this table has it."""
        return handler

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter({**self._handlers, **dict.fromkeys(self._base or ())})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def handler(self, node: ForeignNode) -> Callable[..., Any]:
        """The handler of a node; raises TraceError, with the node's place, where there is none."""
        handler = self.find(node.op)
        if handler is None:
            raise TraceError(f"{self.source}'s operator {node.op} is not supported", loc=node.loc)
        return handler

    def with_rest(self, block: ForeignBlock, place: int) -> ForeignNode | None:
        """The branch at a place of a block with all of the block that is behind it, whose results are the block's.

        None = there is nothing behind it, or the source has no branches.
        """
        return None

    def missing(self, block: ForeignBlock) -> list[ForeignNode]:
        """The nodes, those of inner blocks included, whose operators have no handler."""
        return [node for node in block.walk() if self.find(node.op) is None]

    def check(self, block: ForeignBlock, source: str) -> None:
        """Raise one TraceError that names all operators of a graph that have no handler."""
        missing = self.missing(block)
        if missing:
            raise TraceError(
                f"{source} has operators that are not supported: {_counted(node.op for node in missing)}",
                loc=next((node.loc for node in missing if node.loc is not None), None),
                hint=next((self.advice[node.op] for node in missing if node.op in self.advice), None),
            )


def _table_at(module: str, name: str) -> OperatorTable:
    return getattr(import_module(module), name)


def _counted(names: Iterable[str]) -> str:
    """Names with their counts, the most frequent first: ``topk (3), unique``."""
    counts = Counter(names).most_common()
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in counts)
