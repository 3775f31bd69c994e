"""Differentiable subgraphs at run time: nodes, halves, counts, and what a miss costs."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from internals import executor_of, noted_executor_of
from profuse.dialect.errors import GradientError, InternalError
from profuse.dialect.guards.mismatch import flags_fit
from profuse.dialect.ir.dtypes import dtype_of
from profuse.dialect.ir.program import Instr
from profuse.dialect.ir.types import TensorType
from profuse.dialect.ops.speculation import DiffGraph, Gradient
from profuse.executor.plans.differentiable import DiffNode
from profuse.executor.settings.differentiation import inlines_subgraphs, subgraph_inlining, was_differentiated

PARENT = str(Path(pf.__file__).parents[1])
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 3)), RNG.standard_normal((8, 2))
W, B = RNG.standard_normal((3, 2)), RNG.standard_normal(2)


def loss(w, b, x, y):
    return ((np.tanh(x @ w + b) - y) ** 2).mean()


def two(a, b):
    """Two results that share a part."""
    shared = np.exp(0.1 * a * b)
    return shared + a, (shared * shared).sum(axis=0)


def leaf(data):
    return pf.array(data, requires_grad=True)


def step(f, *, x=X, y=Y, w=W, b=B):
    """Value and gradients of a call of a function like `loss`, by the tape."""
    w, b = leaf(w), leaf(b)
    value = f(w, b, x, y)
    value.backward()
    return value, w.grad, b.grad


def check(found, x=X, y=Y, w=W, b=B):
    value, grads = pf.value_and_grad(loss, wrt=(0, 1))(w, b, x, y)
    for got, want in zip(found, (value, *grads), strict=True):
        np.testing.assert_allclose(got.data if type(got) is pf.Array else got, want, rtol=1e-12, atol=1e-14)


def on_tape(f):
    """The executor of the calls of a function that are noted on the tape."""
    return noted_executor_of(f)


def graph(f):
    """What runs the one differentiable subgraph of a function."""
    (found,) = on_tape(f).optimized.graphs
    return found


def test_a_training_function_shows_its_fused_forward_from_its_third_call_on():
    """R1.27, R1.35: call 1 profiles the graph, call 2 profiles both halves, call 3 is fused."""
    f = pf.jit(loss)
    check(step(f))
    assert on_tape(f).tier == "profiling"
    check(step(f))
    assert on_tape(f).tier == "optimized"
    op = graph(f)
    assert op.forward.tier == op.reverse.tier == "profiling"
    assert op.forward.counters.kernel_launches == op.reverse.counters.kernel_launches == 0
    for call in (1, 2, 3):
        check(step(f))
        assert op.forward.tier == op.reverse.tier == "optimized"
        assert op.forward.counters.kernel_launches == call
        assert op.reverse.counters.kernel_launches == call
    every = [e.counters for e in executor_of(f).chain()]
    assert sum(c.compiles for c in every) == 3, "the graph, its forward half, its reverse half"
    assert sum(c.guard_misses for c in every) == sum(c.fallback_calls for c in every) == 0
    # Ops that were evaluated: six in the profiled run of the graph, and those of the halves.
    assert on_tape(f).counters.evaluated_ops == 6


def test_a_subgraph_is_one_node_whose_outputs_are_those_of_the_function():
    """R2.20, R2.23: nothing within it is on the tape, and temporaries are dropped."""
    f = pf.jit(loss)
    for _ in range(2):
        value, *_ = step(f)
    assert isinstance(value, pf.Array) and type(value.node) is DiffNode
    leaves = [edge[0] for edge in value.node.edges]
    assert [node.name for node in leaves] == ["accumulate_grad"] * 2
    assert len(value.node.metas) == 1 and value.node.metas[0] == ((), np.dtype(float))


def test_what_runs_in_a_subgraph_makes_no_nodes():
    """R2.22: nodes are numbered as they are made, on all tiers of the halves."""
    f = pf.jit(loss)
    step(f)  # of which each op is a node
    leaves = leaf(W), leaf(B)
    last = f(*leaves, X, Y).node
    assert type(last) is DiffNode
    for _ in range(4):
        node = f(*leaves, X, Y).node
        assert node.seq == last.seq + 1
        last = node


def test_without_gradient_mode_the_forward_half_runs_alone():
    """R2.20: no node, and the plain executor is the one of calls with arrays."""
    f = pf.jit(loss)
    for _ in range(3):
        step(f)
    before = graph(f).forward.counters.kernel_launches
    with pf.no_grad():
        value = f(leaf(W), leaf(B), X, Y)
    assert value.node is None and not value.requires_grad
    assert graph(f).forward.counters.kernel_launches == before
    assert executor_of(f).tier == "profiling", "which has met arrays for the first time"
    # The op itself drops what only the reverse half needs.
    with pf.no_grad():
        found = graph(f)(*(leaf(v) for v in (X, W, B, Y)))
    np.testing.assert_allclose(found, np.asarray(value))
    assert graph(f).forward.counters.kernel_launches == before + 1


def test_without_gradient_mode_there_are_as_many_results_as_the_function_has():
    """R2.20: what the reverse half alone needs is dropped, also behind several results."""

    def shared(a, b):
        product = a @ b  # which is kept, and not computed again
        return np.exp(0.1 * product) + 1.0, (product * product).sum(axis=0)

    f = pf.jit(shared)
    for _ in range(3):
        first, second = f(leaf(X), leaf(W))
        (first.sum() + second.sum()).backward()
    with pf.no_grad():
        found = graph(f)(leaf(X), leaf(W))
    wanted = shared(X, W)
    assert len(graph(f).forward.module.main.outputs) > len(found) == 2
    for y, want in zip(found, wanted, strict=True):
        assert not getattr(y, "requires_grad", False)
        np.testing.assert_allclose(y, want)


def test_arrays_that_require_nothing_are_not_noted():
    f = pf.jit(loss)
    value = f(pf.array(W), B, X, Y)
    assert isinstance(value, pf.Array) and value.node is None
    assert on_tape(f) is None


def test_other_sizes_miss_no_guard_of_the_graph():
    """R1.31: sizes are the business of the halves, which specialise again."""
    f = pf.jit(loss)
    for _ in range(3):
        check(step(f))
    for rows in (5, 5, 5):
        x, y = RNG.standard_normal((rows, 3)), RNG.standard_normal((rows, 2))
        check(step(f, x=x, y=y), x, y)
    assert on_tape(f).counters.guard_misses == 0
    assert graph(f).forward.counters.guard_misses == 3
    assert graph(f).reverse.counters.guard_misses == 3
    check(step(f))
    assert graph(f).forward.counters.guard_misses == 3, "the first specialisation still serves"


def test_other_requirements_take_the_fallback_which_is_differentiated_for_them():
    """R1.31, R1.42, R1.44: the fallback is an executor one level deeper, with halves of its own.

    Calls with other arguments that require gradients have plans of their own, so that it is the
    graph itself that is run here.
    """
    f = pf.jit(loss)
    for _ in range(3):
        check(step(f))
    x, want = leaf(X), pf.grad(loss, wrt=2)(W, B, X, Y)
    for call in range(3):
        x.grad = None
        (value,) = on_tape(f).run([W, B, x, Y])
        value.backward()
        np.testing.assert_allclose(x.grad, want, rtol=1e-12)
        assert on_tape(f).counters.guard_misses == call + 1
    (fallback,) = on_tape(f).fallbacks.values()
    assert fallback.depth == on_tape(f).depth - 1
    assert fallback.optimized.graphs[0].output_vjps != graph(f).output_vjps
    check(step(f))
    assert on_tape(f).counters.guard_misses == 3


def test_a_kernel_without_gradients_is_not_given_what_requires_them():
    """R1.39: a graph that was profiled without the requirement of one array asks for its flag."""
    f = pf.jit(lambda a, c, b: ((a * c + 1.0).reshape(-1) * b * b).sum())

    def calls(count, *flags):
        for _ in range(count):
            data = X, Y.mean() * X, X.ravel()
            a, c, b = (leaf(v) if on else v for v, on in zip(data, flags, strict=True))
            # The graph itself: calls with other flags have plans of their own.
            value = f(a, c, b) if all(flags) else on_tape(f).run([a, c, b])[0]
            value.backward()
            part = (data[2] ** 2).reshape(X.shape)
            if flags[0]:
                np.testing.assert_allclose(a.grad, data[1] * part)
            if flags[1]:
                np.testing.assert_allclose(c.grad, data[0] * part)
            np.testing.assert_allclose(b.grad, (2 * (data[0] * data[1] + 1)).ravel() * data[2])

    calls(3, True, True, True)
    calls(4, False, False, True)  # the fallback of the first subgraph is fused without gradients
    calls(4, True, False, True)


def test_the_check_of_a_graph_compares_dtype_rank_and_flag():
    """R1.39: one property at a time; sizes and gradient mode do not matter."""
    f64, f32 = dtype_of(np.dtype(float)), np.float32
    types = [TensorType(f64, (None, None), requires_grad=True)]
    assert flags_fit(types, [leaf(X)]) and flags_fit(types, [leaf(np.ones((1, 7)))])
    with pf.no_grad():
        assert flags_fit(types, [leaf(X)]), "the flag alone counts"
    assert not flags_fit(types, [X]) and not flags_fit(types, [pf.array(X)])
    assert not flags_fit(types, [leaf(X.astype(f32))])
    assert not flags_fit(types, [leaf(X[0])])
    assert not flags_fit(types, [None]) and not flags_fit(types, ["text"])


@pytest.mark.parametrize("mode", ["profiling", "keyed"])
@pytest.mark.parametrize("defined", [(True, True), (True, False), (False, True)], ids=str)
def test_any_of_two_results_may_get_no_gradient(mode, defined):
    """R2.27, R2.30: what is absent adds nothing, at every call."""
    a, b = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
    given = [np.full((4, 3), 2.0), np.arange(3.0)]
    _, back = pf.vjp(two, a, b)
    want = back(tuple(g if d else None for g, d in zip(given, defined, strict=True)))
    with pf.knobs.override(profiling_mode=mode == "profiling"):
        f = pf.jit(two)
    for _ in range(5):
        p, q = leaf(a), leaf(b)
        results = f(p, q)
        chosen = [(r, g) for r, g, d in zip(results, given, defined, strict=True) if d]
        found = pf.gradients([r for r, _ in chosen], [p, q], [g for _, g in chosen])
        for got, w in zip(found, want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-12)


def test_definedness_that_changes_takes_the_fallback_of_the_reverse_half():
    """R1.43: one kernel without tests inside while the observed gradients arrive."""
    a, b = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
    f = pf.jit(two)

    def call(*chosen):
        p, q = leaf(a), leaf(b)
        results = f(p, q)
        given = [np.ones_like(results[k].data) for k in chosen]
        pf.gradients([results[k] for k in chosen], [p, q], given)

    for _ in range(5):
        call(0, 1)
    reverse = graph(f).reverse
    # In a call, what is evaluated is the test of the guard; calls 3 to 5 run natively.
    assert reverse.counters.kernel_launches == 3 and reverse.counters.fallback_calls == 0
    evaluated = reverse.counters.evaluated_ops
    call(0, 1)
    assert reverse.counters.evaluated_ops == evaluated + 1
    for calls in (1, 2, 3):
        call(0)
        assert reverse.counters.fallback_calls == calls
        assert reverse.counters.kernel_launches == 4
    children = graph(f).reverse.fallbacks
    (behind,) = [c for c in children.values() if c.counters.kernel_launches]
    assert behind.counters.kernel_launches == 2 and behind.depth == graph(f).reverse.depth - 1


def test_results_without_a_gradient_leave_zeros_and_not_nothing():
    """R2.27: an input with an edge gets zeros of its shape where the reverse half has none."""

    def pair(a, b):
        e = np.exp(a)
        return e * a, (e * b).sum(axis=0) * b

    f = pf.jit(pair)
    for call in range(5):
        a, b = leaf(X), leaf(np.float32(X[0]))
        first, last = f(a, b)
        first.backward(np.ones_like(X))
        np.testing.assert_allclose(a.grad, np.exp(X) * (X + 1))
        if call:  # before that, each op has a node
            assert first.node is last.node and type(first.node) is DiffNode
            np.testing.assert_array_equal(b.grad, np.zeros(3))
            assert b.grad.dtype == b.dtype


def test_nothing_before_a_gradient_does_not_shift_it():
    """R2.27: the first operand has none, the second one has."""

    def three(a, b):
        e, t = np.exp(a), np.tanh(b)
        return e * a, (e * t).sum(axis=0) * b, t * t

    f = pf.jit(three)
    for call in range(4):
        a, b = leaf(X), leaf(X[0])
        first, _, last = f(a, b)
        last.backward(np.ones(3))
        t = np.tanh(X[0])
        np.testing.assert_allclose(b.grad, 2 * t * (1 - t * t))
        if call:
            assert first.node is last.node
            np.testing.assert_array_equal(a.grad, np.zeros_like(X))


def test_gradients_of_gradients_flow_to_the_result_that_was_saved():
    """R2.25: of two results that the reverse half reads, each has its own place on the tape."""
    k = np.linspace(-1, 1, 9).reshape(3, 3)

    def two_saved(a):
        u = np.exp(a @ k)
        return u, np.tanh(u @ k)

    f = pf.jit(two_saved)
    for weights in ((1.0, 1.0), (1.0, None), (None, 1.0)):  # None: undefined in the reverse half

        def total(results, weights=weights):
            pairs = zip(results, weights, strict=True)
            return sum((y * y).sum() * w for y, w in pairs if w is not None)

        once = pf.grad(lambda a, total=total: total(two_saved(a)))
        want = pf.grad(lambda a, once=once: (once(a) ** 2).sum())(X)
        for call in range(4):
            a = leaf(X)
            u, v = f(a)
            (g,) = pf.gradients([total((u, v))], [a], create_graph=True)
            (found,) = pf.gradients([(g * g).sum()], [a])
            np.testing.assert_allclose(found, want, rtol=1e-9)
            if call:
                assert u.node is v.node
    assert graph(f).captured_outputs == (0, 1)


def test_zeros_are_of_the_operand_which_another_subgraph_may_have_made():
    """R2.27: an edge leads to one of several results, whose shapes differ."""
    made = pf.jit(lambda c: (np.exp(c) * c, (np.exp(c) * c).sum(axis=0)))

    def pair(a, b):
        h = a @ a.T
        return (h * h).sum(), (np.tanh(h).sum() * b).sum()

    f = pf.jit(pair)
    once = pf.grad(lambda a: pair(a, X[0])[0])
    again = pf.grad(lambda a: (once(a) ** 2).sum())(X)
    for call in range(5):
        a, c = leaf(X), leaf(X)
        _, b = made(c)
        first, last = f(a, b)
        found = pf.gradients([first], [a, b], create_graph=True, allow_unused=True)
        np.testing.assert_allclose(found[0].data, once(X), rtol=1e-10)
        (twice,) = pf.gradients([(found[0] ** 2).sum()], [a])
        np.testing.assert_allclose(twice, again, rtol=1e-10)
        if call:
            assert first.node is last.node and first.node.inputs is not None
            assert b.index == 1
            np.testing.assert_array_equal(found[1], np.zeros(3))
            first, _ = f(a, b)
            np.testing.assert_array_equal(pf.gradients([first], [a, b])[1], np.zeros(3))


def test_an_operand_without_gradient_does_not_shift_those_behind_it():
    """R2.27: the edges of the operands and the gradients stay side by side."""
    f = pf.jit(lambda a, n, b: (np.tanh(a * n) * b).sum())
    n = np.array([1, 2, 3])
    for _ in range(4):
        a, b = leaf(X), leaf(X[::-1].copy())
        f(a, n, b).backward()
        np.testing.assert_allclose(b.grad, np.tanh(X * n))
        np.testing.assert_allclose(a.grad, (1 - np.tanh(X * n) ** 2) * n * X[::-1])


def test_lists_of_arrays_are_taken_apart_and_put_together():
    """R2.21, R2.22, R2.24, R2.26: an edge per element; the caller's list stays, and may change."""

    def fn(xs):
        shared = np.exp(xs[0]) * xs[1]
        return shared, [shared * 2.0, shared * xs[1], shared - xs[1]]

    f, e, b2 = pf.jit(fn), np.exp(X), X[::-1]
    for _ in range(4):
        given = a, b = [leaf(X), leaf(X[::-1].copy())]
        first, others = f(given)
        assert given == [a, b] and len(others) == 3
        given[:] = []
        total = first.sum() + sum(k * o.sum() for k, o in enumerate(others, 1))
        total.backward()
        np.testing.assert_allclose(a.grad, (6 + 2 * b2) * e * b2)
        np.testing.assert_allclose(b.grad, (6 + 2 * b2) * e + 2 * e * b2 - 3)
    assert len({id(y.node) for y in (first, *others)}) == 1 and len(first.node.edges) == 2


def test_packing_a_subgraph_and_reading_it_back():
    """R2.18: an equal description; reading another op is an error of ours."""
    f = pf.jit(loss)
    for _ in range(2):
        step(f)
    module = on_tape(f).result.module
    (instr,) = [i for i in module.main.body.walk() if i.op is DiffGraph]
    found = Gradient.of(instr, module)
    attrs = found.pack(found.forward.name, found.reverse.name)
    again = Instr(DiffGraph, instr.operands, instr.results, attrs)
    assert Gradient.of(again, module) == found
    assert attrs == {k: v for k, v in instr.attrs.items() if v is not None}
    with pytest.raises(InternalError, match="is not a differentiated graph"):
        Gradient.of(next(i for i in module.main.body.walk() if i.op is not DiffGraph), module)


def test_one_array_returned_twice_has_both_gradients():
    """R2.28"""

    def twice(a):
        y = np.exp(a) * a
        return y, y

    f = pf.jit(twice)
    for _ in range(4):
        a = leaf(X)
        one, other = f(a)
        found = pf.gradients([one, other], [a], [np.ones_like(X), 2 * np.ones_like(X)])
        np.testing.assert_allclose(found[0], 3 * np.exp(X) * (X + 1))


def test_results_that_are_no_floats_require_no_gradients():
    """R2.23"""
    f = pf.jit(lambda a: (np.exp(a) * a, np.argmax(np.exp(a) * a, axis=1)))
    for _ in range(4):
        a = leaf(X)
        value, index = f(a)
        assert value.requires_grad and not index.requires_grad
        np.testing.assert_array_equal(np.asarray(index), np.argmax(np.exp(X) * X, axis=1))


def test_results_that_are_no_floats_take_no_gradient():
    """R2.26: the gradients of those behind them reach the reverse half."""

    def three(a):
        e = np.exp(a)
        y = e * a
        return np.argmax(y, axis=1), y, e * np.sin(a)

    f = pf.jit(three)
    for _ in range(4):
        a = leaf(X)
        _, first, last = f(a)
        (first * 2.0 + last).backward(np.ones_like(X))
        want = np.exp(X) * (2 * (X + 1) + np.sin(X) + np.cos(X))
        np.testing.assert_allclose(a.grad, want)
    assert first.node is last.node and len(first.node.metas) == 3


def test_what_was_freed_or_written_to_is_an_error_that_leaves_everything_usable():
    """Errors in backward: a second one, a write to a captured array, a hook that raises."""
    f = pf.jit(loss)
    for _ in range(3):
        step(f)
    value, *_ = step(f)
    with pytest.raises(GradientError, match=r"freed by an earlier backward"):
        value.backward()
    g, a = pf.jit(lambda a: (np.sin(a) * a).sum()), leaf(X)
    for _ in range(4):
        value = g(a)  # the call
    with pf.no_grad():
        a *= 2.0  # the write
    with pytest.raises(GradientError, match="was written to afterwards") as caught:
        value.backward()
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    call, write = (
        f"{__file__}:{1 + next(k for k, x in enumerate(lines) if x.endswith(end))}"
        for end in ("# the call", "# the write")
    )
    assert call in str(caught.value) and write in str(caught.value), "both are the user's lines"
    w = leaf(W)

    def fails(gradient):
        raise ZeroDivisionError("a hook of the user's")

    w.register_hook(fails)
    with pytest.raises(ZeroDivisionError):
        f(w, B, X, Y).backward()
    check(step(f))


def test_writes_to_arguments_after_the_call_do_not_reach_gradients():
    """R2.24: what nobody counts the writes to is copied."""
    f = pf.jit(loss)
    for _ in range(4):
        x = X.copy()
        w, b = leaf(W), leaf(B)
        value = f(w, b, x, Y)
        x[...] = 0.0
        value.backward()
        check((value, w.grad, b.grad))


def test_writes_to_results_that_are_no_floats_do_not_reach_gradients():
    """R2.24: the user has the array, and nobody counts the writes to it."""

    def picked(a):
        index = np.argmax(np.sin(a) * a, axis=1, keepdims=True)
        return (np.take_along_axis(a, index, 1) ** 2).sum(), index

    index = np.argmax(np.sin(X) * X, axis=1, keepdims=True)
    want = np.zeros_like(X)
    np.put_along_axis(want, index, 2 * np.take_along_axis(X, index, 1), 1)
    f = pf.jit(picked)
    for _ in range(4):
        a = leaf(X)
        value, found = f(a)
        np.asarray(found)[...] = 0
        value.backward()
        np.testing.assert_allclose(a.grad, want)
    assert 1 in graph(f).captured_outputs, "which the reverse half reads"


def test_a_saved_output_is_no_reference_to_itself():
    """R2.25: a function that saves its own result is freed without the garbage collector."""
    f = pf.jit(lambda a: np.exp(np.tanh(a) @ a.T @ a))
    for _ in range(3):
        a = leaf(X)
        f(a).backward(np.ones_like(X))
    value = f(a)
    assert graph(f).captured_outputs
    gone = weakref.ref(value.node)
    del value
    assert gone() is None


def test_gradients_of_gradients_are_those_of_the_joint_graph():
    """R2.25: captured values are in their places on the tape, so that any order works."""

    def cubic(a):
        return (np.tanh(a) * a * a).sum()

    f, first = pf.jit(cubic), pf.grad(cubic)
    want = pf.grad(lambda a: (first(a) ** 2).sum())(X)
    for _ in range(5):
        a = leaf(X)
        (g,) = pf.gradients([f(a)], [a], create_graph=True)
        (found,) = pf.gradients([(g**2).sum()], [a])
        np.testing.assert_allclose(found, want, rtol=1e-10)


@pytest.mark.parametrize("mode", ["profiling", "keyed"])
def test_gradients_of_gradients_flow_through_temporaries(mode):
    """R2.25, R2.29: a captured product depends on the operands, although it is no result."""

    def layer(w, b):
        h = np.tanh(X @ w + b)
        return ((h @ h.T) ** 2).sum()

    w, b = 0.3 * W, 0.3 * B
    once = pf.grad(layer, wrt=(0, 1))
    want = pf.grad(lambda w, b: sum((g**2).sum() for g in once(w, b)), wrt=(0, 1))(w, b)
    with pf.knobs.override(profiling_mode=mode == "profiling"):
        f = pf.jit(layer)
    for _ in range(4):
        p, q = leaf(w), leaf(b)
        found = pf.gradients([f(p, q)], [p, q], create_graph=True)
        twice = pf.gradients([sum((g**2).sum() for g in found)], [p, q])
        for got, expected in zip(twice, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9)
    value = f(leaf(w), leaf(b))
    assert type(value.node) is DiffNode and value.node.inputs is not None


def test_what_only_gradients_differ_by_is_kept_for_calls_on_the_tape():
    @pf.custom_vjp
    class straight_round:
        def forward(x):
            return np.round(x), None

        def backward(saved, gradient):
            return (gradient,)

    f = pf.jit(lambda a: (straight_round(a) * a + pf.stop_gradient(a) * a).sum())
    for _ in range(5):
        a = leaf(X)
        f(a).backward()
        np.testing.assert_allclose(a.grad, X + np.round(X) + X)


def test_writes_inside_of_the_function_are_seen_by_gradients():
    def filled(a, b):
        rows = np.zeros((4, 3))
        rows[0] = a
        view = rows[1:3]
        view[...] = b
        rows[1] *= 2.0
        return (np.sin(rows) * rows).sum() + view.sum()

    a, b = RNG.standard_normal(3), RNG.standard_normal((2, 3))
    want = pf.grad(filled, wrt=(0, 1))(a, b)
    for mode in (True, False):
        with pf.knobs.override(profiling_mode=mode):
            f = pf.jit(filled)
        for _ in range(5):
            p, q = leaf(a), leaf(b)
            f(p, q).backward()
            np.testing.assert_allclose(p.grad, want[0], rtol=1e-12)
            np.testing.assert_allclose(q.grad, want[1], rtol=1e-12)


def test_the_record_of_a_branch_alone_asks_for_gradients():
    """R1.28: an observer inside of a block suffices."""
    f = pf.jit(lambda a, c: pf.cond(c.sum() > 0, lambda: (np.exp(a) * a).sum(), c.sum))
    f(leaf(X), np.ones(2))
    record = on_tape(f).record.module
    assert was_differentiated(record)
    for instr in record.main.body.instrs:  # take what the top block has seen
        instr.attrs.pop("profiled_type", None)
    assert was_differentiated(record)


def test_a_plan_hands_out_the_backward_executors_of_its_subgraphs():
    """R2.17: one for each, and none for other ops."""
    f = pf.jit(lambda a: (np.exp(a) * a).reshape(-1).sum())
    for _ in range(3):
        f(leaf(X)).backward()
    (graph,) = on_tape(f).optimized.graphs
    assert graph.reverse.counters.kernel_launches > 0
    g = pf.jit(lambda a: np.exp(a) * a)
    g.warmup(X)
    assert executor_of(g).optimized.graphs == ()


def test_keyed_reverse_halves_look_their_plans_up(profiling_off):
    """R2.19: made once and shared; two backwards with equal specs are a miss and a hit."""
    f = pf.jit(lambda a: (np.tanh(np.exp(a) * a) * np.sin(a) + np.cos(a)).sum())
    for _ in range(2):
        a = leaf(X)
        f(a).backward()
    (plan,) = [s.plan for s in on_tape(f).compiled()]
    (reverse,) = [graph.reverse for graph in plan.graphs]
    assert reverse.counters.cache_misses == 1 and reverse.counters.cache_hits == 1
    assert on_tape(f).counters.cache_misses == on_tape(f).counters.cache_hits == 1
    assert reverse.counters.kernel_launches == 2 and reverse.counters.evaluated_ops == 0


@pytest.mark.parametrize(("ops", "inlines", "kept"), [(4, True, 0), (5, True, 1), (4, False, 1)])
def test_keyed_subgraphs_of_few_ops_are_put_back(profiling_off, ops, inlines, kept):
    """R2.15: 4 ops are inlined and 5 are not; with the debug switch off none is."""

    def chain(a):
        for _ in range(ops):
            a = np.sin(a)
        return a

    f = pf.jit(chain)
    with subgraph_inlining(inlines):
        f(leaf(X)).backward(np.ones_like(X))
    (plan,) = [s.plan for s in on_tape(f).compiled()]
    assert len(plan.graphs) == kept


def test_the_debug_switch_of_one_thread_leaves_that_of_another_alone():
    """R2.15"""
    seen = []
    with subgraph_inlining(False):
        thread = threading.Thread(target=lambda: seen.append(inlines_subgraphs()))
        thread.start()
        thread.join()
        assert not inlines_subgraphs()
    assert seen == [True] and inlines_subgraphs()


@pytest.mark.parametrize("inlines", [True, False])
def test_one_differentiable_op_is_no_subgraph_but_for_debugging(inlines):
    """R1.29, R1.34"""
    f = pf.jit(lambda a: np.exp(a))
    with subgraph_inlining(inlines):
        for _ in range(3):
            a = leaf(X)
            f(a).backward(np.ones_like(X))
            np.testing.assert_allclose(a.grad, np.exp(X))
    assert len(on_tape(f).optimized.graphs) == (not inlines)


def test_flush_state_explain_and_the_tree_of_executors_include_halves():
    f = pf.jit(loss)
    for _ in range(3):
        check(step(f))
    names = [e.options.name for e in executor_of(f).chain()]
    assert [n for n in names if "diff" in n and "fallback" not in n] == [
        "loss/gradients/diff_0_forward",
        "loss/gradients/diff_0_reverse",
    ]
    counters = f.state().counters
    assert counters["compiles"] == 3 and counters["kernel_launches"] == 2
    assert "diff_0_forward" in f.explain() and "diff_0_reverse" in f.explain()
    f.flush()
    assert on_tape(f) is None
    assert f.state().counters["compiles"] == 3, "counts of what was dropped are kept"
    check(step(f))
    assert on_tape(f).tier == "profiling"


def test_stress_mode_changes_no_gradient():
    """Guards of the graph and of its halves fail on purpose."""
    with pf.knobs.override(stress="guards:k=2,seed=3"):
        f = pf.jit(loss)
        for _ in range(12):
            check(step(f))
    assert sum(e.counters.forced_misses for e in executor_of(f).chain()) > 0


def test_strict_fusion_of_a_graph_with_gradients():
    """R1.46: the guard of the one subgraph counts as that of a group."""

    @pf.jit
    def fused(w, b, x, y):
        with pf.strict_fusion():
            return loss(w, b, x, y)

    for _ in range(4):
        check(step(fused))


_SCRIPT = """
import sys
import numpy as np, profuse as pf
rng = np.random.default_rng(1)
X, Y, W = rng.standard_normal((8, 3)), rng.standard_normal((8, 2)), rng.standard_normal((3, 2))
@pf.jit
def loss(w, x, y):
    return ((np.tanh(x @ w) - y) ** 2).mean()
for _ in range(int(sys.argv[1])):
    w = pf.array(W, requires_grad=True)
    loss(w, X, Y).backward()
    loss.wait()
c = loss.state().counters
print(c["profiled_runs"], c["profiles_restored"], c["evaluated_ops"], c["kernel_launches"])
np.testing.assert_allclose(w.grad, pf.grad(lambda w: ((np.tanh(X @ w) - Y) ** 2).mean())(W))
"""


def test_a_second_process_trains_natively_from_its_first_step(tmp_path):
    """Profiles and compiles of the graph and of both halves are found on disk."""
    environment = {
        "PROFUSE_CACHE": "on",
        "PROFUSE_CACHE_DIR": str(tmp_path),
        "PROFUSE_BACKGROUND": "off",
        "PYTHONPATH": PARENT,
        "PATH": "/usr/bin:/bin",
    }

    def counts(steps):
        made = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(steps)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return list(map(int, made.stdout.split()))

    assert counts(3)[:2] == [3, 0]
    assert counts(1) == [0, 3, 0, 2]


def test_profiles_of_calls_on_the_tape_and_of_others_are_kept_apart(folder):
    """A later function finds both: neither is specialised for what the other has seen."""
    f = pf.jit(loss)
    for _ in range(4):
        check(step(f))
        f(W, B, X, Y)
    again = pf.jit(loss)
    check(step(again))
    np.testing.assert_allclose(again(W, B, X, Y), loss(W, B, X, Y))
    counters = again.state().counters
    assert counters["profiles_restored"] == 4 and counters["profiled_runs"] == 0
    assert counters["guard_misses"] == 0 and counters["kernel_launches"] == 3


def _of_sizes(x):
    return (x.shape[0] * 2.0 + 1.0) / (x.size + 3.0)


def _filled_by_sizes(x):
    return np.full(x.shape[0] * 2 - 1, x.size / 7.0 + 0.5)


def _one_op_beside_sizes(x):
    return x * ((x.shape[0] + 2.0) / (x.size * 3.0))


@pytest.mark.parametrize("f", [_of_sizes, _filled_by_sizes, _one_op_beside_sizes])
def test_arithmetic_on_sizes_is_no_subgraph(f):
    """R1.29"""
    jitted = pf.jit(f)
    for _ in range(4):
        x = pf.array(np.arange(4.0), requires_grad=True)
        y = jitted(x)
        np.testing.assert_array_equal(np.asarray(y.data if type(y) is pf.Array else y), f(x.data))
        if f is _one_op_beside_sizes:
            y.sum().backward()
            np.testing.assert_allclose(x.grad, np.full(4, 0.5))
    assert "diff_graph" not in jitted.ir()
    assert jitted.state().counters["fallback_calls"] == 0
