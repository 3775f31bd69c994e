"""Lists and dictionaries of TorchScript while a graph is interpreted: their identity is theirs, as in Python.

What is recorded of a branch or of a loop's rounds is recorded once: a container from outside of it
does not change there, but for lists to which rounds append (`GrowingList`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....errors import TraceError
from ....ir.program import Block
from ...numpy.source.growing import GrowingList
from ...numpy.tracing.current import current, trace_error


class Appended(TraceError):
    """A recorded statement appends to a list from outside of it.

    Attributes:
        grown: the list.
    """

    def __init__(self, grown: ScriptList) -> None:
        super().__init__(
            "a list from outside of a branch or loop whose rounds are recorded as one grows in it",
            hint="give the loop a fixed number of rounds, or compute a tensor instead of a list",
        )
        self.grown = grown


class _Container:
    """A container that knows where it was made.

    Attributes:
        is_joined: it stands for one of several, of which other names may know.
    """

    def __init__(self) -> None:
        self.is_joined = False
        rec = current()
        self._home = rec.blocks[-1] if rec is not None else None

    def is_of(self, block: Block) -> bool:
        """True if it was made in this block."""
        return self._home is block

    @property
    def _is_at_home(self) -> bool:
        rec = current()
        return rec is None or rec.blocks[-1] is self._home

    def change(self) -> None:
        """Note that the contents change; raises TraceError where a recorded statement does it."""
        if self.is_joined:
            raise trace_error("a list or dictionary is changed that comes from one of several ways", "copy it first")
        if not self._is_at_home:
            raise trace_error("a list or dictionary from outside of a recorded branch or loop is changed in it")


class ScriptList(_Container):
    """A list.

    Attributes:
        items: what it holds.
        growing: stands for ``items`` in and behind a recorded loop that appends to the list; else None.
    """

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self.items = list(items)
        self.growing: GrowingList | None = None

    def append(self, value: Any) -> None:
        """Add an element; raises `Appended` where only a loop can do so that knows of it."""
        if self.growing is not None:
            self.growing.append(value)
        elif self._is_at_home:
            self.change()
            self.items.append(value)
        else:
            raise Appended(self)

    def known(self) -> list[Any]:
        """The elements; raises TraceError for a list whose length a run decides."""
        if self.growing is not None:
            raise trace_error("a list to which the rounds of a recorded loop append is used in another way")
        return self.items

    def __len__(self) -> int:
        return len(self.known())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.known())


class ScriptDict(_Container):
    """A dictionary.

    Attributes:
        items: what it holds.
    """

    def __init__(self, items: Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__()
        self.items = dict(items)


def plain(value: Any) -> Any:
    """A value as handlers of ATen take it, and as results are: with tuples in the place of lists."""
    if type(value) is ScriptList:
        return tuple(map(plain, value.known()))
    if type(value) is tuple:
        return tuple(map(plain, value))
    return value


def result(value: Any) -> Any:
    """A value as jitted functions give it: Python's lists, tuples and dicts."""
    if type(value) is ScriptList:
        return value.growing if value.growing is not None else [result(x) for x in value.items]
    if type(value) is ScriptDict:
        return {key: result(x) for key, x in value.items.items()}
    return tuple(map(result, value)) if type(value) is tuple else value


def argument(value: Any) -> Any:
    """The value of an argument: what `result` gives, taken back."""
    if type(value) is list:
        return ScriptList(map(argument, value))
    if type(value) is dict:
        return ScriptDict((key, argument(x)) for key, x in value.items())
    return tuple(map(argument, value)) if isinstance(value, tuple) else value
