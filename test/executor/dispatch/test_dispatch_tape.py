"""Calls with arrays of the tape in emitted code do, count and raise what they do in Python."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import profuse as pf
import pytest
from dispatched import X, Y, hits
from every_case import spread
from internals import entries_alive, noted_executor_of, reverse_hits
from profuse.dialect.errors import GradientError, TraceError
from profuse.executor.plans.differentiable import DiffNode
from profuse.executor.settings.knobs import knobs


def leaf(data):
    return pf.array(data, requires_grad=True)


def close(got, want):
    np.testing.assert_allclose(got.data if type(got) is pf.Array else got, want, rtol=1e-5, atol=1e-6)


def loss(x, y):
    return (np.tanh(x + y) * x).sum()


def pair(x, y):
    z = np.exp(0.1 * x * y)
    return {"z": z + x, "sum": (z * z).sum(), "first": np.argmax(z * 2, axis=1)}


def warm(fn, *args, runs=4):
    f = pf.jit(fn)
    for _ in range(runs):
        backward(f(*args))
    assert f.state().emitted, f.explain()
    return f


def backward(result):
    """Run backwards from the sum of all float results."""
    found = [result] if type(result) is pf.Array else list(result.values())
    total = sum(y.sum() for y in found if y.requires_grad)
    total.backward()


def natively(f, *args, **kwargs):
    """The result of a call, and how many calls and reverse halves emitted code has run for it."""
    before = hits(f), reverse_hits(f)
    result = f(*args, **kwargs)
    if getattr(result, "requires_grad", False):
        result.sum().backward()
    return result, hits(f) - before[0], reverse_hits(f) - before[1]


def test_a_training_step_runs_in_emitted_code():
    """R2.19, R2.20: guards and kernels of both halves without Python, and one node."""
    f, x, y = warm(loss, leaf(X), leaf(Y)), leaf(X), leaf(Y)
    counters = f.state().counters
    value, forward, reverse = natively(f, x, y)
    assert (forward, reverse) == (1, 1)
    assert type(value.node) is DiffNode and len(value.node.edges) == 2
    want, grads = pf.value_and_grad(loss, wrt=(0, 1))(X, Y)
    for got, expected in zip((value, x.grad, y.grad), (want, *grads), strict=True):
        close(got, expected)
    after = f.state().counters
    grown = {name: after[name] - n for name, n in counters.items() if after[name] != n}
    assert grown == {"calls": 1, "guard_hits": 3, "kernel_launches": 2}


CALLS = {
    "noted": lambda: (leaf(X), leaf(Y)),
    "first": lambda: (leaf(X), Y),
    "second": lambda: (X, leaf(Y)),
    "array": lambda: (leaf(X), pf.array(Y)),
    "unnoted": lambda: (pf.array(X), pf.array(Y)),
    "mixed": lambda: (X, pf.array(Y)),
    "plain": lambda: (X, Y),
    "sizes": lambda: (leaf(X[:3]), leaf(Y[:3])),
    "broadcast": lambda: (leaf(X), leaf(Y[0])),
    "strides": lambda: (leaf(X.T), pf.array(Y.T, copy=None)),
    "dtype": lambda: (leaf(X.astype(float)), leaf(Y.astype(float))),
    "computed": lambda: (leaf(X) * 2, leaf(Y).reshape(16).reshape(4, 4)),
    "one twice": lambda: (x := leaf(X), x),
    "scalar": lambda: (leaf(X), np.float32(2)),
    "noted scalar": lambda: (leaf(X), leaf(np.float32(2))),
    "rank 0": lambda: (leaf(X), leaf(np.array(2, np.float32))),
    "number": lambda: (leaf(X), 2.0),
    "empty": lambda: (leaf(X[:0]), leaf(Y[:0])),
    "none": lambda: (leaf(X), None),
    "frozen": lambda: (leaf(X), np.broadcast_to(Y[0], (4, 4))),
}


def done(f, make, *, mode=True):
    """What a call and its gradients are; errors by their text."""
    args = make()
    try:
        with pf.no_grad() if not mode else pf.enable_grad():
            result = f(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    flat = result.values() if isinstance(result, dict) else [result]
    out = [(type(y), y.dtype, np.asarray(y.data if type(y) is pf.Array else y).tobytes()) for y in flat]
    noted = [getattr(y, "requires_grad", False) for y in flat]
    if any(noted):
        backward(result)
    gradients = [None if type(x) is not pf.Array or x.grad is None else x.grad.tobytes() for x in args]
    return out, noted, gradients


def outcome(fn, calls, *, native):
    """What each call does, and all that is counted in the end."""
    with knobs.override(native_dispatch=native):
        f = pf.jit(fn)
        found = [done(f, CALLS[name], mode=mode) for name, mode in calls]
        state = f.state()
        assert native == state.emitted
        counted = {k: n for k, n in state.counters.items() if "_checked" not in k}
        guards = [(s.guard, s.hits, s.misses, s.executor) for s in state.specializations]
        lines = [
            line
            for line in f.explain().splitlines()
            if not any(word in line for word in (" ms", "checked", "dispatched in Python"))
        ]
        return found, counted, guards, lines


@pytest.mark.parametrize(("seed", "fn"), spread([(seed, fn) for seed in range(4) for fn in (loss, pair)], 5))
def test_emitted_code_and_python_agree_on_random_calls(fn, seed):
    """Values, gradients, errors, and every count of every executor."""
    rng = np.random.default_rng(seed)
    names = [*rng.choice([name for name in CALLS if name != "none"], 4), "noted", "none"]
    calls = [(n, rng.random() < 0.8) for n in rng.choice(names, 60, p=[0.12] * 4 + [0.5, 0.02])]
    calls += [("noted", True)] * 4
    native, python = (outcome(fn, calls, native=on) for on in (True, False))
    for got, want in zip(native, python, strict=True):
        assert got == want


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in CALLS if name != "none"])
def test_each_kind_of_call_is_right_and_settles(name):
    """Ten calls of one kind between calls of another are what Python makes of them."""
    calls = [("noted", True)] * 5 + [(name, True)] * 10 + [("noted", True), (name, False)] * 3
    native, python = (outcome(loss, calls, native=on) for on in (True, False))
    assert native[0] == python[0] and native[1] == python[1] and native[2] == python[2]


@pytest.mark.parametrize("name", ["noted", "first", "second", "array", "unnoted", "mixed", "plain", "sizes", "strides"])
def test_what_is_emitted(name):
    """Each of these calls is answered by emitted code once its plans have settled."""
    f = pf.jit(loss)
    for make in (CALLS["noted"], CALLS[name]):
        for _ in range(6):
            done(f, make)
    before = hits(f), reverse_hits(f)
    noted = done(f, CALLS[name])[1]
    assert (hits(f), reverse_hits(f)) == (before[0] + 1, before[1] + any(noted)), f.explain()


def test_without_gradient_mode_nothing_is_noted():
    """R2.20, of the thread that calls."""
    f, x, y = warm(loss, leaf(X), leaf(Y)), leaf(X), leaf(Y)
    with pf.no_grad():
        for _ in range(5):
            value = f(x, y)
        assert natively(f, x, y)[1:] == (1, 0)
    assert type(value) is pf.Array and value.node is None
    found = []
    with pf.no_grad():
        thread = threading.Thread(target=lambda: found.append(f(x, y)))
        thread.start()
        thread.join()
    assert found[0].requires_grad, "gradient mode is that of the thread"
    assert natively(f, x, y)[1:] == (1, 1)


def test_views_are_read_where_they_belong():
    """A view whose base was written to has another node; emitted code leaves it to Python."""
    f = warm(loss, leaf(X), leaf(Y))
    base = leaf(np.concatenate([X, X])) * 1.0
    view = base[:4]

    def forwards(x):
        before = hits(f)
        return f(x, leaf(Y)), hits(f) - before

    value, native = forwards(view)
    assert native == 1 and value.requires_grad
    base *= 2.0
    want = f(leaf(2 * X), leaf(Y))
    value, native = forwards(view)
    assert native == 0, "its node is made when it is asked for"
    np.testing.assert_array_equal(value.data, want.data)
    assert forwards(view)[1] == 1
    with pf.no_grad():
        inner = leaf(X)[:4]
    assert inner.base is not None and not inner.requires_grad
    for _ in range(6):
        f(inner, leaf(Y))
    assert forwards(inner)[1] == 1


def test_containers_and_keywords():
    def layer(p, x, *, scale):
        return np.tanh(x @ p["w"] + p["b"]) * scale

    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((3, 2)), rng.standard_normal(2)
    x = rng.standard_normal((5, 3))
    f, joint = pf.jit(layer), pf.grad(lambda p, x: layer(p, x, scale=2.0).sum())
    for call in range(6):
        p = {"w": leaf(w), "b": leaf(b)}
        before = hits(f) if call > 4 else 0
        f(p, x, scale=2.0).sum().backward()
        want = joint({"w": w, "b": b}, x)
        np.testing.assert_allclose(p["w"].grad, want["w"], rtol=1e-12)
        np.testing.assert_allclose(p["b"].grad, want["b"], rtol=1e-12)
    assert hits(f) == before + 1


def test_writes_after_the_call_are_seen_or_do_not_reach_gradients():
    """R2.24: arrays of the tape have a count of writes, others are copied."""
    f, x = warm(loss, leaf(X), Y), leaf(X)
    y = Y.copy()
    value = f(x, y)
    y[...] = 0
    value.backward()
    close(x.grad, pf.grad(loss)(X, Y))
    value = f(x, y)
    with pf.no_grad():
        x *= 2
    with pytest.raises(GradientError, match="written to afterwards") as caught:
        value.backward()
    assert __file__ in str(caught.value)
    assert natively(f, leaf(X), Y)[1:] == (1, 1)


def test_hooks_that_pack_are_called():
    f, x = warm(loss, leaf(X), leaf(Y)), leaf(X)
    packed = []
    with pf.saved_arrays_hooks(lambda a: packed.append(a) or len(packed) - 1, packed.__getitem__):
        value = f(x, leaf(Y))
    assert len(packed) == 2
    value.backward()
    close(x.grad, pf.grad(loss)(X, Y))

    def fails(a):
        raise ZeroDivisionError("a hook of the user's")

    with pytest.raises(ZeroDivisionError), pf.saved_arrays_hooks(fails, fails):
        f(x, leaf(Y))
    assert natively(f, leaf(X), leaf(Y))[1:] == (1, 1)


def test_gradients_of_gradients():
    """R2.25: under create_graph the reverse half is a call on the tape."""
    f = warm(lambda a: (np.tanh(a) * a * a).sum(), leaf(X))
    first = pf.grad(lambda a: (np.tanh(a) * a * a).sum())
    want = pf.grad(lambda a: (first(a) ** 2).sum())(X)
    for _ in range(5):
        a = leaf(X)
        (g,) = pf.gradients([f(a)], [a], create_graph=True)
        (found,) = pf.gradients([(g**2).sum()], [a])
        np.testing.assert_allclose(found, want, rtol=1e-4)


def test_a_flush_reaches_both_halves():
    """R1.14: code for forward and reverse halves goes, nodes made before run to their end."""
    f, x = warm(loss, leaf(X), leaf(Y)), leaf(X)
    alive = entries_alive()
    value = f(x, leaf(Y))
    f.flush()
    assert not f.state().emitted
    assert f.state().counters["compiles"] == 3
    value.backward()
    close(x.grad, pf.grad(loss)(X, Y))
    del value
    gc.collect()
    assert entries_alive() < alive
    for _ in range(4):
        backward(f(x, leaf(Y)))
    assert f.state().counters["compiles"] == 6
    assert natively(f, x, leaf(Y))[1:] == (1, 1)


def test_a_node_outlives_its_function():
    f, x = warm(loss, leaf(X), leaf(Y)), leaf(X)
    value, gone = f(x, leaf(Y)), weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    value.backward()
    close(x.grad, pf.grad(loss)(X, Y))


def test_arrays_that_are_half_made_are_left_to_python():
    """What has no fields cannot crash the process."""
    f = warm(loss, leaf(X), leaf(Y))
    empty, half, wrong = object.__new__(pf.Array), leaf(X), leaf(X)
    del half.data
    wrong.base = 5
    for broken in (empty, half, wrong):
        with pytest.raises((AttributeError, TraceError)):
            f(broken, leaf(Y))
    assert natively(f, leaf(X), leaf(Y))[1:] == (1, 1)


def test_calls_leave_references_as_they_were():
    f, g = warm(loss, leaf(X), leaf(Y)), warm(pair, leaf(X), leaf(Y))
    x, y = leaf(X), leaf(Y)
    for _ in range(5):
        with pf.no_grad():
            f(x, y)
            g(x, y)
    watched = (x, y, x.data, y.data, x.node, None, X.dtype)

    def go(times):
        for _ in range(times):
            f(x, y).backward()
            g(x, y)
            with pf.no_grad():
                f(x, y)
                g(x, y)
            x.grad = y.grad = None

    go(20)
    gc.collect()
    counts, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    before = hits(f), hits(g)
    go(500)
    gc.collect()
    assert (hits(f) - before[0], hits(g) - before[1]) == (1000, 1000)
    after = [sys.getrefcount(o) for o in watched]
    assert max(abs(a - b) for a, b in zip(after, counts, strict=True)) < 30
    assert abs(sys.getallocatedblocks() - blocks) < 300


LAYERS = {
    "bias": lambda x, w, b: np.tanh(x @ w + b),
    "relu": lambda x, w, b: np.maximum(x @ w + b, 0),
    "sum": lambda x, w, b: (x @ w).sum(axis=0) + b,
    "mean": lambda x, w, b: (x @ w).mean(axis=1).sum() + b * x.sum(axis=(0, -1)),
    "scaled": lambda x, w, b: (x @ w) * b + b,
    "column": lambda x, w, b: np.exp(x.sum(axis=1, keepdims=True)) * b + w.sum(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LAYERS)
def test_whole_layers_run_in_emitted_code(name):
    """R2.29: sizes that the reverse half needs come from arrays, so that it runs as one kernel."""
    rng, fn = np.random.default_rng(0), LAYERS[name]
    given = [rng.standard_normal(shape) for shape in ((5, 3), (3, 2), (2,))]
    f = warm(fn, *map(leaf, given))
    x, w, b = map(leaf, given)
    assert natively(f, x, w, b)[1:] == (1, 1), f.explain()
    want = pf.grad(lambda *a: fn(*a).sum(), wrt=(0, 1, 2))(*given)
    for got, expected in zip((x.grad, w.grad, b.grad), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_of_arrays_whose_sizes_alone_are_read_no_memory_is_kept():
    """R2.29: a bias may be written to, and a large array is freed, before backward runs."""
    f = warm(lambda a, b: np.tanh(a) * a + b, leaf(X), leaf(Y))
    a, b, large = leaf(X), leaf(Y), leaf(Y) * 1.0
    value = f(a, large)
    gone = weakref.ref(large.data)
    del large
    assert gone() is None
    value.sum().backward()
    value = f(a, b)
    with pf.no_grad():
        b += 1
    value.sum().backward()
    np.testing.assert_array_equal(b.grad, np.ones_like(Y))


def test_an_operand_of_a_product_whose_sizes_alone_are_read_may_be_written_to():
    """R2.29: the gradient of a vector reads its size, through views of it."""
    f, x = pf.jit(lambda x, v: np.sort(x @ v)), np.arange(12.0).reshape(3, 4)
    for _ in range(4):
        v = leaf(np.arange(4.0))
        value = f(x, v)
        with pf.no_grad():
            v += 1
        value.sum().backward()
        np.testing.assert_array_equal(v.grad, [12.0, 15.0, 18.0, 21.0])
    assert noted_executor_of(f).optimized.graphs


def test_a_graph_of_more_than_one_subgraph_is_dispatched_in_python():
    f = pf.jit(lambda a: np.tanh((np.exp(a) * a).reshape(-1) * 2.0) * 3.0)
    for _ in range(5):
        f(leaf(X)).sum().backward()
    assert len(noted_executor_of(f).optimized.graphs) == 2
    assert not f.state().emitted and reverse_hits(f) == 4, "reverse halves are emitted"
