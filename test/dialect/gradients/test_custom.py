"""Functions with gradients of their own, stopped gradients, recomputed ones."""

import contextlib
import gc
import pickle
import weakref

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, TraceError
from profuse.dialect.ops import custom_rules
from profuse.dialect.ops.custom_rules import CustomRule, RuleKey, key_of

X, Y = np.array([0.3, 1.7, 2.2]), np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


@pf.custom_vjp
class straight:
    """Rounds, with the gradient of the identity."""

    def forward(x):
        return np.round(x), None

    def backward(saved, g):
        return (g,)


@pf.custom_vjp
class waves:
    def forward(x, y):
        return (np.sin(x) * y, {"sum": x + y}), (x, {"y": y}, "label")

    def backward(saved, g):
        x, kept, label = saved
        assert label == "label"
        by_sum = g[1]["sum"]
        return g[0] * np.cos(x) * kept["y"] + by_sum, g[0] * np.sin(x) + by_sum


def plain(x, y):
    return np.sin(x) * y, {"sum": x + y}


def combined(fn):
    def f(x, y):
        a, b = fn(x, y)
        return (a * b["sum"]).sum()

    return f


def test_outside_of_a_trace_it_is_the_forward_function():
    np.testing.assert_array_equal(straight(X), np.round(X))
    np.testing.assert_array_equal(waves(X, Y)[1]["sum"], X + Y)


def test_its_own_gradient_is_used_and_compiled():
    f = pf.grad(lambda x: (straight(x) * Y).sum(), background=False)
    for _ in range(3):
        np.testing.assert_array_equal(f(X), Y)
    assert f.state().counters["kernel_launches"] >= 2


def test_trees_and_several_results():
    for wrt in (0, 1, (0, 1)):
        found = pf.grad(combined(waves), wrt=wrt)(X, Y)
        np.testing.assert_allclose(found, pf.grad(combined(plain), wrt=wrt)(X, Y))


@pytest.mark.parametrize("where", ["loop", "branch", "writes", "twice"])
def test_wherever_it_is_called(where):
    def f(fn):
        def loop(x, y):
            return pf.fori_loop(0, 3, lambda i, c: fn(c, y)[0] + x, x).sum()

        def branch(x, y):
            return pf.cond(x.sum() > 0, lambda: fn(x, y)[0], lambda: y).sum()

        def writes(x, y):
            z = np.zeros(3)
            z[0] = x[1]
            z[1:] += fn(x, y)[0][:2]
            return (z * z).sum()

        def twice(x, y):
            return pf.grad(lambda x: fn(x, y)[0].sum())(x).sum()

        return {"loop": loop, "branch": branch, "writes": writes, "twice": twice}[where]

    found, wanted = (pf.grad(f(fn), wrt=(0, 1))(X, Y) for fn in (waves, plain))
    np.testing.assert_allclose(found, wanted)


def test_forward_mode_is_refused():
    with pytest.raises(TraceError, match="has no forward mode"):
        pf.jvp(straight, (X,), (X,))


def test_functions_that_return_something_else():
    @pf.custom_vjp
    class alone:
        def forward(x):
            return x

        def backward(saved, g):
            return g

    @pf.custom_vjp
    class short:
        def forward(x, y):
            return x * y, None

        def backward(saved, g):
            return (g,)

    @pf.custom_vjp
    class other:
        def forward(x):
            return x["a"] * 2, None

        def backward(saved, g):
            return (g,)

    with pytest.raises(ArgumentError, match="must return a pair"):
        alone(X)
    with pytest.raises(ArgumentError, match="must return a tuple of 2 gradients"):
        pf.grad(lambda x: short(x, x).sum())(X)
    with pytest.raises(ArgumentError, match="another structure than its"):
        pf.grad(lambda x: other({"a": x}).sum())(X)
    with pytest.raises(ArgumentError, match="forward and backward"):
        pf.custom_vjp(type("without", (), {}))


def test_the_gradient_of_the_only_argument_may_stand_for_itself():
    """R4.22: what is no tuple is wrapped; in traces, on the tape, and captured."""

    @pf.custom_vjp
    class tripled:
        def forward(x):
            return x * 3, None

        def backward(saved, g):
            return g * 30

    @pf.custom_vjp
    class of_a_dict:
        def forward(x):
            return x["a"] * 2, None

        def backward(saved, g):
            return {"a": g * 20}

    np.testing.assert_array_equal(pf.grad(lambda x: tripled(x).sum())(X), np.full_like(X, 30))
    np.testing.assert_array_equal(pf.grad(lambda x: of_a_dict({"a": x}).sum())(X), np.full_like(X, 20))
    for scope in (contextlib.nullcontext(), pf.compiled_autograd(lambda made: made.interpret)):
        x = pf.array(X, requires_grad=True)
        with scope:
            (tripled(x) + of_a_dict({"a": x})).sum().backward()
        np.testing.assert_array_equal(x.grad, np.full_like(X, 50))


def test_stopped_gradients():
    def f(x):
        kept = pf.stop_gradient({"x": x, "n": 3})
        return (kept["x"] * x * kept["n"]).sum()

    np.testing.assert_allclose(pf.grad(f)(X), 3 * X)
    assert pf.stop_gradient(X) is X


def test_checkpoints_have_the_same_gradients_and_save_less():
    def block(x, w):
        return np.tanh(np.cumsum(np.exp(np.cumsum(x * w))) + np.cos(x)) * x

    again = pf.checkpoint(block)
    np.testing.assert_array_equal(again(X, Y), block(X, Y))
    saved = []
    for fn in (block, again):
        result, pull = pf.vjp(fn, X, Y)
        np.testing.assert_allclose(pull(np.ones(3)), pf.grad(_summed(block), wrt=(0, 1))(X, Y))
        saved.append(
            sum(
                np.size(c.cell_contents)
                for c in pull.__closure__
                if isinstance(c.cell_contents, list)
                for _ in c.cell_contents
            )
        )
        np.testing.assert_allclose(result, block(X, Y))
    assert saved[1] < saved[0]
    np.testing.assert_allclose(pf.jvp(again, (X, Y), (Y, X))[1], pf.jvp(block, (X, Y), (Y, X))[1])


def _summed(fn):
    return lambda *args: fn(*args).sum()


def test_what_reads_more_than_it_is_given_is_refused():
    """Its gradient by that would be lost."""

    def again(x):
        return pf.checkpoint(lambda y: y * x)(x).sum()

    def own(x):
        @pf.custom_vjp
        class times:
            def forward(y):
                return y * x, None

            def backward(saved, g):
                return (g,)

        return times(x).sum()

    for f in (again, own):
        with pytest.raises(TraceError, match="pass it as an argument"):
            pf.grad(f)(X)


def scaled(by):
    """A function with a gradient of its own, whose rule is made of what the caller has."""

    @pf.custom_vjp
    class times:
        def forward(x):
            return x * by, None

        def backward(saved, g):
            return g * by

    return times


def test_rules_go_with_what_needs_them():
    def used(by):
        times = scaled(by)
        np.testing.assert_array_equal(pf.grad(pf.jit(lambda x: (times(x) * Y).sum()))(X), Y * by)
        return weakref.ref(times)

    gc.collect()
    before = len(custom_rules._rules)
    rules = [used(by) for by in range(4)]
    for by in range(64):  # so many functions are remembered by what is made of them
        pf.grad(lambda x, by=by: x * by)
    gc.collect()
    assert [rule() for rule in rules] == [None] * 4 and len(custom_rules._rules) <= before


def test_a_graph_keeps_its_rules():
    @pf.jit(background=False)
    def f(x):
        return scaled(3.0)(x) * x

    for size in (3, 3, 3, 2, 2, 2):
        gc.collect()
        x = pf.array(np.arange(1.0, size + 1), requires_grad=True)
        f(x).sum().backward()
        np.testing.assert_array_equal(x.grad, 6 * x.data)
    assert f.state().counters["kernel_launches"] >= 4


def test_numbers_of_rules_are_not_given_again():
    def rule(by):
        return CustomRule("r", by, "one structure")

    first = key_of(rule(max))
    assert key_of(rule(max)) == first and key_of(rule(max)).rule is first.rule
    assert pickle.loads(pickle.dumps(first)).rule is first.rule
    number, later = int(first), key_of(rule(min))
    del first
    gc.collect()
    assert RuleKey(number).rule is None
    assert len({number, later, key_of(rule(abs))}) == 3
