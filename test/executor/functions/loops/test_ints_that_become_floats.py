"""Variables that are an int in Python until a branch makes them a float: floats in a graph, as long
as only their value matters."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import equal_results


def largest(x):
    best, place = 0, -1
    for k in range(len(x)):
        if x[k] > best:
            best, place = x[k], k
    return best, place


def largest_of_rows(a):
    most = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > most:
                most = a[i, j]
    return most


def between_classes(counts):
    total, best, threshold = counts.sum(), 0, 0
    below, weight = 0.0, 0.0
    mean = (np.arange(len(counts)) * counts).sum()
    for t in range(len(counts)):
        weight += counts[t]
        if weight == 0:
            continue
        rest = total - weight
        if rest == 0:
            break
        below += t * counts[t]
        between = weight * rest * (below / weight - (mean - below) / rest) ** 2
        if between > best:
            best, threshold = between, t
    return threshold, best


def sum_of_some(x):
    total, k = 0, 0
    while k < len(x):
        if x[k] > 0.3:
            total = total + x[k]
        k += 1
    return total


def squares(x):
    z = 0
    for v in x:
        if v > 0.2:
            z = z * z * 0.1 + complex(v, v)
    return z


def rectified(x):
    total = 0.0
    for i in range(len(x)):
        part = x[i] if x[i] > 0.5 else 0
        total += part * 2 + 1
    return total


def filtered(x):
    total = 0.0
    for v in x:
        if v > 0.5:
            part = v
        else:
            part = 0
        total = total * 0.5 + part
    return total


def stored(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0.5 else 0
    return out


def sum_of_large(x):
    total = 0
    for v in x:
        total = total + (v if v > 0.5 else 0)
    return total


def doubled_or_halved(x):
    factor = len(x)
    for v in x:
        factor = factor * (2 if v > 0.6 else 0.7)
    return factor


def in_two_loops(x):
    most, k = 0, 3
    while k > 0:
        for v in x:
            most = most + max(v, 0)
        k -= 1
    return most


def counted_or_taken(x):
    last = 0
    for v in x:
        if v > 0.5:
            last = v
        else:
            last = last + 1
    return last


X = np.random.default_rng(2).random(30)
NATIVE = [
    (sum_of_large, X),
    (doubled_or_halved, X),
    (in_two_loops, X),
    (largest, X),
    (largest, X.astype(np.float32)),
    (largest_of_rows, X.reshape(5, 6)),
    (between_classes, np.arange(40) % 7),
    (sum_of_some, X),
    (squares, X),
    (rectified, X),
    (filtered, X),
    (stored, X),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "x"), NATIVE, ids=lambda x: getattr(x, "__name__", ""))
def test_the_loop_is_a_kernel(function, x):
    f = pf.jit(function, unsupported="python")
    for _ in range(5):
        equal_results(f(x), function(x))
        f.wait()
    state = f.state()
    assert state.tier == "optimized" and state.emitted
    launches = state.counters["kernel_launches"]
    equal_results(f(x), function(x))
    after = f.state().counters
    assert after["kernel_launches"] > launches and after["voided_launches"] == 0


# --- where Python's int is seen -------------------------------------------------------------------


def chosen(x):
    part = 0
    for v in x:
        part = v if v > 0.5 else 0
    return part


def listed(x):
    out = []
    for v in x:
        out.append(v if v > 0.5 else 0)  # noqa: PERF401
    return out


def stored_among_ints(x):
    out = np.zeros(len(x), int)
    for i in range(len(x)):
        out[i] = x[i] * 3 if x[i] > 0.5 else 0
    return out


def derived(x):
    best, more = 0, 0
    for i in range(len(x)):
        more = best + 1
        if i == len(x) - 1 and x[i] > 0:
            best = x[i]
    return best, more


def halved(x):
    best, total = 3, 0.0
    for v in x:
        total += best // 2
        if v > 0.9:
            best = v
    return best, total


def asked(x):
    best = 0
    for v in x:
        if v > 2:
            best = v
    return isinstance(best, int)


def index(x):
    at, total = 0, 0.0
    for v in x:
        if v > 5:
            at = v
        total += x[at]
    return total


def handed_on(x):
    best, last = 0, 0
    for v in x:
        last = best
        if v > 0.5:
            best = v
    return last


def turned(x):
    z = 1
    if x.sum() > 10:
        z = z * 1j
    return x * z


def turned_in_a_loop(x):
    z, total = 1, 0.0
    for v in x:
        if v > 0.9:
            z = z * 1j
        total = total + v / z
    return total


def divided(x):
    z = 2
    if x.sum() > 10:
        z = complex(x[0], 1)
    return x / z, z == 2


def stored_among_floats(x):
    y, z = x * 1, 2
    if x.max() < 0:
        z = 2j
    y[1:3] = z
    return y


def in_a_branch(x):
    k = 3
    if x[0] > 0.5:
        k = k / 2
    return k, x * k


def stays_among_ints(x):
    k = 3
    for v in x:
        k = k * (1 if v > 0.5 else 1.5)
    return x.astype(int) * k


def in_whole_steps(x):
    k = len(x)
    for v in x:
        k = k // 2 + (1 if v < 2 else 0.5)
    return k


OTHERS = [
    (sum_of_large, X * 0.1),
    (sum_of_large, np.arange(5.0)),
    (doubled_or_halved, X + 1),
    (in_two_loops, -X),
    (in_two_loops, np.ones(4)),
    (in_two_loops, X[:0]),
    (counted_or_taken, X),
    (counted_or_taken, -X),
    (counted_or_taken, np.array([0.1, 0.7])),
    (counted_or_taken, np.array([0.7, 0.1])),
    (in_a_branch, X),
    (in_a_branch, X * 0 + 1),
    (in_a_branch, -X),
    (stays_among_ints, X),
    (stays_among_ints, X + 1),
    (in_whole_steps, X),
    (in_whole_steps, X * 9),
    (turned, X),
    (turned, X * 0.1),
    (turned_in_a_loop, X),
    (turned_in_a_loop, X * 0.1),
    (divided, X),
    (divided, X * 0.1),
    (stored_among_floats, X),
    (chosen, X),
    (chosen, X[::-1]),
    (listed, X),
    (stored_among_ints, X),
    (derived, X),
    (halved, X),
    (asked, X),
    (index, X),
    (handed_on, X),
    (handed_on, X * 0.1),
    (largest, X * 0),
    (largest, -X),
    (largest_of_rows, -X.reshape(5, 6)),
    (sum_of_some, X * 0.1),
    (sum_of_some, X[:0]),
    (squares, X * 0.1),
    (largest, np.array([0.0, np.nan, 0.5])),
]


@pytest.mark.parametrize(("function", "x"), OTHERS, ids=lambda x: getattr(x, "__name__", ""))
def test_pythons_int_is_a_result(function, x):
    f = pf.jit(function, unsupported="python")
    for _ in range(6):
        equal_results(f(x), function(x))
        f.wait()


def test_a_call_that_keeps_the_int_is_pythons():
    f = pf.jit(largest, unsupported="python")
    for _ in range(4):
        equal_results(f(X), largest(X))
        f.wait()
    for _ in range(3):
        equal_results(f(-X), largest(-X))
    counters = f.state().counters
    assert counters["voided_launches"] == 3
    equal_results(f(X), largest(X))
    assert f.state().counters["voided_launches"] == 3


def test_what_never_succeeds_is_not_tried_for_ever():
    f = pf.jit(largest, unsupported="python")
    for _ in range(8):
        equal_results(f(-X), largest(-X))
        f.wait()
    evaluated = f.state().counters["evaluated_ops"]
    equal_results(f(-X), largest(-X))
    assert f.state().counters["evaluated_ops"] == evaluated
