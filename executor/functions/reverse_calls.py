"""Emitted code for reverse halves of differentiable subgraphs, which backward runs call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar

from ...dialect.trees.pytree import TreeDef, flatten
from ..dispatch.dispatcher import Dispatcher, PositionalGraph
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ..plans.differentiable import DiffOp


def noted_graphs(executor: AnyExecutor) -> Iterator[DiffOp]:
    """The ops that run the differentiable subgraphs of the calls of a graph that are noted."""
    for member in executor.chain():
        if member.options.gradients:
            for specialised in member.compiled():
                yield from specialised.plan.graphs


class Half(PositionalGraph):
    """The reverse half of a subgraph, for inputs of some kinds."""

    counts_calls: ClassVar[bool] = False

    def __init__(self, executor: AnyExecutor, kinds: tuple, results: TreeDef) -> None:
        self.executor, self.kinds, self.results = executor, kinds, results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Half) and (self.executor, self.kinds) == (other.executor, other.kinds)

    __hash__ = None  # type: ignore[assignment]


class Pull:
    """Keeps the emitted code of one reverse half up to date.

    Only `DiffOp.pull` holds the code, which refers neither to the subgraph nor to the function, so
    that a node outlives both.

    Args:
        op: what runs the subgraph.
        name: name of the function.
        look: looks for new plans of the function, to which it refers weakly, after the half has run
            in Python; the argument ``is_new`` says whether with inputs of a new kind.
    """

    def __init__(self, op: DiffOp, name: str, look: weakref.WeakMethod[Callable[..., None]]) -> None:
        self._op = weakref.ref(op)
        _, self._results = flatten((0,) * len(op.output_vjps))
        self.dispatcher = Dispatcher(f"{name}/{op.name.rpartition('/')[2]}", _slow_pull(op, look))
        op.pull = self.dispatcher.slow

    def _halves(self) -> list[Half]:
        op = self._op()
        return [] if op is None else [Half(op.reverse, k, self._results) for k in tuple(op.pulled)]

    @property
    def is_stale(self) -> bool:
        """True if there are plans, or kinds of inputs, that attached code does not serve yet."""
        return self.dispatcher.needs(self._halves()) or not self.is_attached

    def refresh(self) -> None:
        """Emit code for the present plans."""
        self.dispatcher.refresh(self._halves())

    def attach(self, current: MutableMapping[Any, Pull]) -> None:
        """Have backward runs call the emitted code, if ``current`` still has this object."""
        op = self._op()
        if op is not None and current.get(op) is self:
            call = None if self.dispatcher.needs(self._halves()) else self.dispatcher.call
            op.pull = call or self.dispatcher.slow

    @property
    def is_attached(self) -> bool:
        """True if backward runs call the latest emitted code, if there is some."""
        op = self._op()
        return op is None or op.pull is (self.dispatcher.call or self.dispatcher.slow)

    def detach(self) -> None:
        """Have backward runs call the reverse half in Python, until code is attached again."""
        op = self._op()
        if op is not None:
            op.pull = self.dispatcher.slow


def _slow_pull(op: DiffOp, look: weakref.WeakMethod[Callable[..., None]]) -> Callable[..., Any]:
    """Runs a reverse half in Python, and has the function look for new plans afterwards."""
    reference = weakref.ref(op)

    def pull(*inputs: Any) -> Any:
        diff_op = reference()
        assert diff_op is not None, "a node holds its subgraph"
        before = len(diff_op.pulled)
        gradients = diff_op.pull_in_python(*inputs)
        callback = look()
        if callback is not None:
            callback(is_new=len(diff_op.pulled) != before)
        return gradients

    return pull
