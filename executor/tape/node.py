"""Nodes: what a run leaves behind, from which its gradients are computed.

A node is simple data: what was computed, from what, and what its gradient needs. Its edges lead to
the nodes of its operands, or to the `Accumulate` of a leaf.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import ref

import numpy as np

from ...dialect.errors import Loc
from ...dialect.importers.numpy.python.users_code import is_users_file
from .hooks import Handle, Hooks

Meta = tuple[tuple[int, ...], np.dtype]  # shape and dtype of an output
FIRST = float("inf")  # the `seq` of what runs as soon as it is ready
USERS: set[str] = set()  # files of the user's code that has made nodes
OTHERS: set[str] = set()  # files of other code, which users' code has called meanwhile


next_seq = itertools.count().__next__  # numbers nodes, upwards in each thread


class _Writes:
    """The time at which arrays were last written to: nodes with a higher `seq` were made after it.

    ``watchers`` are told of each array that is written to, by its `Version`.
    """

    last: float = -1
    watchers: ClassVar[dict[int, Callable[[Any], None]]] = {}


WRITES = _Writes()
SPECIAL: list[Any] = []  # is empty while no thread has anything special in use, as is usual


class _Tape(threading.local):
    """The state of one thread.

    Attributes:
        packing: pairs of functions that pack and unpack what nodes keep; the last one counts.
        anomalies: whether saved arrays and gradients are checked.
        special: whether either is in use; then `SPECIAL` is not empty, which is asked sooner.
        captured: what runs backwards in place of the engine, while captures are asked for.
    """

    captured: Callable[..., list[Any]] | None = None

    def __init__(self) -> None:
        self.packing: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.anomalies = self.special = False


TAPE = _Tape()


class Node:
    """A step of a run that gradients flow back through.

    Subclasses say how in `backward`, and drop in `release` what only that needs.

    Attributes:
        seq: counts nodes upwards; the engine takes the highest one that is ready.
        edges: per operand, or whatever `backward` returns gradients for, the node that computed it
            and which of its outputs it is; None for an operand without gradient.
        metas: shape and dtype of each output.
        place: where the user's code made the node: its code object, and the instruction in it.
        hooked: its hooks; None for none.
    """

    __slots__ = ("__weakref__", "edges", "hooked", "metas", "place", "seq")
    edges: list[Edge]
    metas: Sequence[Meta]
    seq: float
    hooked: Hooks | None
    place: tuple[Any, int] | None
    op_name: ClassVar[str] = "node"

    def __init__(self, edges: list[Edge], metas: Sequence[Meta]) -> None:
        self.seq = next_seq()
        self.edges, self.metas = edges, metas
        self.hooked = self.place = None

    @property
    def name(self) -> str:
        """The name of the node in messages."""
        return f"{self.op_name}_backward"

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        """The gradients of what the edges lead to, from those of the outputs; None for 0.

        Called with gradient mode on if what is computed shall be differentiable itself; gradients
        are `Array` then, else plain arrays.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Drop what only `backward` needs; it is not called again."""

    @property
    def loc(self) -> Loc | None:
        """The line of the user's code that made the node."""
        return None if self.place is None else location(*self.place)

    def hooks(self) -> Hooks:
        """Its hooks, made when they are needed."""
        if self.hooked is None:
            self.hooked = Hooks()
        return self.hooked

    def register_prehook(self, hook: Callable[[tuple], Any]) -> Handle:
        """Have ``hook(gradients)`` be called before the node runs.

        It is given the gradients of the outputs as a tuple, and returns other ones or None.
        """
        hooks = self.hooks()
        return hooks.add(hooks.pre, hook)

    def register_hook(self, hook: Callable[[tuple, tuple], Any]) -> Handle:
        """Have ``hook(found, gradients)`` be called after the node has run.

        It is given what the edges lead to is given, and the gradients of the outputs, as tuples,
        and returns other ones in place of the former, or None.
        """
        hooks = self.hooks()
        return hooks.add(hooks.post, hook)

    def __repr__(self) -> str:
        at = f" at {self.loc}" if self.loc else ""
        return f"<{self.name}{at}>"


Edge = tuple[Node, int] | None


class Accumulate(Node):
    """Adds up the gradient of a leaf, which it does not keep alive.

    Attributes:
        leaf: a weak reference to the array.
    """

    __slots__ = ("leaf",)
    op_name = "accumulate"

    def __init__(self, leaf: Any) -> None:
        self.leaf = ref(leaf)
        self.seq = FIRST
        data = leaf.data
        self.edges, self.metas = [], ((data.shape, data.dtype),)
        self.hooked = self.place = None

    @property
    def name(self) -> str:
        return "accumulate_grad"

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        self.take(gradients[0], 1)
        return ()

    def take(self, g: Any, holders: int) -> None:
        """Add a gradient, which ``holders`` other than this method's argument refer to."""
        leaf = self.leaf()
        if leaf is not None and g is not None:
            leaf.add_gradient(g, holders + 1)


def location(code: Any, instruction: int) -> Loc:
    """The line of an instruction of a code object."""
    lines = itertools.islice(code.co_positions(), instruction // 2, None)
    line = next(iter(lines), (None,))[0]
    return Loc(code.co_filename, line or code.co_firstlineno)


def user_line() -> Any:
    """The line of the user's code that runs, as a `Loc`; None if there is none."""
    place = users_place()
    return None if place is None else location(*place)


def users_place(depth: int = 2) -> Any:
    """The code and the instruction of the user's that runs; None if there is none.

    ``depth``: how many of the innermost frames are none of the user's for sure.
    """
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if code.co_filename in USERS:
            return code, frame.f_lasti
        if is_users_file(code.co_filename):
            USERS.add(code.co_filename)
            return code, frame.f_lasti
        OTHERS.add(code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return None
