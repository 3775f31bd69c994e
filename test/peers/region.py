"""Two libraries behind one face, and scenarios of backward runs in a region that is captured.

A scenario is a function of a `Side` and of ``note``. It takes its steps in ``with t.step():``: the
region of compiled autograd, or nothing on an eager tape. What is noted, and how many captures there
are after each step, is compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import profuse as pf
import torch
from test_tape_torch import Ours, Torchs, number
from torch._dynamo import compiled_autograd as theirs
from torch._dynamo.utils import counters

Note = Callable[[Any], None]
Scenario = Callable[[Any, Note], None]
SCENARIOS: dict[str, Scenario] = {}

_EAGER_ORDER = "torch moves calls of hooks and accumulations past each other; ours run as eager"
_REMOVED = "torch calls a hook that was removed earlier in the run; ours does not, as eager tapes"
_KEPT = "whether a leaf has a gradient already is part of torch's key, and not of ours (R4.9)"
DIFFERENCES: dict[str, tuple[str, str]] = {
    "nodes_of_a_diamond": ("notes", _EAGER_ORDER),
    "leaves_accumulate_when_their_gradient_is_whole": ("notes", _EAGER_ORDER),
    "a_hook_that_removes_one_of_a_later_node": ("notes", _REMOVED),
    "hooks_removed_by_a_neighbour": ("notes", _REMOVED),
    "a_backward_run_to_the_same_leaf_in_a_hook": (
        "notes",
        "torch loses what the hook has added; ours adds to it, as eager tapes do",
    ),
    "hooks_that_return_something_else_are_refused": (
        "notes",
        "torch takes a gradient of another shape from a hook; ours refuses it, as eager",
    ),
    "batches_with_gradients_kept": ("captures", _KEPT),
    "gradients_of_several_micro_batches": ("captures", _KEPT),
    "a_graph_that_is_retained": ("captures", _KEPT),
    "threads_that_share_a_leaf": ("captures", _KEPT),
    "everything_at_once": ("captures", _KEPT),
    "a_number_that_changes_with_each_step": (
        "captures",
        "numbers are constants until they change, as sizes are (R4.9)",
    ),
    "gradients_of_gradients_in_the_region": ("captures", "runs with create_graph are eager (R4.6)"),
}
"""Where captured runs of ours and torch's differ: in notes or captures, and why."""


def scenario(fn: Scenario) -> Scenario:
    """Enter a scenario."""
    assert fn.__name__ not in SCENARIOS
    SCENARIOS[fn.__name__] = fn
    return fn


def interpreted(made: Any) -> Any:
    return made.interpret


def uncompiled(graph: Any) -> Any:
    return graph


class _Ours(Ours):
    """What these scenarios call besides, by the tape."""

    root = staticmethod(np.sqrt)
    disabled = staticmethod(pf.compiled_autograd.disable)
    reset = staticmethod(pf.compiled_autograd.reset)
    maximum = staticmethod(np.maximum)

    @staticmethod
    def region(dynamic: bool = False, compiler: Any = interpreted) -> Any:
        return pf.compiled_autograd(compiler, dynamic)

    @staticmethod
    def captures() -> int:
        return pf.compiled_autograd.state().captures

    @staticmethod
    def accumulator(x: Any) -> Any:
        return x.node

    @staticmethod
    def function(name: str, forward: Any, backward: Any) -> Any:
        """A function with a gradient of its own: what is saved, and gradients of its arguments."""
        own = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return pf.custom_vjp(type(name, (), own))

    @staticmethod
    def backward(outputs: list) -> None:
        sum(y.sum() for y in outputs).backward()


class _Torchs(Torchs):
    """What these scenarios call besides, by torch."""

    root = staticmethod(torch.sqrt)
    disabled = staticmethod(theirs._disable)
    maximum = staticmethod(torch.maximum)

    @staticmethod
    def reset() -> None:
        theirs.reset()
        counters.clear()

    @staticmethod
    def region(dynamic: bool = False, compiler: Any = uncompiled) -> Any:
        return theirs._enable(compiler, dynamic=dynamic)

    @staticmethod
    def captures() -> int:
        return counters["compiled_autograd"]["captures"]

    @staticmethod
    def accumulator(x: Any) -> Any:
        return x.view_as(x).grad_fn.next_functions[0][0]

    @staticmethod
    def function(name: str, forward: Any, backward: Any) -> Any:
        def forward_of(ctx: Any, *args: Any) -> Any:
            found, saved = forward(*args)
            tensors = [x for x in saved if isinstance(x, torch.Tensor)]
            ctx.save_for_backward(*tensors)
            ctx.rest = [None if isinstance(x, torch.Tensor) else x for x in saved]
            return found

        def backward_of(ctx: Any, *gs: Any) -> Any:
            tensors = iter(ctx.saved_tensors)
            return backward([next(tensors) if x is None else x for x in ctx.rest], *gs)

        own = {"forward": staticmethod(forward_of), "backward": staticmethod(backward_of)}
        return type(name, (torch.autograd.Function,), own).apply


class Side:
    """One library, on its eager tape or captured.

    Attributes:
        counts: captures after each step.
        leaves: whose gradients are cleared before each step.
        waits: each step waits for what is under way beside it.
    """

    def __init__(self, library: Any, is_captured: bool, compiler: Any = None, waits: bool = False) -> None:
        self.library, self.is_captured, self.waits = library, is_captured, waits
        self.compiler = {} if compiler is None else {"compiler": compiler}
        self.counts: list[int] = []
        self.leaves: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def scope(self, **how: Any) -> Any:
        """The region that captures; nothing on an eager tape."""
        if self.is_captured:
            return self.library.region(**(how | self.compiler))
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def step(self, kept: bool = False, **how: Any) -> Iterator[None]:
        """The region, counted. Gradients are cleared before it, unless they are ``kept``.

        torch captures once more where gradients are kept, ours does not (R4.9).
        """
        for leaf in () if kept else self.leaves:
            leaf.grad = None
        try:
            with self.scope(**how):
                yield
        finally:
            self.counts.append(self.library.captures())
            if self.waits:
                assert pf.compiled_autograd.wait(60)

    def leaf(self, *values: Any) -> Any:
        self.leaves.append(self.library.leaf(*values))
        return self.leaves[-1]

    def weights(self, *shape: int) -> Any:
        """A leaf of this shape, with different elements."""
        count = int(np.prod(shape))
        values = np.cos(np.arange(1.0, 1 + count) * len(shape)).reshape(shape)
        return self.leaf(*values)

    def batch(self, *shape: int, seed: int = 0) -> Any:
        """A constant of this shape."""
        return self.constant(*np.random.default_rng(seed).standard_normal(shape))

    def norm(self, x: Any) -> float:
        return float(np.sqrt(np.square(number(x)).sum()))


def ours(is_captured: bool, compiler: Any = None, *, waits: bool = False) -> Side:
    """The tape of this project."""
    return Side(_Ours, is_captured, compiler, waits)


def torchs(is_captured: bool, compiler: Any = None) -> Side:
    """torch's."""
    return Side(_Torchs, is_captured, compiler)


def noted(side: Side, fn: Scenario) -> list[Any]:
    """What a scenario notes."""
    notes: list[Any] = []
    fn(side, lambda x: notes.append(number(x)))
    return notes


def played(side: Side, fn: Scenario) -> tuple[list[Any], list[int]]:
    """What a scenario notes, and captures after each step, where nothing has been captured before."""
    side.library.reset()
    notes = noted(side, fn)
    side.library.reset()
    return notes, side.counts


def net(t: Any, w: Any, v: Any, batch: int, seed: int = 0) -> Any:
    """The loss of two layers on a batch of this size."""
    h = t.tanh(t.batch(batch, 3, seed=seed) @ w) @ v
    return (h * h).mean()
