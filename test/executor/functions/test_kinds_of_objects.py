"""Every kind of object that outlives a call is read, written and carried as in plain Python."""

import dataclasses
import functools
import operator
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.world import restoring
from profuse.dialect.importers.numpy.world.contents import Contents
from profuse.dialect.importers.numpy.world.journal import Journal
from profuse.dialect.importers.numpy.world.restoring import holds_tracer

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def in_python():
    with pf.knobs.override(unsupported="python"):
        yield


class Rows(list):
    pass


class Marked(list):
    __slots__ = ("gain",)


class Table(dict):
    pass


class Ordered(OrderedDict):
    pass


class Names(set):
    pass


class Queue(deque):
    pass


class Pair(tuple):
    pass


class Array(np.ndarray):
    pass


class Failure(ValueError):
    pass


class Slotted:
    __slots__ = ("gain",)


class Plain:
    pass


def function(x):
    return x


def two():
    return 2.0


def three():
    return 3.0


def of_attribute(made):
    made.gain = 2.0
    return made


# What has an attribute ``gain`` of its own.
HOLDERS = {
    "instance": Plain,
    "slots": Slotted,
    "list": lambda: Rows([1.0]),
    "slots of a list": lambda: Marked([1.0]),
    "dict": lambda: Table(a=1.0),
    "ordered dict": lambda: Ordered(a=1.0),
    "C's ordered dict": lambda: OrderedDict(a=1.0),
    "counter": lambda: Counter("ab"),
    "set": lambda: Names("ab"),
    "deque": lambda: Queue([1.0]),
    "tuple": lambda: Pair([1.0]),
    "array": lambda: np.ones(4).view(Array),
    "exception": lambda: Failure(1.0),
    "namespace": types.SimpleNamespace,
    "partial": lambda: functools.partial(operator.mul, 2.0),
    "function": lambda: types.FunctionType(function.__code__, globals()),
}


def results(f, change):
    found = [f(X), f(X)]
    for number in range(3):
        change(number)
        found += [f(X), f(X)]
    return found


@pytest.mark.parametrize("name", HOLDERS)
def test_attributes_are_compared(name):
    held = of_attribute(HOLDERS[name]())

    def f(x):
        return x * held.gain

    def change(number):
        held.gain = 3.0 + number

    jitted = pf.jit(f)
    found = results(jitted, change)
    change(-1)
    held.gain = 2.0
    np.testing.assert_equal(found, results(f, change))
    assert jitted.state().counters["python_calls"] == 0


@pytest.mark.parametrize("name", HOLDERS)
def test_attributes_are_assigned(name):
    """What is assigned holds no traced value, and what the next call reads."""
    ours, theirs = of_attribute(HOLDERS[name]()), of_attribute(HOLDERS[name]())

    def assigns(held):
        def f(x):
            held.gain = held.gain + x.sum()
            return x * 2

        return f

    f, g = pf.jit(assigns(ours)), assigns(theirs)
    for number in range(4):
        np.testing.assert_array_equal(f(X + number), g(X + number))
        assert type(ours.gain) is type(theirs.gain) and ours.gain == theirs.gain


@pytest.mark.parametrize("name", HOLDERS)
def test_attributes_in_rounds(name):
    make = HOLDERS[name]

    def f(x):
        made = make()
        made.gain = 0.0
        made.count = 0
        for k in range(40):
            made.gain = made.gain + x[k % 4]
            made.count = made.count + 1
        return x * made.gain * made.count

    def f_of_slots(x):
        made = make()
        made.gain = 0.0
        for k in range(40):
            made.gain = made.gain + x[k % 4]
        return x * made.gain

    wanted = f_of_slots if "slots" in name else f
    np.testing.assert_allclose(pf.jit(wanted)(X), wanted(X), rtol=1e-12)


RECORD = np.dtype([("gain", float), ("count", int)])


def record():
    return np.array([(2.0, 1), (0.0, 0)], RECORD)[0]


@pytest.mark.parametrize("where", ["global", "list", "attribute"])
def test_records_are_compared(where):
    held = record()
    holder = {"global": held, "list": [held], "attribute": types.SimpleNamespace(held=held)}[where]
    reads = {
        "global": lambda x: x * holder["gain"],
        "list": lambda x: x * holder[0]["gain"],
        "attribute": lambda x: x * holder.held["gain"],
    }[where]

    def change(number):
        held["gain"] = 3.0 + number

    jitted = pf.jit(reads)
    found = results(jitted, change)
    held["gain"] = 2.0
    np.testing.assert_equal(found, results(reads, change))
    assert jitted.state().counters["python_calls"] == 0


def test_records_are_written_at_each_call():
    held = record()

    def f(x):
        held["count"] += 1
        return x * 2

    jitted = pf.jit(f)
    for number in range(4):
        jitted(X)
        assert held["count"] == number + 2


def test_contents_of_records_are_restored():
    for dtype in (RECORD, [("gain", float), ("text", object)]):
        held = np.zeros(2, dtype)[0]
        before, noted = held.item(), Contents(held)
        assert noted.fits(held)
        held["gain"] = 7.0
        assert not noted.fits(held)
        noted.restore(held)
        assert noted.fits(held) and held.item() == before


def test_what_makes_missing_items_is_compared():
    table = defaultdict(two)

    def f(x):
        return x * table.default_factory()

    def change(number):
        table.default_factory = (three, two)[number % 2]

    jitted = pf.jit(f)
    found = results(jitted, change)
    table.default_factory = two
    np.testing.assert_equal(found, results(f, change))
    assert jitted.state().counters["python_calls"] == 0


def test_what_makes_missing_items_is_assigned():
    table, other = defaultdict(two), types.SimpleNamespace(gain=1.0)

    def f(x):
        table.default_factory = three
        other.gain = x[0]
        return x * 2

    jitted = pf.jit(f)
    for _ in range(3):
        jitted(X)
        assert table.default_factory is three and other.gain == 1.0
        table.default_factory, other.gain = two, 0.0


VIEWS = {"of a dict": lambda table: table, "of tables in a row": ChainMap, "of a view": types.MappingProxyType}


@pytest.mark.parametrize("name", VIEWS)
def test_what_a_view_of_a_mapping_shows_is_compared(name):
    table = {"gain": 2.0, "w": np.ones(4)}
    view = types.MappingProxyType(VIEWS[name](table))
    get = view.get

    def f(x):
        return x * view["gain"] * view["w"] + len(view) + get("bias", 0.0)

    def change(number):
        if number == 0:
            table["gain"] = 3.0
        elif number == 1:
            table["w"] = np.full(4, 5.0)
        else:
            table["bias"] = 7.0

    jitted = pf.jit(f)
    found = results(jitted, change)
    table.pop("bias")
    table |= {"gain": 2.0, "w": np.ones(4)}
    np.testing.assert_equal(found, results(f, change))
    assert jitted.state().counters["python_calls"] == 0


def test_a_view_of_what_the_function_writes_shows_it():
    table = {"gain": 2.0}
    view = types.MappingProxyType(table)

    def f(x):
        table["gain"] = table["gain"] + 1
        return x * view["gain"]

    jitted = pf.jit(f)
    np.testing.assert_equal([jitted(X) for _ in range(4)], [X * (3.0 + k) for k in range(4)])
    assert table["gain"] == 6.0


def test_classes_that_a_function_makes():
    """A dataclass has a view of an empty dict of the library's."""

    def f(x):
        @dataclasses.dataclass
        class Sums:
            total: object = 0.0
            count: int = 0

            def add(self, value):
                self.total, self.count = self.total + value, self.count + 1

        sums = Sums()
        sums.add(x.sum())
        sums.add((x * x).sum())
        return sums.total / sums.count

    jitted = pf.jit(f)
    for _ in range(3):
        assert jitted(X) == f(X)
    assert jitted.state().counters["python_calls"] == 0
    np.testing.assert_allclose(pf.grad(f)(X), (1 + 2 * X) / 2)


def test_arguments_of_exceptions():
    error = Failure(2.0)

    def f(x):
        return x * error.args[0]

    def change(number):
        error.args = (3.0 + number,)

    jitted = pf.jit(f)
    found = results(jitted, change)
    error.args = (2.0,)
    np.testing.assert_equal(found, results(f, change))

    def g(x):
        error.args = (x.sum(), *error.args)
        return x * 2

    jitted = pf.jit(g)
    for number in range(3):
        jitted(X)
        assert len(error.args) == number + 2 and type(error.args[0]) is np.float64


def test_masks_are_contents():
    held = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[False] * 4)

    def f(x):
        held[0] = np.ma.masked
        return x * 2

    jitted = pf.jit(f)
    for _ in range(3):
        jitted(X)
        assert held.mask.tolist() == [True, False, False, False]
        held.mask = False


def test_functions_that_are_stored_are_the_users_own():
    """Copies that a trace runs, and functions that it makes, stay in the trace."""
    held = types.SimpleNamespace(act=None, inner=None, gain=1.0)

    def f(x):
        held.act = two
        return x * 2

    def g(x):
        total = x.sum()
        held.inner = lambda: total
        return x * 2

    def h(x):
        def inner():
            return SCALE

        return inner, x * 2

    first, second, third = pf.jit(f), pf.jit(g), pf.jit(h)
    for number in range(3):
        first(X)
        assert held.act is two
        second(X + number)
        assert held.inner() == (X + number).sum()
        assert third(X)[0].__globals__ is globals() and third(X)[0] is not third(X)[0]
    assert first.state().counters["python_calls"] == 0


SCALE = 2.0


def test_results_hold_no_traced_values():
    """Whatever holds them: only what a graph can make anew is a result of one."""

    def made(x):
        y = x.sum()
        holder, error = Plain(), Failure(y)
        holder.queue, holder.error = deque([y]), error
        return functools.partial(operator.mul, y), holder, y.__add__, error, [lambda: y]

    scaled, holder, added, error, (read,) = pf.jit(made)(X)
    assert scaled(2.0) == 2 * X.sum() and holder.queue[0] == X.sum() and added(1) == X.sum() + 1
    assert error.args[0] == holder.error.args[0] == read() == X.sum()
    assert not holds_tracer((scaled, holder, added, error, read))


def test_a_pullback_may_have_more_parts_than_are_watched(monkeypatch):
    functions = [np.sin, np.cos] * 60

    def f(x):
        y = x
        for function in functions:
            y = function(y) * 0.5
        return y

    monkeypatch.setattr(restoring, "MOST_OBJECTS", 1500)
    _, pull = pf.vjp(f, X)
    (gradient,) = pull(np.ones(4))
    np.testing.assert_allclose(gradient, pf.grad(lambda x: f(x).sum())(X))


def test_rounds_that_change_objects_of_packages():
    def f(x):
        scaled = functools.partial(operator.mul, 1.0)
        scaled.rounds = 0
        for _ in range(40):
            scaled.rounds = scaled.rounds + 1
            x = x + 1
        return x * scaled.rounds

    np.testing.assert_array_equal(pf.jit(f)(X), f(X))


def test_shapes_are_restored():
    held = np.zeros((2, 3))
    journal = Journal()
    journal.watch(held, "held")
    held.shape = (3, 2)
    assert journal.undo() and held.shape == (2, 3) and journal.is_undone
