"""A variable that Python has not bound on a path is unbound there, whatever a trace has tried."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest


def one_branch(x, n):
    if x.max() > 2:
        gain = 4.0
    return x * gain


def one_branch_and_caught(x, n):
    if np.any(x > 2):
        label = "large"
    try:
        return label, x + 1
    except UnboundLocalError:
        return "none", x - 1


def second_branch(x, n):
    if x.sum() > 3:
        pass
    else:
        kept = True
    return x + kept


def overwritten(x, n):
    if x.sum() > 8:
        k = 1
    if x.sum() > 3:
        k = 2
    return x * k


def in_an_else(x, n):
    s = x.sum()
    while s > 1:
        s = s / 2
        if s < 0.7:
            break
    else:
        e = s
    return e


def in_a_lambda(x, n):
    if x.sum() > 3:
        rate = 0.5

    def scaled():
        return x * rate

    return scaled()


def in_a_function(x, n):
    def clipped(y):
        if y.max() > 3:
            top = 3
        return np.minimum(y, top)

    return clipped(x) * 2


def deleted_in_a_branch(x, n):
    scale = 3.0
    if x.min() > 0.5:
        del scale
    return x * scale


def deleted_behind_a_branch(x, n):
    if x.sum() > 3:
        flag = True
    del flag
    return x * 2


def augmented(x, n):
    if x.sum() > 3:
        count = 10
    count += 1
    return x + count


def in_a_loop(x, n):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 1:
            mark = 2.0
        total += x[i] * mark
    return total


def carried_by_a_loop(x, n):
    y = x * 1
    for i in range(len(x)):
        if x[i] > 1.5:
            step = 1
        if i > 1:
            y[i] += step
    return y


def only_compared(x, n):
    if x.sum() > 3:
        limit = 2
    return x * 2 if x[0] > 1.5 and limit else x


def read_and_dropped(x, n):
    if x.sum() > 3:
        w = 1
    w  # noqa: B018
    return x * 2


def last_of_a_loop(x, n):
    for k in range(n):
        v = x * k + 1
    return v


def constant_of_a_loop(x, n):
    for k in range(n):
        x = x + k
        done = True
    return x, done


def index_of_a_loop(x, n):
    for k, e in enumerate(x[:n]):  # noqa: B007
        x = x + e
    return x, k


def row_of_a_loop(x, n):
    for row in x.reshape(-1, 1)[:n]:
        double = row * 2
    return double, row


def inner_loop(x, n):
    s = x * 0
    for i in range(n):
        for j in range(i):
            t = x * j
        s = s + t
    return s


def counted_down(x, n):
    while n > 0:
        part = x * n
        n -= 1
    return part


def exists_for_no_round(x, n):
    try:
        for i in range(n):
            found = x[i] + 1
        return found
    except NameError as error:
        return str(error).partition("'")[2][:5]


# How often Python runs the calls: the others need the name of no path that leaves it unbound.
ALL = {
    one_branch,
    one_branch_and_caught,
    second_branch,
    overwritten,
    in_an_else,
    in_a_lambda,
    in_a_function,
    deleted_in_a_branch,
    deleted_behind_a_branch,
    augmented,
    in_a_loop,
    carried_by_a_loop,
    only_compared,
    read_and_dropped,
}
EMPTY = {last_of_a_loop, constant_of_a_loop, index_of_a_loop, row_of_a_loop, counted_down}
NONE = {exists_for_no_round}
CALLS = [
    ([1, 2, 3, 4], 3),
    ([1, 2, 3, 4], 3),
    ([1, 2, 3, 4], 3),
    ([0, 0, 0, 0], 3),
    ([1, 2, 3, 4], 0),
    ([0, 0, 1, 0], 2),
    ([4, 3, 2, 1], 1),
    ([1, 2, 3, 4], 0),
    ([2, 1, 0, 0], 4),
    ([0, 0, 0, 0], 0),
]


def outcome(function, values, n):
    x = np.array(values, float)
    try:
        found = function(x, n)
    except NameError as error:
        return type(error), str(error)
    return [(type(y), np.asarray(y).tolist()) for y in (found if type(found) is tuple else [found])]


FUNCTIONS = sorted([*ALL, *EMPTY, inner_loop, *NONE], key=lambda f: f.__name__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_names_are_unbound_where_pythons_are(function):
    jitted = pf.jit(function, unsupported="python")
    wanted = [outcome(function, *call) for call in CALLS]
    assert [outcome(jitted, *call) for call in CALLS] == wanted
    unbound = sum(isinstance(found, tuple) for found in wanted)
    counters = jitted.state().counters
    assert unbound > 0 or function in (one_branch_and_caught, only_compared, *NONE)
    assert counters["python_calls"] == (len(CALLS) if function in ALL else 0 if function in NONE else unbound)


def test_graphs_for_no_round_leave_names_unbound():
    """Names that may be read, and are not: the graph of no round is no reason to refuse."""

    def f(x, n):
        for k in range(n):
            x = x * 0.5 + k
            done = True
        return (x, done, k) if n > 0 else x

    jitted = pf.jit(f)
    for n in (0, 3, 0, 20, 0, -2, 3, 0):
        found, wanted = jitted(np.ones(3), n), f(np.ones(3), n)
        assert type(found) is type(wanted)
        np.testing.assert_allclose(np.hstack(found), np.hstack(wanted))
    assert jitted.state().counters["python_calls"] == 0


def test_a_refused_graph_names_the_variable():
    with pytest.raises(pf.TraceError, match="gain may be unbound behind it"):
        pf.jit(one_branch, unsupported="raise")(np.ones(3), 0)
