"""cond, while_loop and fori_loop: recorded in a trace, plain Python outside of one."""

import numpy as np
import pytest
from profuse.dialect.errors import ArgumentError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.tracing.traced_control import cond, fori_loop, while_loop
from tracing import call, check, same

X = np.array([1.0, -2.0, 3.0])


def both(fn, *args, again=()):
    return check(fn, *args, again=again)


def test_cond_chooses_at_run_time():
    w = np.arange(3.0)

    def f(x):
        return cond(x.sum() > 0, lambda v: v * 2 + w, lambda v: -v, x)

    both(f, X, again=[(-X,), (np.zeros(3),)])


def test_cond_on_numbers_of_the_call_is_not_baked():
    both(lambda x, n: cond(n > 2, lambda: x + n, lambda: x - x.shape[0]), X, 3, again=[(X[:2], 1)])


def test_cond_returns_structures_and_scalars():
    both(lambda x: cond(x[0] > 0, lambda: {"a": x, "n": 1}, lambda: {"a": x * 2, "n": 2}), X, again=[(-X,)])


def test_cond_on_a_python_bool_runs_one_branch():
    traced = both(lambda x: cond(True, lambda v: v + 1, lambda v: v[0], x), X)
    assert [i.op.name for i in traced.module.main.body.instrs] == ["constant", "add"]


def test_nested_branches_share_outer_values():
    def f(x):
        y = x * 2
        return cond(
            y.sum() > 0, lambda: cond(y[0] > 1, lambda: y + x.shape[0], lambda: y * x.shape[0]), lambda: y - x.shape[0]
        )

    both(f, X, again=[(-X,), (X / 4,), (np.ones(7),)])


@pytest.mark.parametrize(
    "other, message",
    [
        (lambda x: (x, x), "different structures"),
        (lambda x: x.sum(), "different types"),
        (lambda x: x.astype(np.float32), "different types"),
        (lambda x: 1.0, "a Python float"),
    ],
)
def test_branches_must_agree(other, message):
    with pytest.raises(TraceError, match=message):
        trace(lambda x: cond(x.sum() > 0, lambda v: v, other, x), (X,))


@pytest.mark.parametrize(
    "wrong, parameter",
    [
        (lambda x: cond(x.sum() > 0, lambda: x, -x), "false_fn of cond"),
        (lambda x: cond(True, x, lambda: x), "true_fn of cond"),
        (lambda x: while_loop(x.sum() > 0, lambda v: v, x), "cond_fn of while_loop"),
        (lambda x: fori_loop(0, 3, x, x), "body_fn of fori_loop"),
    ],
)
def test_values_are_no_branches_and_bodies(wrong, parameter):
    with pytest.raises(ArgumentError, match=f"{parameter} is no function") as caught:
        trace(wrong, (X,))
    assert caught.value.loc.file == __file__ and "lambda" in caught.value.hint


def test_values_do_not_leave_a_branch():
    def f(x):
        kept = []
        cond(x[0] > 0, lambda: kept.append(x + 1) or x, lambda: x)
        return kept[0]

    with pytest.raises(TraceError, match="inside a branch"):
        trace(f, (X,))


def test_conditions_are_single_truth_values():
    with pytest.raises(TraceError, match="single truth value"):
        trace(lambda x: cond(x > 0, lambda: x, lambda: -x), (X,))


def test_while_loop():
    def f(x, limit):
        return while_loop(lambda s: np.abs(s[0]).max() > limit, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    both(f, X, 0.1, again=[(X * 100, 0.5), (X * 0, 1.0), (np.ones(5), 0.25)])


def test_newton_iteration_carries_numbers():
    def f(a):
        x, _ = while_loop(
            lambda s: np.abs(s[0] * s[0] - a) > 1e-9, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (a, 0)
        )
        return x

    traced = trace(f, (np.float64(2.0),))
    same(call(traced, np.float64(9.0)), np.float64(3.0), exact=False)


def test_fori_loop():
    both(lambda x, n: fori_loop(0, n, lambda i, v: v * 0.5 + i, x), X, 3, again=[(X[:1], 5), (X, 0)])
    both(lambda x: fori_loop(0, x.shape[0], lambda i, s: s + x[i] * i, x[0] * 0), X, again=[(np.arange(6.0),)])


def test_carried_numbers_widen():
    traced = trace(lambda x: fori_loop(0, 3, lambda i, s: s + x[i], 0.0), (X,))
    same(call(traced, X), np.float64(2.0))
    traced = trace(lambda n: fori_loop(0, n, lambda i, s: s + 0.5, 0), (3,))
    same(call(traced, 5), 2.5)


def test_carried_sizes_may_change():
    def f(x, n):
        return while_loop(lambda v: v.shape[0] < n, lambda v: np.concatenate([v, v]), x)

    both(f, X, 10, again=[(X, 50), (X[:1], 3)])


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda i, v: (v, v), "another structure"),
        (lambda i, v: v[None], "changes the type of the carried value"),
        (lambda i, v: v.astype(np.float32), "float32|f32"),
    ],
)
def test_loops_keep_the_type_of_what_they_carry(body, message):
    with pytest.raises(TraceError, match=message):
        trace(lambda x: fori_loop(0, 3, body, x), (X,))


def test_loop_counters_cannot_be_forced():
    with pytest.raises(TraceError, match="known only at run time"):
        trace(lambda x: fori_loop(0, 3, lambda i, v: v + [0, 1, 2][i], x), (X,))


def test_in_place_in_bodies():
    def f(x):
        def body(i, v):
            y = v * 2
            y += i
            return y

        return fori_loop(0, 3, body, x)

    both(f, X)

    def g(x):
        y = x * 2

        def branch():
            nonlocal y
            y += 1
            return y

        return cond(x[0] > 0, branch, lambda: y)

    both(g, X, again=[(-X,)])


def test_outside_of_a_trace_loops_run_in_python():
    assert fori_loop(0, 4, lambda i, v: v + i, 0) == 6
    assert while_loop(lambda v: v < 10, lambda v: v * 2, 1) == 16
    assert cond(np.array(True), lambda: 1, lambda: 2) == 1
