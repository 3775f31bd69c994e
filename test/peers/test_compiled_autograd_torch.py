"""Compiled autograd against torch's: the same programs, captured by both, the same notes.

Programs are those that the tapes are compared by: what is noted, of values and of the order of
hooks, must be what torch's eager run notes. Of further programs, which both capture, the notes, the
numbers of captures, the order of nodes and the kinds of hooks are compared. Skipped where torch is
not installed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from test_tape_torch import SCENARIOS, Ours, Torchs, _agree, _played, number  # noqa: E402
from torch._dynamo import compiled_autograd as theirs  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

# Both refuse arrays that retain their gradient (R4.6).
REFUSED = {
    "all_kinds_of_hooks_in_order",
    "retained_gradients",
    "retained_gradients_add_up",
    "retained_gradients_come_after_hooks",
    "retained_gradients_of_written_arrays",
}


def interpreted(made: Any) -> Any:
    return made.interpret


@pytest.fixture(autouse=True)
def _fresh():
    pf.compiled_autograd.reset()
    theirs.reset()
    counters.clear()
    yield
    pf.compiled_autograd.reset()
    theirs.reset()


@pytest.mark.parametrize(("name", "fn"), SCENARIOS, ids=[name for name, _ in SCENARIOS])
def test_the_same_happens_when_runs_are_captured(name, fn):
    if name in REFUSED:
        with pf.compiled_autograd(), pytest.raises(pf.GradientError, match="retains"):
            _played(Ours, fn)
        return
    wanted = _played(Torchs, fn)
    with pf.compiled_autograd(interpreted):
        found = _played(Ours, fn)
    assert found and _agree(found, wanted), f"captured {found}, torch's {wanted}"


def test_there_are_many():
    assert len(SCENARIOS) - len(REFUSED) + len(PROGRAMS) >= 90
    assert {name for name, _ in SCENARIOS} >= REFUSED


# --- side by side with what torch captures --------------------------------------------------------

Program = Callable[[Any, Callable[[Any], None], int], None]
PROGRAMS: dict[str, Program] = {}


def program(fn: Program) -> Program:
    """Enter a program, of which several steps are captured."""
    PROGRAMS[fn.__name__] = fn
    return fn


@program
def a_chain(t, note, k):
    x = t.leaf(1, 2, 3)
    (t.tanh(x) * x).sum().backward()
    note(x.grad)


@program
def a_batch_that_grows(t, note, k):
    w = t.leaf(1, 2, 3)
    x = t.constant(*range(4 + k // 2))
    t.tanh(x[:, None] * w).sum().backward()
    note(w.grad)


@program
def a_tensor_hook(t, note, k):
    x = t.leaf(1, 2)
    x.register_hook(lambda g: g * 2)
    t.exp(x).sum().backward()
    note(x.grad)


@program
def tensor_hooks_on_the_way(t, note, k):
    x = t.leaf(1, 2)
    y = t.exp(x)
    y.register_hook(lambda g: note("y"))
    x.register_hook(lambda g: note("x"))
    (y * x).sum().backward()
    note(x.grad)


@program
def prehooks_and_posthooks(t, note, k):
    x = t.leaf(1, 2)
    y = t.exp(x) * 2
    t.node(y).register_prehook(lambda gs: note("pre"))
    t.node(y).register_hook(lambda found, gs: note("post"))
    y.sum().backward()
    note(x.grad)


@program
def post_accumulate_hooks(t, note, k):
    x = t.leaf(1, 2)
    t.post_accumulate(x, lambda x: note(x.grad))
    (x * 3).sum().backward()


@program
def one_more_hook_in_each_step(t, note, k):
    x = t.leaf(1, 2)
    for n in range(k):
        x.register_hook(lambda g, n=n: note(n))
    (x * 3).sum().backward()


@program
def other_functions_as_hooks(t, note, k):
    x = t.leaf(1, 2)
    x.register_hook(lambda g: g * k)
    (x * 3).sum().backward()
    note(x.grad)


@program
def other_exponents(t, note, k):
    x = t.leaf(1, 2)
    (x ** (2 + k % 2)).sum().backward()
    note(x.grad)


@program
def two_ops_in_turn(t, note, k):
    x = t.leaf(1, 2)
    (t.exp(x) if k % 2 else t.sin(x)).sum().backward()
    note(x.grad)


@program
def another_dtype(t, note, k):
    x = t.leaf(1, 2)
    y = x.astype(np.float32) if isinstance(x, pf.Array) and k % 2 else x
    y = y.float() if not isinstance(x, pf.Array) and k % 2 else y
    (y * y).sum().backward()
    note(x.grad.dtype.itemsize)


@program
def sums_of_gradients(t, note, k):
    x = t.leaf(1, 2)
    y = t.exp(x)
    (y * 2 + y * 3 + y).sum().backward()
    note(x.grad)


@program
def a_hook_that_appends(t, note, k):
    x, seen = t.leaf(1, 2), []
    x.register_hook(lambda g: seen.append(1))
    (x * 3).sum().backward()
    note(len(seen))


@program
def packed_arrays(t, note, k):
    x = t.leaf(1, 2)
    with t.saved_hooks(lambda a: (note("pack"), a)[1], lambda a: (note("unpack"), a)[1]):
        y = t.exp(x).sum()
    y.backward()
    note(x.grad)


def _steps(library: Any, fn: Program, scope: Callable[[], Any], captures: Callable[[], int]) -> Any:
    notes: list[Any] = []
    found = []
    for k in range(4):
        with scope():
            fn(library, lambda x: notes.append(number(x)), k)
        found.append(captures())
    return notes, found


def _by_torch(fn: Program) -> Any:
    graphs: list[Any] = []

    def compiler(graph):
        graphs.append(graph)
        return graph

    found = _steps(
        Torchs, fn, lambda: theirs._enable(compiler, dynamic=False), lambda: counters["compiled_autograd"]["captures"]
    )
    return (*found, graphs)


def _by_us(fn: Program) -> Any:
    state = pf.compiled_autograd.state
    return _steps(Ours, fn, lambda: pf.compiled_autograd(interpreted), lambda: state().captures)


@pytest.mark.parametrize("name", PROGRAMS)
def test_notes_and_captures_are_those_of_torchs_compiled_autograd(name):
    wanted, theirs_count, _ = _by_torch(PROGRAMS[name])
    found, ours_count = _by_us(PROGRAMS[name])
    assert _agree(found, wanted), f"ours {found}, torch's {wanted}"
    assert ours_count == theirs_count


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "hook" in n or n == "packed_arrays"])
def test_kinds_of_hooks_and_placeholders_are_torchs(name):
    """R4.13, R4.26."""
    _, _, graphs = _by_torch(PROGRAMS[name])
    _by_us(PROGRAMS[name])
    theirs_text, ours_text = str(graphs[-1].graph), pf.compiled_autograd.state().runs[-1].ir()
    kinds = re.findall(r"hook_type: (\w+)", theirs_text)
    assert re.findall(r'hook_type = "(\w+)"', ours_text) == kinds and kinds
    names = re.findall(r"placeholder\[target=(\w+)\]", theirs_text)
    assert names == ["inputs", "sizes", "scalars", "hooks", "packed_data"]
    assert len(pf.compiled_autograd.state().runs[-1].module.main.inputs) == len(names)


@pytest.mark.parametrize("name", ["a_chain", "sums_of_gradients", "two_ops_in_turn"])
def test_the_order_of_nodes_is_torchs(name):
    _, _, graphs = _by_torch(PROGRAMS[name])
    _by_us(PROGRAMS[name])
    wanted = re.findall(r"ops\.(\w+?)Backward\d", str(graphs[-1].graph))
    found = re.findall(r"callee = @(\w+?)Backward\d", pf.compiled_autograd.state().runs[-1].ir())
    assert found == wanted


def test_an_exception_in_a_hook_leaves_both_as_they_were():
    for library, scope in (
        (Ours, lambda: pf.compiled_autograd(interpreted)),
        (Torchs, lambda: theirs._enable(lambda graph: graph, dynamic=False)),
    ):

        def fails(g):
            raise KeyError("from a hook")

        x = library.leaf(1, 2)
        x.register_hook(fails)
        with scope():
            with contextlib.suppress(KeyError):
                (x * 3).sum().backward()
            y = library.leaf(1, 2)
            (y * 3).sum().backward()
        assert number(y.grad) == [3.0, 3.0]
