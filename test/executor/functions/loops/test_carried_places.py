"""Attributes and items that rounds change: carried by native loops, and stored at each call."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import profuse as pf
import pytest
from native_loops import equal_results


class Body:
    """What users keep the state of a simulation in."""

    def __init__(self):
        self.x, self.v, self.count = 1.0, 0.5, 0
        self.u, self.w = np.arange(8) / 7, np.ones(8)
        self.by_name = {"u": np.arange(8.0), "t": 0.0}
        self.items = [0.0, 1.0]

    def oscillate(self, n):
        for _ in range(n):
            self.v -= 0.1 * self.x
            self.x += 0.1 * self.v
            self.count += 1
        return self.x

    def relax(self, n):
        for _ in range(n):
            self.u, self.w = 0.5 * self.w, self.u + 1
        return self.u.sum()

    def step(self, h):
        self.x += h * self.v
        if self.x > 1.5:
            self.v = -self.v
        else:
            self.v += h

    def steps(self, n, h):
        for _ in range(n):
            self.step(h)
        return self.x, self.v

    def grow(self):
        rounds = 0
        while self.x < 5.0:
            self.x = self.x * 1.1 + 0.01
            rounds += 1
        return rounds

    def exchange(self, n):
        for _ in range(n):
            self.u, self.w = self.w, self.u
            self.u[0] += 1
        return self.u[0]

    def count_above(self, n):
        for i in range(n):
            if self.u[i % 8] > 0.3:
                self.count += 1
            else:
                self.x = float(self.u[i % 8])
        return self.count

    def named(self, n):
        for _ in range(n):
            self.by_name["u"] = self.by_name["u"] * 0.5 + self.w
            self.by_name["t"] += 0.1
            self.items[0] += self.by_name["t"]
        return self.by_name["t"], self.items[0]

    def until(self, n):
        for i in range(n):
            self.x *= 0.9
            if self.x < 0.3:
                break
            self.count = i
        return self.count

    def nested(self, n):
        for i in range(n):
            for j in range(i):
                self.v += 0.01 * j
            self.x += self.v
        return self.x


@dataclasses.dataclass
class Slotted:
    """With slots instead of a dict."""

    __slots__ = ("count", "x")
    x: float
    count: int

    def halve(self, n):
        for _ in range(n):
            self.x *= 0.5
            self.count += 1
        return self.x


def of_its_own(x, n):
    state = {"w": x * 1.0, "b": 0.5, "t": 0}
    for _ in range(n):
        g = state["w"] * 0.1 + state["b"]
        state["w"] = state["w"] - 0.1 * g
        state["b"] -= 0.01
        state["t"] += 1
    return state


def items_of_a_list(x, n):
    s = [0.0, 1.0]
    for i in range(n):
        s[0] += s[1] * 0.1
        s[1] -= x[i % 3]
    return s, s[0]


class World:
    def __init__(self):
        self.bodies, self.t = [Body() for _ in range(3)], 0.0

    def run(self, n):
        for _ in range(n):
            for body in self.bodies:
                body.step(0.01)
            self.t += 0.01
        return sum(body.x for body in self.bodies), body.v


class Ball:
    """A user's object that functions make anew in each call."""

    def __init__(self, y):
        self.y, self.v = y, 0.0

    def fall(self, dt):
        self.v -= 9.81 * dt
        self.y += self.v * dt

    def update(self, dt):
        self.fall(dt)
        if self.y < 0:
            self.y, self.v = -self.y, -0.9 * self.v


def bounce(n, dt):
    ball, heights = Ball(1.0), []
    for _ in range(n):
        ball.update(dt)
        heights.append(ball.y)
    return heights, ball.v


def relax_until_it_stays(n, tol):
    grid = Holder(u=np.zeros((n, n)), change=1.0, rounds=0)
    grid.u[0] = 1
    while grid.change > tol and grid.rounds < 200:
        new = grid.u.copy()
        new[1:-1, 1:-1] = 0.5 * (grid.u[2:, 1:-1] + grid.u[:-2, 1:-1])
        grid.change = float(np.abs(new - grid.u).max())
        grid.u = new
        grid.rounds += 1
    return grid.u, grid.rounds


class Holder:
    def __init__(self, **held):
        vars(self).update(held)


def equal_states(a, b):
    if isinstance(a, World):
        assert a.t == b.t
        for one, two in zip(a.bodies, b.bodies, strict=True):
            equal_states(one, two)
    elif hasattr(a, "__dict__"):
        equal_results(vars(a), vars(b))
    elif isinstance(a, Slotted):
        equal_results((a.x, a.count), (b.x, b.count))
    else:
        equal_results(a, b)


X = np.linspace(0.1, 0.3, 3)
NATIVE = [
    (Body.oscillate, (Body(), 20)),
    (Body.relax, (Body(), 20)),
    (Body.steps, (Body(), 20, 0.1)),
    (Body.grow, (Body(),)),
    (Body.exchange, (Body(), 21)),
    (Body.count_above, (Body(), 20)),
    (Body.named, (Body(), 20)),
    (Body.until, (Body(), 20)),
    (Body.nested, (Body(), 20)),
    (Slotted.halve, (Slotted(3.0, 0), 20)),
    (of_its_own, (X, 20)),
    (items_of_a_list, (X, 20)),
    (World.run, (World(), 20)),
    (bounce, (50, 0.02)),
    (relax_until_it_stays, (6, 1e-3)),
]


def check(function, args, calls=5):
    f = pf.jit(function, unsupported="python")
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    for _ in range(calls):
        equal_results(f(*mine), function(*theirs))
        f.wait()
        for a, b in zip(mine, theirs, strict=True):
            equal_states(a, b)
    return f, mine


@pytest.mark.parametrize(("function", "args"), NATIVE, ids=lambda x: getattr(x, "__name__", ""))
def test_loops_that_change_attributes_and_items_are_native(function, args):
    f, mine = check(function, args)
    state = f.state()
    assert state.tier == "optimized" and state.counters["python_calls"] <= 1
    launches = state.counters["kernel_launches"]
    f(*mine)
    assert 0 < f.state().counters["kernel_launches"] - launches <= 3


# --- programs in which identities, kinds, or the number of rounds matter --------------------------


def no_round_keeps_the_array(h, n):
    for _ in range(n):
        h.u = h.u * 2
    h.u[0] = 7
    return h.u


def one_branch_keeps_the_array(h, n):
    for i in range(n):
        if h.u[1] > 1e200 + i:
            h.u = h.u * 2
    h.u[0] = 7
    return h.u


def one_branch_leaves_the_array(h, n):
    for i in range(n):
        if h.u[1] > 1e200 + i:
            h.u = h.u * 2
    return h.u[1]


def no_round_leaves_the_array(h, n):
    while h.u[0] < n - 1.5:
        h.u = h.u * 1.5 + 1
    return h.u[1]


def a_name_of_an_object(h, n):
    last = None
    for k in range(n):
        last = h.me if k % 2 else h.other
        h.x += last.x
    return last is h, last is None


def the_last_object(h, n):
    last = None
    for _ in range(n):
        for last in (h.other, h):
            h.x += last.x
    return last is h, last is None


def written_before_it_is_replaced(h, n):
    for _ in range(n):
        h.u[0] += 1
        h.u = h.u * 2
    return h.u


def an_older_name_is_written(h, n):
    old = h.u
    for k in range(n):
        h.u = h.u * 0.5
        old[1] = k
    return h.u


def two_objects_hold_it(h, n):
    for _ in range(n):
        h.other.u = h.u + 1
        h.u = h.other.u * 0.5
    return h.u, h.other.u


def it_holds_itself(h, n):
    for k in range(n):
        h.me.x = h.x + k
        h.x *= 0.5
    return h.x


def an_int_becomes_a_float(h, n):
    for _ in range(n):
        h.count += 0.5
    return h.count


def an_int_grows(h, n):
    for _ in range(n):
        h.count = h.count * 3 + 1
    return h.count


def a_new_attribute(h, n):
    for k in range(n):
        h.fresh = k * 2.0
    return h.fresh


def a_text(h, n):
    for k in range(n):
        h.text = h.text + "a" if k % 2 else h.text
        h.x += 1
    return h.text


def a_tuple(h, n):
    for _ in range(n):
        h.pair = h.pair[1], h.pair[0] + 1.0
    return h.pair


def an_object_is_replaced(h, n):
    for k in range(n):
        h.other = Holder(x=float(k))
    return h.other.x


def it_fails_on_the_way(h, n):
    for k in range(n):
        h.x += 1
        h.u[k] = h.x
    return h.x


def arrays_while_a_condition_holds(h, n):
    while h.u[0] < n:
        h.u = h.u * 1.5 + 1
    h.u[1] = 5.0
    return h.u


def rows_of_a_list(h, n):
    for _ in range(n):
        h.rows[0], h.rows[1] = h.rows[1], h.rows[0] + 1
        h.rows[0][0] = 3
    return h.rows


def holder():
    u = np.arange(4, 9) / 4
    made = Holder(
        u=u, x=1.0, count=1, text="t", pair=(1.0, 2.0), other=Holder(u=u, x=0.0), rows=[np.arange(3.0), np.ones(3)]
    )
    made.me = made
    return made


OTHERS = [
    no_round_keeps_the_array,
    one_branch_keeps_the_array,
    one_branch_leaves_the_array,
    no_round_leaves_the_array,
    a_name_of_an_object,
    the_last_object,
    written_before_it_is_replaced,
    an_older_name_is_written,
    two_objects_hold_it,
    it_holds_itself,
    an_int_becomes_a_float,
    an_int_grows,
    a_new_attribute,
    a_text,
    a_tuple,
    an_object_is_replaced,
    arrays_while_a_condition_holds,
    rows_of_a_list,
]


def told(h):
    return {
        "u": h.u,
        "x": h.x,
        "count": h.count,
        "text": h.text,
        "pair": h.pair,
        "rows": h.rows,
        "other": h.other.x,
        "fresh": vars(h).get("fresh"),
        "of other": vars(h.other).get("u"),
    }


@pytest.mark.parametrize("n", [20, 0, 1])
@pytest.mark.parametrize("function", OTHERS, ids=lambda x: x.__name__)
def test_other_programs_do_what_python_does(function, n):
    if n == 0 and function is a_new_attribute:
        pytest.skip("it raises")
    f = pf.jit(function, unsupported="python")
    mine, theirs = holder(), holder()
    for call in range(5):
        before = [h.u for h in (mine, theirs)]
        kept = [(h.u, h.other, h.rows) for h in (mine, theirs)]
        equal_results(f(mine, n), function(theirs, n))
        f.wait()
        equal_results(told(mine), told(theirs))
        equal_results(*before)
        same = [(h.u is u, h.other is o, h.rows is r) for h, (u, o, r) in zip((mine, theirs), kept, strict=True)]
        assert same[0] == same[1], (call, same)


def bound_by_a_round(h, n):
    for _ in range(n):
        h.u = h.u * 0.5 + 1
        name = h.other
    return name.x + 1


def bound_while_a_condition_holds(h, n):
    k = 0
    while k < n:
        h.u = h.u * 0.5 + 1
        name = h.other
        k += 1
    return name.x + 1


@pytest.mark.parametrize("function", [bound_by_a_round, bound_while_a_condition_holds], ids=lambda x: x.__name__)
def test_no_round_binds_no_name_to_an_object(function):
    f = pf.jit(function, unsupported="python")
    mine, theirs = holder(), holder()
    for n in (300, 301, 302, 0, 303):
        if n == 0:
            for g, h in ((f, mine), (function, theirs)):
                with pytest.raises(UnboundLocalError):
                    g(h, n)
        else:
            assert f(mine, n) == function(theirs, n)
        f.wait()
        equal_results(told(mine), told(theirs))


@pytest.mark.parametrize("function", OTHERS, ids=lambda x: x.__name__)
def test_rounds_and_none_take_turns(function):
    f = pf.jit(function, unsupported="python")
    mine, theirs = holder(), holder()
    for n in (3, 3, 3, 1, 3) if function is a_new_attribute else (3, 3, 3, 0, 3, 1, 0, 3):
        kept = [(h.u, h.other, h.rows) for h in (mine, theirs)]
        equal_results(f(mine, n), function(theirs, n))
        f.wait()
        equal_results(told(mine), told(theirs))
        same = [(h.u is u, h.other is o, h.rows is r) for h, (u, o, r) in zip((mine, theirs), kept, strict=True)]
        assert same[0] == same[1], (n, same)


def test_what_was_written_before_an_error_stays():
    f = pf.jit(it_fails_on_the_way, unsupported="python")
    mine, theirs = holder(), holder()
    for n in (4, 5, 4, 9, 3):
        for h, function in ((mine, f), (theirs, it_fails_on_the_way)):
            if n > 5:
                with pytest.raises(IndexError):
                    function(h, n)
            else:
                function(h, n)
        f.wait()
        equal_results(told(mine), told(theirs))


class Table(dict):
    """Items and attributes, which may have the same names."""


def of_a_table(n):
    table = Table(u=np.zeros(3), n=0)
    table.u, table.n = np.ones(3), 1
    for _ in range(n):
        table["u"], table.u = table["u"] + 1.0, table.u * 2.0
        table["n"] += 1
        table.n *= 2
    return table["u"], table.u, table["n"], table.n


def test_items_and_attributes_of_one_name():
    f = pf.jit(of_a_table)
    for n in (6, 0, 9):
        equal_results(f(n), of_a_table(n))
        f.wait()
    assert f.state().counters["python_calls"] == 0


STATE = {"t": 0.0, "n": 0}


def of_both(x):
    STATE["n"] += 1
    ball = Ball(x)
    ball.fall(0.5)
    return ball.y


def test_objects_of_its_own_beside_those_from_outside():
    f = pf.jit(of_both, unsupported="python")
    STATE.update(t=0.0, n=0)
    for call in range(1, 6):
        x = np.float64(5.0 + call)
        expected = Ball(x)
        expected.fall(0.5)
        assert f(x) == expected.y and STATE["n"] == call
        f.wait()
    assert f.state().counters["python_calls"] == 0


def of_the_module(n):
    for _ in range(n):
        STATE["t"] += 0.5
        STATE["n"] += 1
    return STATE["t"]


def test_items_of_a_global_dict():
    f = pf.jit(of_the_module, unsupported="python")
    STATE.update(t=0.0, n=0)
    for call in range(1, 6):
        assert f(20) == 10.0 * call
        f.wait()
        assert (STATE["t"], STATE["n"]) == (10.0 * call, 20 * call)
    assert f.state().tier == "optimized"
