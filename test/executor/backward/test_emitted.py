"""Captured runs in emitted code: when they are, what they count, and what is left to Python."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import GradientError
from profuse.executor.settings import events

RNG = np.random.default_rng(6)
BEFORE = 9  # runs in front of the first that is emitted: profiled, compiled, by a plan of Python


@pytest.fixture(autouse=True)
def _foreground():
    events.clear()
    with pf.knobs.override(background=False):
        yield


def leaf(*shape):
    return pf.array(RNG.standard_normal(shape), requires_grad=True)


def run(program, *leaves):
    """One run; its gradients, which are those of the eager tape."""
    for x in leaves:
        x.grad = None
    program(*leaves).backward()
    wanted = [x.grad for x in leaves]
    for x in leaves:
        x.grad = None
    with pf.compiled_autograd():
        program(*leaves).backward()
    found = [x.grad for x in leaves]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    return found


def loss(w, v):
    return (np.tanh(w) * v).sum() + (v / (np.abs(w) + 1.0)).mean()


def state():
    return pf.compiled_autograd.state().runs[-1].function.state()


def test_runs_are_emitted_and_counted_as_ever():
    w, v = leaf(3, 4), leaf(3, 4)
    emitted = []
    for k in range(1, 21):
        run(loss, w, v)
        emitted.append(state().emitted)
        counters = state().counters
        assert counters["calls"] == k and counters["guard_hits"] == k - 1
        assert counters["kernel_launches"] == k - 1 and counters["guard_misses"] == 0
    assert emitted == [False] * BEFORE + [True] * (20 - BEFORE)
    found = pf.compiled_autograd.state()
    assert (found.captures, found.hits) == (1, 19)
    assert sum(e.kind == "dispatch" for e in pf.events()) == 1


def test_beside_the_program():
    w, v = leaf(3, 4), leaf(3, 4)
    with pf.knobs.override(background=True):
        for _ in range(25):
            run(loss, w, v)
            assert pf.compiled_autograd.wait(60)
    assert state().emitted and state().counters["guard_misses"] == 0


def test_without_it_where_it_is_switched_off():
    w, v = leaf(3, 4), leaf(3, 4)
    with pf.knobs.override(native_dispatch=False):
        for _ in range(2 * BEFORE + 4):
            run(loss, w, v)
    assert not state().emitted


def test_guards_that_miss_are_left_to_python_and_their_fallbacks_emitted_in_turn():
    """Layouts are no part of the key."""
    values = RNG.standard_normal((4, 5))
    usual, turned = (pf.array(x, requires_grad=True) for x in (values, np.asfortranarray(values)))
    for _ in range(BEFORE + 3):
        run(lambda w: (np.tanh(w) * w).sum(), usual)
    assert state().emitted
    for misses in range(1, 2 * BEFORE):
        run(lambda w: (np.tanh(w) * w).sum(), turned)
        assert state().counters["guard_misses"] == misses
    for _ in range(3):
        run(lambda w: (np.tanh(w) * w).sum(), usual)
        run(lambda w: (np.tanh(w) * w).sum(), turned)
    counters = state().counters
    assert counters["compiles"] == 2 and counters["guard_misses"] == 2 * BEFORE + 2
    assert counters["calls"] == 3 * BEFORE + 8 and state().emitted
    assert pf.compiled_autograd.state().captures == 1
    assert sum(e.kind == "dispatch" for e in pf.events()) >= 2


def test_what_needs_the_result_of_code_of_users_is_never_emitted():
    w, seen = leaf(3), []
    for _ in range(2 * BEFORE + 4):
        y = np.tanh(w)
        y.register_hook(lambda g: seen.append(1))
        with pf.compiled_autograd():
            (y * w).sum().backward()
    assert not state().emitted and len(seen) == 2 * BEFORE + 4


def test_what_stands_in_front_of_hooks_of_leaves_is_emitted():
    w, v, log = leaf(3, 4), leaf(3, 4), []
    for name, x in (("w", w), ("v", v)):
        x.register_hook(lambda g, name=name: (log.append(name), g * 2.0)[1])
        x.register_post_accumulate_grad_hook(lambda x, name=name: log.append((name, float(x.grad.sum()))))
    orders = []
    for _ in range(BEFORE + 3):
        log.clear()
        run(loss, w, v)
        half = len(log) // 2
        orders.append([entry if isinstance(entry, str) else entry[0] for entry in log])
        np.testing.assert_allclose(*([e[1] for e in part if len(e) == 2] for part in (log[:half], log[half:])))
    assert orders == [orders[0]] * len(orders) and orders[0][:4] == orders[0][4:] and len(orders[0]) == 8
    counters = state().counters
    assert state().emitted and counters["calls"] == BEFORE + 3
    assert (counters["kernel_launches"], counters["guard_misses"]) == (BEFORE + 2, 0)
    assert counters["evaluated_ops"] >= 6 * (BEFORE + 2)


def test_errors_of_hooks_between_kernels_name_the_line_of_the_operation():
    w, wrong = leaf(3, 4), []

    def step():
        y = np.tanh(w)
        line = sys._getframe().f_lineno - 1
        z = np.exp(y)
        y.register_hook(lambda g: g[:1] if wrong else None)
        z.register_hook(lambda g: g[:1] if len(wrong) > 1 else None)
        with pf.compiled_autograd():
            (z * w).sum().backward()
        return line

    for _ in range(BEFORE + 3):
        line = step()
    assert state().tier == "optimized"
    for further in (0, 2):
        wrong.append(1)
        with pytest.raises(GradientError, match="returns a gradient of shape") as caught:
            step()
        assert (caught.value.loc.file, caught.value.loc.line) == (__file__, line + further)


def test_big_arrays_that_nobody_holds_are_reused_and_so_not_emitted():
    x = leaf(100, 100)
    for _ in range(2 * BEFORE + 4):
        x.grad = None
        with pf.compiled_autograd():
            np.exp(np.tanh(x)).sum().backward()
    counters = state().counters
    assert not state().emitted and counters["donated_results"] >= 2 * BEFORE


def test_numbers_and_sizes_that_change_are_passed():
    w = leaf(3)

    def program(k):
        x, rate = np.random.default_rng(k).standard_normal((4 + k % 5, 3)), 0.1 * (k + 1)
        return lambda w: np.tanh(x * w) * rate / (k + 2)

    for k in range(4 * BEFORE):
        y = program(k)
        given = np.random.default_rng(k).standard_normal((4 + k % 5, 3))
        run(lambda w, y=y, given=given: (y(w) * given).sum(), w)
    made = pf.compiled_autograd.state().runs[-1]
    assert len(made.scalars) == 2 and pf.compiled_autograd.state().captures == 2
    counters = made.function.state().counters
    # Sums of broadcast gradients have sizes of the run, which are NumPy's.
    assert counters["calls"] == 4 * BEFORE - 1 and not made.function.state().emitted


def test_numbers_that_change_are_passed():
    w = leaf(3)
    for k in range(3 * BEFORE):
        run(lambda w, k=k: (np.tanh(w) * (0.1 * (k + 1)) / (k + 2)).sum(), w)
    made = pf.compiled_autograd.state().runs[-1]
    assert made.function.state().emitted and len(made.scalars) == 2
    assert pf.compiled_autograd.state().captures == 2


def test_a_flush_drops_it():
    w, v = leaf(3, 4), leaf(3, 4)
    for _ in range(BEFORE + 3):
        run(loss, w, v)
    assert state().emitted
    pf.compiled_autograd.state().runs[-1].function.flush()
    before = state().counters["profiled_runs"]
    run(loss, w, v)
    assert not state().emitted and state().counters["profiled_runs"] == before + 1
    for _ in range(2 * BEFORE + 3):
        run(loss, w, v)
    assert state().emitted


def test_gradients_are_arrays_of_their_own():
    w, v = leaf(3, 4), leaf(3, 4)
    kept = []
    for k in range(2 * BEFORE):
        w.data[...] = k
        kept.append((run(loss, w, v), [w.data.copy(), v.data.copy()]))
    assert state().emitted
    for found, (a, b) in kept:
        np.testing.assert_allclose(found[1], np.tanh(a) + 1 / (np.abs(a) + 1) / 12)
        np.testing.assert_allclose(found[0], b / np.cosh(a) ** 2 - np.sign(a) * b / (np.abs(a) + 1) ** 2 / 12)


def test_saved_arrays_are_freed_by_the_run():
    w = leaf(3)
    for _ in range(BEFORE + 4):
        y = np.tanh(w)
        saved = weakref.ref(y.data)
        total = (y * y).sum()
        del y
        with pf.compiled_autograd():
            total.backward()
        assert saved() is None
    assert state().emitted


def test_saved_arrays_that_somebody_holds_stay_as_they_are():
    w = leaf(3, 4)
    for _ in range(2 * BEFORE):
        y = np.tanh(w)
        z = np.exp(y)
        kept = [y.data.copy(), z.data.copy()]
        w.grad = None
        with pf.compiled_autograd():
            (z * 1.5).sum().backward()
        np.testing.assert_array_equal(y.data, kept[0])
        np.testing.assert_array_equal(z.data, kept[1])
    assert state().emitted


def test_threads_run_it_at_once():
    w, v = leaf(3, 4), leaf(3, 4)
    for _ in range(BEFORE + 3):
        run(loss, w, v)
    assert state().emitted
    before, errors = state().counters["calls"], []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(50):
                a, b = (pf.array(rng.standard_normal((3, 4)), requires_grad=True) for _ in "ab")
                run(loss, a, b)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and state().counters["calls"] == before + 200


def test_a_reset_frees_it():
    w, v = leaf(3, 4), leaf(3, 4)
    for _ in range(BEFORE + 3):
        run(loss, w, v)
    function = weakref.ref(pf.compiled_autograd.state().runs[-1].function)
    pf.compiled_autograd.reset()
    gc.collect()
    assert function() is None
    run(loss, w, v)
