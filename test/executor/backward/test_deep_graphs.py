"""Deep graphs: linear in their nodes, without recursion, in sections that are compiled once."""

from __future__ import annotations

import functools
import gc
import sys
import time

import numpy as np
import profuse as pf
import pytest
from captured_programs import INTERPRETED, captured, register, two_results
from every_case import EVERY_CASE
from profuse.dialect.analysis.sections import sections
from profuse.executor.backward import compile as compiling
from profuse.executor.interpret.evaluate import Evaluator

RNG = np.random.default_rng(8)
LAYERS = 40 if EVERY_CASE else 24  # several sections of few ops


@pytest.fixture(autouse=True)
def _foreground():
    with pf.knobs.override(background=False):
        yield


@pytest.fixture
def short(monkeypatch):
    """Sections of few ops."""
    monkeypatch.setattr(compiling, "sections", functools.partial(sections, least=24))


def leaf(*shape):
    return pf.array(0.5 * RNG.standard_normal(shape), requires_grad=True)


def chain(x, nodes, after=lambda y: None):
    y = x
    for _ in range((nodes - 1) // 2):
        y = np.tanh(y) * x
        after(y)
    return y.sum()


def gradients(loss, leaves, compiler=None):
    for x in leaves:
        x.grad = None
    with pf.compiled_autograd(compiler):
        loss().backward()
    return [np.array(x.grad) for x in leaves]


def agree(loss, leaves, runs=3):
    """The gradients of captured runs are those of the eager tape."""
    for x in leaves:
        x.grad = None
    loss().backward()
    wanted = [np.array(x.grad) for x in leaves]
    for _ in range(runs):
        for a, b in zip(gradients(loss, leaves), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def function():
    return pf.compiled_autograd.state().runs[-1].function


def state():
    return function().state()


# --- sections -------------------------------------------------------------------------------------


def test_sections_that_are_equal_are_compiled_once(short):
    x = leaf(4, 4)
    nodes = 400 if EVERY_CASE else 200
    agree(lambda: chain(x, nodes + 1), [x])
    found = state()
    assert found.tier == "optimized" and found.counters["compiles"] <= 3
    assert found.counters["calls"] == 3 and found.counters["guard_misses"] == 0
    # Twice as many sections, and not one kernel more.
    compiled = found.counters["kernels_compiled"]
    pf.compiled_autograd.reset()
    agree(lambda: chain(x, 2 * nodes + 1), [x])
    assert state().counters["kernels_compiled"] == compiled
    assert state().counters["kernel_launches"] > 1.5 * found.counters["kernel_launches"]


def test_a_state_tells_of_all_sections(short):
    x = leaf(4, 4)
    agree(lambda: chain(x, 101), [x], runs=1)
    assert state().tier == "profiling" or state().counters["compiles"] < 3
    agree(lambda: chain(x, 101), [x], runs=1)
    assert state().tier == "optimized"
    text = pf.compiled_autograd.explain()
    names = {s.executor for s in state().specializations}
    assert len(names) > 1 and all(f"{name} runs as native code" in text for name in names)


def test_sections_are_emitted(short):
    x = leaf(4, 4)
    agree(lambda: chain(x, 201), [x], runs=12)
    assert state().emitted and state().counters["calls"] == 12
    assert state().counters["evaluated_ops"] < 201 * 6  # in the profiled runs alone


def test_beside_the_program(short):
    x = leaf(4, 4)
    with pf.knobs.override(background=True):
        for _ in range(6):
            agree(lambda: chain(x, 201), [x], runs=1)
            assert pf.compiled_autograd.wait(60)
    assert state().tier == "optimized" and state().counters["profiled_runs"] <= 3


def test_what_is_passed_on_is_let_go(short):
    """Saved arrays are given to the kernels of sections, as to those of whole graphs (R4.42)."""
    x = leaf(200, 200)
    agree(lambda: chain(x, 101), [x], runs=4)
    assert state().counters["donated_results"] > 0


def test_exact_sections_have_the_bits_of_the_tape(short):
    w, data = leaf(6, 6), RNG.standard_normal((5, 6))

    def loss():
        y = data
        for _ in range(30):
            y = np.tanh(y @ w) * 0.5 + y / (1.0 + np.abs(y))
        return (y * y).mean()

    loss().backward()
    wanted = w.grad.tobytes()
    with pf.knobs.override(exact=True):
        for _ in range(4):
            (found,) = gradients(loss, [w])
            assert found.tobytes() == wanted
    assert state().tier == "optimized" and state().counters["kernel_launches"] > 0


def test_layers_of_their_own(short):
    weights = [leaf(6, 6) for _ in range(40)]
    data = RNG.standard_normal((5, 6))

    def loss():
        y = data
        for w in weights:
            y = np.tanh(y @ w) + y
        return (y * y).mean()

    agree(loss, weights)
    assert state().counters["compiles"] <= 5


def test_hooks_stand_in_sections(short):
    """Each calls its own hook, whatever is compiled once."""
    x, seen = leaf(4, 4), []
    numbers = iter(range(10**6))

    def after(y):
        k = next(numbers) % 100
        y.register_hook(lambda g: (seen.append(k), g * (1.0 + k / 1000))[1])

    x.register_post_accumulate_grad_hook(lambda x: seen.append("leaf"))
    agree(lambda: chain(x, 201, after), [x])
    assert seen == [*range(99, -1, -1), "leaf"] * 4
    assert state().counters["compiles"] <= 4 and state().counters["guard_misses"] == 0


def test_gradients_of_users_and_packed_arrays_stand_in_sections(short):
    """A function without a gradient for an argument gives None, which no cut passes."""
    x, packed, unpacked = leaf(4, 4), [], []
    numbers = iter(range(10**6))

    @pf.custom_vjp
    class halved:
        def forward(a, b):
            return a * 0.5 + b, a

        def backward(saved, g):
            return g * 0.5 * saved, None

    def loss():
        def pack(a):
            packed.append(a)
            return next(numbers), a

        y = x
        for _ in range(60):
            with pf.saved_arrays_hooks(pack, lambda p: (unpacked.append(p[0]), p[1])[1]):
                y = np.tanh(y)
            y = halved(y, x * 2.0)
        return y.sum()

    agree(loss, [x])
    assert len(unpacked) == len(packed) == 4 * 60
    assert state().counters["compiles"] <= 4


def test_halves_with_undefined_gradients_stand_in_sections(short):
    x, w = leaf(4), leaf(4)
    both = two_results(x, w)

    def loss():
        y = x
        for _ in range(LAYERS):
            y = both(y * 0.5, w)[0]
        return (y * y).sum()

    agree(loss, [x, w], runs=12 if EVERY_CASE else 5)
    np.testing.assert_array_equal(w.grad, np.zeros(4))
    assert state().counters["compiles"] <= 4 and len(function()._parts) > 1


def test_sizes_and_numbers_that_change_are_passed_to_sections(short):
    x = leaf(4, 4)
    for n, scale in ((3, 0.5), (5, 0.25), (6, 0.125), (7, 2.0)):
        data = RNG.standard_normal((n, 4))

        def loss(data=data, scale=scale):
            y = data @ x
            for _ in range(LAYERS):
                y = np.tanh(y) * scale + y.mean()
            return y.sum()

        agree(loss, [x], runs=1)
    assert pf.compiled_autograd.state().captures == 2


def test_errors_of_hooks_leave_it_whole(short):
    x = leaf(4, 4)

    def fail(g):
        raise KeyError("of the user's")

    agree(lambda: chain(x, 201), [x])
    count = iter(range(10**6))
    with pytest.raises(KeyError), pf.compiled_autograd():
        chain(x, 201, lambda y: y.register_hook(fail) if next(count) == 50 else None).backward()
    agree(lambda: chain(x, 201), [x])


# --- depth ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_thousands_of_nodes():
    x = leaf(4, 4)
    start = time.thread_time()
    agree(lambda: chain(x, 10_001 if EVERY_CASE else 4001), [x], runs=2)
    assert time.thread_time() - start < 60
    assert state().tier == "optimized" and state().counters["compiles"] <= 3
    assert state().counters["kernels_compiled"] < 30


def calls(program):
    """How many Python functions it calls."""
    count = 0

    def count_call(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(count_call)
    try:
        program()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["plain", "tensor", "pre", "post", "accumulated"])
def test_captures_are_linear_in_nodes_and_hooks(kind):
    def capture(nodes):
        x = leaf(2)
        loss = chain(x, nodes, lambda y: register(kind, x, y))
        with captured(INTERPRETED):
            loss.backward()

    capture(51)
    few, many = (calls(lambda n=n: capture(n)) for n in (101, 801))
    assert many < 12 * few, "eight times as many nodes"


def test_interpreters_are_made_in_linear_time():
    """Sets of all values are not copied for each op, which calls no function."""

    def taken(nodes):
        found = []

        def compiler(made):
            gc.disable()  # it takes longer the more objects there are
            try:
                for _ in range(3):
                    start = time.thread_time()
                    Evaluator(made.module.main, made.module)
                    found.append(time.thread_time() - start)
            finally:
                gc.enable()
            return made.interpret

        gradients(lambda: chain(leaf(2), nodes), [], compiler)
        return min(found)

    taken(101)
    assert taken(4001) < 16 * taken(501), "eight times as many nodes"
