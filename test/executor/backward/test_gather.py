"""The generated walks of runs that were met before: what they take, and what they leave (R4.7)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from captured_programs import WEIGHTS, captured, compiled
from profuse.dialect.errors import GradientError
from profuse.executor.backward import captured_run, key
from profuse.executor.tape.node import WRITES

RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def _foreground():
    with pf.knobs.override(background=False):
        yield


def leaf(*shape):
    return pf.array(RNG.standard_normal(shape), requires_grad=True)


def walks(monkeypatch):
    """A list that grows with each walk that is not a generated one."""
    made, walk = [], captured_run.Walk

    def counted(*args, **how):
        made.append(args)
        return walk(*args, **how)

    monkeypatch.setattr(captured_run, "Walk", counted)
    return made


def same(program, args, count=5):
    """Gradients of several runs, each compared with the eager tape's."""
    for _ in range(count):
        for x in args:
            x.grad = None
        program(*args).backward()
        wanted = [x.grad for x in args]
        for x in args:
            x.grad = None
        with pf.compiled_autograd():
            program(*args).backward()
        for x, g in zip(args, wanted, strict=True):
            np.testing.assert_allclose(x.grad, g, rtol=1e-11)


def test_the_third_run_of_a_kind_needs_no_walk(monkeypatch):
    made = walks(monkeypatch)
    same(lambda w, v: (np.tanh(w) @ v).mean() + (w * w).sum(), (leaf(3, 4), leaf(4, 2)), 2)
    count = len(made)
    same(lambda w, v: (np.tanh(w) @ v).mean() + (w * w).sum(), (leaf(3, 4), leaf(4, 2)), 4)
    assert len(made) == count and pf.compiled_autograd.state().captures == 1


PROGRAMS = {
    "a node used twice": lambda x, y: (lambda a: (a * a + a).sum())(np.tanh(x * y)),
    "two equal nodes": lambda x, y: (np.tanh(x * y) * np.tanh(x * y)).sum(),
    "one leaf": lambda x, y: (np.tanh(x) * np.tanh(x)).sum() + y.sum() * 0.0,
    "other leaves": lambda x, y: (np.tanh(x) * np.tanh(y)).sum(),
    "swapped": lambda x, y: (np.tanh(y) * np.tanh(x)).sum(),
    "another op": lambda x, y: (np.tanh(x) * np.sin(y)).sum(),
    "another number": lambda x, y: (np.tanh(x) * 3.0).sum() + y.sum(),
    "a number": lambda x, y: (np.tanh(x) * 2.0).sum() + y.sum(),
    "a constant": lambda x, y: (np.tanh(x) * np.ones(3)).sum() + y.sum(),
    "sums": lambda x, y: x.sum() * y.sum() + (x / (2 + np.abs(y))).sum(),
}


def test_runs_of_many_kinds_in_turn_are_not_mistaken_for_each_other():
    args = leaf(3), leaf(3)
    for _ in range(3):
        for program in PROGRAMS.values():
            same(program, args, 2)
    assert pf.compiled_autograd.state().captures <= len(PROGRAMS) + 2


def test_sixteen_graphs_in_turn_need_no_walk_and_one_comparison_each(monkeypatch):
    x, asked = leaf(3), []
    programs = [lambda k=k: sum((np.tanh(x * 2.0) for _ in range(k)), x).sum() for k in range(16)]

    def turn(count):
        for _ in range(count):
            for program in programs:
                x.grad = None
                with pf.compiled_autograd():
                    program().backward()
                found, x.grad = x.grad, None
                program().backward()
                np.testing.assert_allclose(found, x.grad, rtol=1e-11)

    turn(3)
    assert pf.compiled_autograd.state().captures == 16
    made, expected = walks(monkeypatch), key.Cache.expected

    def counted(cache):
        for found in expected(cache):
            asked.append(found)
            yield found

    monkeypatch.setattr(key.Cache, "expected", counted)
    turn(2)
    assert made == [] and len(asked) == 32


def test_one_array_in_two_places_and_two_arrays():
    x, y = leaf(3), leaf(3)
    for a, b in [(x, y), (x, y), (x, y), (x, x), (y, x), (x, x), (x, x), (x, y)]:
        a.grad = b.grad = None
        with pf.compiled_autograd():
            (np.exp(a) * np.exp(b)).sum().backward()
        wanted = np.exp(a.data) * np.exp(b.data)
        np.testing.assert_allclose(a.grad, wanted * (2 if a is b else 1))


def test_constants_that_were_one_array_and_are_two():
    c, d = pf.array(RNG.standard_normal(3)), pf.array(RNG.standard_normal(3))
    for a, b in [(c, c), (c, c), (c, c), (c, d), (d, c), (d, d), (c, d), (c, d), (d, d)]:
        x, y = leaf(3), leaf(3)
        with pf.compiled_autograd():
            ((x * a).sum() * (y * b).sum()).backward()
        np.testing.assert_allclose(x.grad, a.data * (y.data * b.data).sum())
        np.testing.assert_allclose(y.grad, b.data * (x.data * a.data).sum())


def test_sizes_that_change_in_elementwise_runs():
    for n in (4, 4, 4, 5, 5, 6, 4, 4, 7, 5, 5, 5):
        x = leaf(n)
        with pf.compiled_autograd():
            (np.tanh(x) * x).sum().backward()
        np.testing.assert_allclose(x.grad, np.tanh(x.data) + x.data / np.cosh(x.data) ** 2)
    assert pf.compiled_autograd.state().captures == 2


def test_sizes_that_change_in_each_run_need_no_walk(monkeypatch):
    w, v = leaf(3, 4), leaf(4, 2)

    def program(rows):
        x = np.random.default_rng(rows).standard_normal((rows, 3))
        return ((np.tanh(x @ w) @ v).reshape(-1) ** 2).mean() + (w * w).sum()

    def run(rows):
        with pf.compiled_autograd():
            program(rows).backward()

    run(4), run(5)
    made = walks(monkeypatch)
    for rows in (6, 7, 4, 5, 9, 30):
        w.grad = v.grad = None
        run(rows)
        found = w.grad, v.grad
        w.grad = v.grad = None
        program(rows).backward()
        for g, x in zip(found, (w, v), strict=True):
            np.testing.assert_allclose(g, x.grad, rtol=1e-11)
    assert not made and pf.compiled_autograd.state().captures == 2


def test_sizes_that_have_been_equal_and_differ_are_left_to_the_walk():
    for n, m in [(4, 4), (5, 5), (6, 6), (6, 7), (3, 8), (5, 5)]:
        x, y = leaf(n), leaf(m)
        with pf.compiled_autograd():
            (np.tanh(x).sum() * np.sin(y).sum()).backward()
        np.testing.assert_allclose(y.grad, np.cos(y.data) * np.tanh(x.data).sum())
    assert pf.compiled_autograd.state().captures == 3


def test_writes_and_freed_graphs_are_refused_as_ever():
    for k in range(5):
        x = leaf(3)
        y = x * 1.0
        z = (y * y).sum()
        if k == 4:
            y += 1.0
            with pf.compiled_autograd(), pytest.raises(GradientError, match="written to"):
                z.backward()
            return
        with pf.compiled_autograd():
            z.backward()
            with pytest.raises(GradientError, match="freed"):
                z.backward()


def test_retained_graphs_run_again():
    x = leaf(3)
    for _ in range(4):
        y = np.exp(x).sum()
        with pf.compiled_autograd():
            for k in range(1, 4):
                x.grad = None
                y.backward(retain_graph=k < 3)
                np.testing.assert_allclose(x.grad, np.exp(x.data))


def test_hooks_come_and_go():
    x, seen = leaf(3), []
    for k in range(12):
        x.grad = None
        y = np.exp(x)
        if k % 4 == 3:
            y.register_hook(lambda g: g * 2.0)
        handle = x.register_hook(lambda g, k=k: seen.append(k)) if k % 2 else None
        with pf.compiled_autograd():
            y.sum().backward()
        np.testing.assert_allclose(x.grad, np.exp(x.data) * (2 if k % 4 == 3 else 1))
        if handle is not None:
            handle.remove()
    assert seen == [1, 3, 5, 7, 9, 11]


def test_jitted_functions_among_the_nodes():
    @pf.jit
    def f(x):
        return np.tanh(x) * 2.0 + x

    x = leaf(4)
    for _ in range(4):
        f(x).sum().backward()
        f.wait()
    same(lambda x: (f(x) * f(x)).sum(), (x,), 6)
    same(lambda x: (f(x) * f(np.exp(x))).sum(), (x,), 6)


def test_branches_that_are_made_in_the_other_order():
    """The same nodes and edges, but of two branches the other one runs first."""
    seen = []

    def program(x, first):
        made = {}
        for name in ("a", "b") if first else ("b", "a"):
            made[name] = np.exp(x) if name == "a" else np.tanh(x)
            made[name].register_hook(lambda g, name=name: seen.append(name))
        return (made["a"] * made["b"]).sum()

    for first in (True, True, True, False, True, False, False, True, True):
        x = leaf(3)
        with pf.compiled_autograd():
            program(x, first).backward()
        assert seen == (["b", "a"] if first else ["a", "b"])
        seen.clear()


def test_sizes_that_only_the_root_tells():
    """Of elementwise nodes behind each other one shape tells all; two captures, then no more."""
    for n in (3, 3, 3, 4, 4, 5, 3, 6):
        x, given = leaf(n), RNG.standard_normal(n)
        with pf.compiled_autograd():
            (np.tanh(x) * x).backward(given)
        wanted = (np.tanh(x.data) + x.data / np.cosh(x.data) ** 2) * given
        np.testing.assert_allclose(x.grad, wanted)
    assert pf.compiled_autograd.state().captures == 2


def test_constants_that_are_arrays_of_the_tape_or_not():
    """Nodes count writes to the former alone."""
    for k in range(9):
        x, c = leaf(3), RNG.standard_normal(3)
        with pf.compiled_autograd():
            (np.exp(x) * (pf.array(c) if k % 2 else c)).sum().backward()
        np.testing.assert_allclose(x.grad, np.exp(x.data) * c)
    assert pf.compiled_autograd.state().captures == 1


def test_sizes_between_jitted_functions():
    """Neither tells the size of what lies between them, which is no leaf's."""

    @pf.jit
    def spread(w, x):
        return w + x

    @pf.jit
    def total(y):
        return y.sum(0)

    w = leaf(3)
    for n in (4, 5):
        for _ in range(4):
            total(np.tanh(spread(w, np.ones((n, 3))))).sum().backward()
            spread.wait(), total.wait()
    for n in (4, 4, 4, 5, 5, 4, 6, 7, 5):
        x = RNG.standard_normal((n, 3))
        w.grad = None
        with pf.compiled_autograd():
            total(np.tanh(spread(w, x))).sum().backward()
        np.testing.assert_allclose(w.grad, (1 / np.cosh(w.data + x) ** 2).sum(0))


# --- writes ---------------------------------------------------------------------------------------


def test_writes_to_what_a_subgraph_has_captured_are_refused():
    w = pf.array(WEIGHTS, requires_grad=True)
    f = compiled(lambda f: f(w).sum().backward())
    for _ in range(3):
        with captured():
            f(w).sum().backward()
    assert pf.compiled_autograd.state().captures == 1
    loss = f(w).sum()
    with pf.no_grad():
        w += 1.0
    with captured(), pytest.raises(GradientError, match="written to"):
        loss.backward()


def test_writes_that_nobody_counts_are_refused_where_contents_are_looked_at(monkeypatch):
    monkeypatch.setattr(WRITES, "last", -1)
    x = pf.array(WEIGHTS, requires_grad=True)

    def loss():
        with pf.detect_anomaly():
            return (np.tanh(x) * x).sum()

    for _ in range(3):
        with captured():
            loss().backward()
    assert pf.compiled_autograd.state().captures == 1
    last = loss()
    x.data[0, 0] += 1.0
    with captured(), pytest.raises(GradientError, match="written to"):
        last.backward()


def test_counts_of_writes_are_looked_at_after_writes_alone(monkeypatch):
    x = pf.array(WEIGHTS, requires_grad=True)
    y = pf.array(WEIGHTS, requires_grad=True)

    def loss():
        return (np.tanh(x) * x).sum()

    with captured():
        loss().backward()
    looked = []

    class Counted:
        place = None

        @property
        def count(self):
            looked.append(1)
            return 0

    for written in (False, True):
        last = loss()
        node = last.node
        while node is not None and node.edges:
            node.saved[2][:] = [(Counted(), 0) for _ in node.saved[2]]
            node = node.edges[0] and node.edges[0][0]
        if written:
            with pf.no_grad():
                y += 1.0
        with captured():
            last.backward()
        assert bool(looked) is written
    assert pf.compiled_autograd.state().hits == 2
