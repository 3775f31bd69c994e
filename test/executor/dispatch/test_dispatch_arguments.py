"""Emitted code finds arguments by keyword and in containers, and numbers that graphs hold for."""

import enum
import gc
import sys
from collections import OrderedDict, namedtuple
from queue import SimpleQueue

import numpy as np
import profuse as pf
import pytest
from dispatched import X, Y, hits, is_native, outcome
from every_case import EVERY_CASE
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import entry_of, taken_for_pure
from profuse.dialect.importers.numpy.tracing.trace_guards import Computed, PassedNumber, TraceGuard, evaluate
from profuse.dialect.ir.size_algebra import OPERATORS
from profuse.dialect.ir.symbolic import Dimension, Integer, symbol
from profuse.executor.dispatch import attach
from profuse.executor.dispatch.arguments import flat_arguments
from profuse.executor.dispatch.conditions.baked import baked_tests
from profuse.executor.dispatch.leaf_spec import Leaf
from profuse.executor.dispatch.loaded_dispatcher import make_entry
from profuse.executor.memory import output_pool
from profuse.executor.memory.offsets import Refused
from profuse.executor.settings.knobs import knobs
from test_dispatch_guards import plain_settings


def warm(fn, *args, **kwargs):
    """A function that dispatches these arguments in emitted code."""
    f = pf.jit(fn)
    for _ in range(3):
        f(*args, **kwargs)
    assert f.state().emitted, f.explain()
    assert is_native(f, *args, **kwargs)
    return f


def layer(p, x):
    return np.tanh(x @ p["w"] + p["b"])


PARAMETERS = {"w": X, "b": Y[0]}


# --- keywords --------------------------------------------------------------------------------


def test_arguments_by_keyword():
    f = warm(lambda x, y: x * 2 + y, X, y=Y)
    np.testing.assert_array_equal(f(X, y=X), X * 2 + X)
    assert not is_native(f, X, Y)  # a structure of its own: Python's, which traces it
    f(X, Y), f(X, Y)
    assert is_native(f, X, Y) and is_native(f, X, y=Y)


def test_keywords_are_told_apart_by_name_and_order():
    f = warm(lambda x, y: x * 2 - y, x=X, y=Y)
    np.testing.assert_array_equal(f(y=X, x=Y), Y * 2 - X)
    name = "".join(["x", "y"])[:1]  # equal to a keyword, and maybe another object
    assert is_native(f, **{name: X, "".join(["y"]): Y})
    with pytest.raises(TypeError):
        f(X, z=Y)
    with pytest.raises(TypeError):
        f(X, Y, x=X)


def test_into_with_keywords():
    f = pf.jit(lambda x, y: x * 2 + y)
    out = np.empty_like(X)
    for _ in range(4):
        assert f.into(out, X, y=Y) is out
    assert f.state().emitted_into
    np.testing.assert_array_equal(out, X * 2 + Y)


# --- containers ------------------------------------------------------------------------------


def test_arguments_in_containers():
    f = warm(layer, PARAMETERS, X)
    other = {"w": Y, "b": X[1]}
    np.testing.assert_allclose(f(other, Y), np.tanh(Y @ Y + X[1]), rtol=1e-5)
    assert is_native(f, other, Y)
    assert is_native(f, {"".join("w"): Y, "".join(["b"]): X[1]}, Y)


def deep(state, x):
    (a, [b, c]), flags = state
    d = a * x if flags["scale"] is None else c
    return {"product": d * c, "parts": (d, [d * 2, None], "name"), 3: b - c}


@pytest.mark.parametrize("kind", [tuple, list])
def test_nested_results(kind):
    state = ((X, [Y, X + 1]), {"scale": None, "mode": "fast"})
    f = warm(deep, state, Y)
    found, expected = f(state, Y), deep(state, Y)
    assert repr(found) == repr(expected)
    assert list(found) == ["product", "parts", 3]
    g = warm(lambda x: kind([x + 1, kind([x * 2])]), X)
    assert type(g(X)) is type(g(X)[1]) is kind


def test_one_result_in_several_places():
    def fn(x):
        y = x + 1
        return y, {"y": y}, [y]

    f = warm(fn, X)
    one, two, three = f(X)
    assert one is two["y"] is three[0]
    assert sys.getrefcount(one) == 4


def test_other_structures_are_pythons():
    f = warm(layer, PARAMETERS, X)
    w, b = PARAMETERS["w"], PARAMETERS["b"]

    class Table(dict):
        pass

    for other in (
        {"b": b, "w": w},
        OrderedDict(w=w, b=b),
        {"w": w, "b": b, "c": b},
        {"w": w.T, "b": b},
        Table(PARAMETERS),
    ):
        np.testing.assert_allclose(f(other, X), layer(PARAMETERS | other, X), rtol=1e-5)
    with pytest.raises(KeyError):
        f({"w": w}, X)
    with pytest.raises(pf.ArgumentError):
        f([w, {1, 2}], X)
    assert is_native(f, PARAMETERS, X)


def test_dicts_of_another_order_are_another_graph():
    """Code may depend on it."""

    def fn(table):
        first, second = table.values()
        return first * 2 - second

    f = warm(fn, {"a": X, "b": Y})
    for table in ({"b": X, "a": Y}, {"a": X, "c": Y}, {1: X, 2: Y}):
        assert not is_native(f, table)
        for _ in range(3):
            np.testing.assert_array_equal(f(table), fn(table))
        assert is_native(f, table)


class Mode(enum.IntEnum):
    FAST = 1
    SLOW = 2


def test_statics_are_compared():
    def fn(x, mode, how=None):
        return x * 2 if mode is Mode.FAST and how is None else x + 1

    f = warm(fn, X, Mode.FAST)
    assert not is_native(f, X, Mode.SLOW)
    np.testing.assert_array_equal(f(X, Mode.SLOW), X + 1)
    np.testing.assert_array_equal(f(X, Mode.FAST, "plain"), X + 1)
    for _ in range(2):
        f(X, Mode.FAST, "plain"), f(X, Mode.SLOW)
    for args in ((Mode.FAST,), (Mode.SLOW,), (Mode.FAST, "".join(["pl", "ain"]))):
        assert is_native(f, X, *args)
        np.testing.assert_array_equal(f(X, *args), fn(X, *args))


State = namedtuple("State", "x y")


def test_named_tuples():
    f = warm(lambda s, k: State({"x": s.x + s.y * k}, s.y - 1), State(X, Y), 2.0)
    found = f(State(Y, X), 3.0)
    assert type(found) is State
    np.testing.assert_allclose(found.x["x"], Y + X * 3, rtol=1e-6)
    np.testing.assert_array_equal(found.y, X - 1)
    with pytest.raises(AttributeError):
        f((X, Y), 2.0)
    given = State(Y, X)
    counts = [sys.getrefcount(o) for o in (found.y, found.x, X, Y, State, given)]
    for _ in range(100):
        f(given, 3.0)
    assert counts == [sys.getrefcount(o) for o in (found.y, found.x, X, Y, State, given)]


class Picky(namedtuple("Pair", "x y")):
    made, errors = SimpleQueue(), SimpleQueue()  # which traces take for pure: nobody compares them

    def __new__(cls, x, y):
        cls.made.put(x)
        if cls.errors.qsize():
            raise cls.errors.get()
        return super().__new__(cls, x, y)


@pytest.mark.usefixtures("queues_are_pure")
@pytest.mark.parametrize("error", [ValueError("refused"), MemoryError(), KeyboardInterrupt()])
def test_what_a_class_raises_is_raised(error):
    """Once, as its code may have effects or have been interrupted; the call is counted."""
    f = warm(lambda x: [Picky(x + 1, [x * 2])], X)
    before, counted = hits(f), f.state().counters["guard_hits"]
    made = Picky.made.qsize()
    Picky.errors.put(error)
    with pytest.raises(type(error)):
        f(X)
    assert (Picky.made.qsize() - made, hits(f) - before, f.state().counters["guard_hits"] - counted) == (1, 1, 1)


MARK = "half full"


class Watching(namedtuple("Watching", "x")):
    met = SimpleQueue()

    def __new__(cls, x):
        tuples = (o for o in gc.get_objects() if type(o) is tuple and len(o) == 3)
        if any(o[0] is MARK for o in tuples):
            cls.met.put(x)
        return super().__new__(cls, x)


def test_nobody_meets_half_full_containers():
    with taken_for_pure(gc.get_objects, SimpleQueue):
        f = warm(lambda x: (MARK, Watching(x + 1), x * 2), X)
    np.testing.assert_array_equal(f(X)[1].x, X + 1)
    assert not Watching.met.qsize()


def test_loops_and_branches_that_run_in_python_are_named_with_their_lines():
    for told, fn in (
        ("scf.while", lambda x: pf.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sort(s[1])), (0, x))),
        ("scf.if", lambda x: pf.cond(x.sum() > 0, lambda: np.tanh(x), lambda: x * 2)),
        ("profuse.asin", lambda x: np.arcsin(np.tanh(x) * 1j)),
    ):
        f = pf.jit(fn)
        for _ in range(3):
            f(X)
        place = f"{__file__}:{fn.__code__.co_firstlineno}"
        assert f"dispatched in Python: {told} at {place} runs in Python" in f.explain()


def test_items_live_until_the_call_ends(monkeypatch):
    """Making the result runs Python code, a finalizer say, that empties the container."""
    table, make = {}, output_pool.empty

    def empty(shape, dtype):
        table.clear()
        gc.collect()
        return make(shape, dtype)

    monkeypatch.setattr(output_pool, "empty", empty)
    f = pf.jit(lambda t: t["x"] * 2 + 1)
    for k in range(20):
        table["x"] = np.full((300, 400), k, np.float32)
        np.testing.assert_array_equal(f(table), np.full((300, 400), 2 * k + 1, np.float32))
    assert hits(f) > 10


def test_nothing_is_leaked():
    f = warm(layer, PARAMETERS, X)
    g = warm(deep, ((X, [Y, X + 1]), {"scale": None, "mode": "fast"}), Y)
    state = ((X, [Y, X + 1]), {"scale": None, "mode": "fast"})
    wrong = {"b": Y[0], "w": X}
    for _ in range(3):
        f(wrong, X), f(p=PARAMETERS, x=X)
    gc.collect()
    held = [X, Y, PARAMETERS, PARAMETERS["b"], None, state, state[0][1], "name"]
    limit = 300  # others may hold None meanwhile
    counts, blocks = [sys.getrefcount(o) for o in held], sys.getallocatedblocks()
    for _ in range(3000):
        f(PARAMETERS, X)
        f(p=PARAMETERS, x=X)
        g(state, Y)
    gc.collect()
    now = [sys.getrefcount(o) for o in held]
    for k, (a, b) in enumerate(zip(counts, now, strict=True)):
        assert abs(a - b) < limit, held[k]
    assert abs(sys.getallocatedblocks() - blocks) < 300


def test_many_items(monkeypatch):
    """One test after the other, however many: no recursion, and every way out in one place."""
    many = {f"p{k}": X + k for k in range(30)}
    f = warm(lambda table: {k: v * 2 - 1 for k, v in table.items()}, many)
    found = f(many)
    assert list(found) == list(many)
    np.testing.assert_array_equal(found["p29"], many["p29"] * 2 - 1)
    lines = entry_of(f).emitted.text.count("\n")
    assert lines < 200 * len(many)
    monkeypatch.setattr(attach, "MAX_VALUES", 50)
    g = pf.jit(lambda table: {k: v * 2 - 1 for k, v in table.items()})
    for _ in range(3):
        g(many)
    assert not g.state().emitted
    assert "more than 50 arguments and results" in g.explain()


def test_donated_items_are_overwritten():
    f = pf.jit(lambda p, g: {"w": p["w"] - 0.1 * g}, donate="p")
    p, g = {"w": np.ones((64, 64), np.float32)}, np.ones((64, 64), np.float32)
    places = set()
    for _ in range(6):
        p = f(p, g)
        places.add(p["w"].ctypes.data)
    assert f.state().counters["donated_results"] >= 3
    np.testing.assert_allclose(p["w"], 1 - 0.6, rtol=1e-5)


def test_any_number_of_arguments():
    table = {f"p{k}": np.full((2, 2), k, np.float32) for k in range(400)}
    f = warm(lambda t: t["p1"] * 2 + t["p399"], table)
    np.testing.assert_array_equal(f(table), np.full((2, 2), 401, np.float32))
    assert not is_native(f, table | {"p200": np.zeros(2, np.float32)})
    assert is_native(f, table)


# --- numbers that graphs hold for ------------------------------------------------------------


def test_baked_numbers():
    def fn(x, n):
        for _ in [*range(n)]:  # asks for a number, where a range alone is a loop of the graph
            x = x * 2 + 1
        return x + 1

    f = warm(fn, X, 2)
    assert not is_native(f, X, 3)
    for _ in range(3):
        np.testing.assert_array_equal(f(X, 3), fn(X, 3))
    assert is_native(f, X, 2) and is_native(f, X, 3)
    for n in (-(2**31) - 1, -(2**40), -(2**63)):
        assert not is_native(f, X, n)
    f = warm(fn, X, -1)
    with pytest.raises(pf.DTypeError):
        f(X, 2**64)


def test_baked_flags_and_floats():
    def fn(x, flag, scale):
        y = x * 2 if flag else x + 1
        return y if scale > 0.5 else y * float(scale)

    pool = [(X, flag, scale) for flag in (True, False) for scale in (0.25, 0.75, -0.0, 0.0)]
    calls = [pool[k % len(pool)] for k in range(40)]
    with knobs.override(max_traces=64):
        got, counted = outcome(fn, calls, native=True)
        want, python = outcome(fn, calls, native=False)
    assert got == want and counted == python


LEAVES = [np.zeros((3, 5)), 7, True, 2.5]
_NAMES = {"//": "floor_div", "%": "remainder"}


def combined(operator, a, b):
    """As a derivation has it: a size unless it is computed from, or divided by, what may be any."""
    if isinstance(a, Computed) or isinstance(b, Computed):
        return a if isinstance(a, Computed) else b
    if operator in _NAMES and not (isinstance(b, int) and b):
        return Computed(_NAMES[operator], (a, b))
    return OPERATORS[operator](a, b)


_exprs = st.recursive(
    st.one_of(
        st.builds(lambda axis: symbol(Dimension(0, axis)), st.integers(0, 1)),
        st.just(symbol(Integer(1))),
        st.integers(-4, 9),
    ),
    lambda inner: st.builds(combined, st.sampled_from(sorted(OPERATORS)), inner, inner),
    max_leaves=5,
)
_guards = st.one_of(
    _exprs,
    st.builds(
        lambda op, a, b: Computed(op, (a, b)), st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), _exprs, _exprs
    ),
    st.just(PassedNumber(2)),
    st.just(PassedNumber(3)),
)


# Each example is a compile; under a checking interpreter a few do.
@settings(max_examples=100 if EVERY_CASE else 30, deadline=None)
@given(_guards, st.data())
def test_random_baked_numbers(expr, data):
    """Emitted, trace guards answer as `TraceGuard.holds` does."""
    try:
        expected = evaluate(expr, LEAVES)
    except ArithmeticError:
        return
    expected = expected.item() if isinstance(expected, np.generic) else expected
    guard = TraceGuard(expr, expected)
    arguments = flat_arguments([(np.dtype(np.float64), 2), int, bool, float])
    try:
        arguments.tests += baked_tests([guard], arguments.values)
    except Refused:
        return
    leaf = Leaf()
    leaf.finish(arguments, ("tuple", None, ()))
    recent = np.zeros(3, np.int64)
    entry = make_entry([leaf], lambda *_: None, plain_settings(recent))
    assert entry.call(*LEAVES) == ()
    for _ in range(6):
        shape = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
        number = data.draw(st.one_of(st.integers(-9, 9), st.integers(-(2**70), 2**70)))
        flag, real = data.draw(st.booleans()), data.draw(st.sampled_from([2.5, -0.0, 0.0, np.nan]))
        leaves = [np.zeros(shape), number, flag, float(real)]
        found = entry.call(*leaves) == ()
        assert not found or guard.holds(leaves)
        if abs(number) < 2**31:
            assert found == guard.holds(leaves), (guard, leaves)
