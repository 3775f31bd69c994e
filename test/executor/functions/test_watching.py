"""Whatever a function reads, calls or writes unseen by its own text is as in Python at each call.

Each program runs beside itself without `jit`, at least until it is native, and something that it
depends on changes in between.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses
import decimal
import enum
import functools
import gc
import hashlib
import io
import itertools
import json
import operator
import os
import pathlib
import queue
import random
import sqlite3
import sys
import tempfile
import threading
import types
import weakref
from os import stat as stat_of

import numpy as np
import profuse as pf
import pytest
from internals import taken_for_pure

X = np.arange(1.0, 4.0)
SCALE = 2.0


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


def rescale(value=5.0):
    global SCALE
    SCALE = value


def calls(function, change=None, count=7, at=4):
    """What a function gives at each of some calls, with a change before one of them."""
    rescale(2.0)
    found = []
    for k in range(count):
        if k == at and change is not None:
            change()
        try:
            found.append(function(X.copy()))
        except (ArithmeticError, LookupError, StopIteration) as error:
            found.append(type(error).__name__)
        if hasattr(function, "wait"):
            function.wait()
    return found


def check(program):
    """Run a program of `jit` with and without, and compare all that it returns."""
    expected, found = program(lambda f: f), program(pf.jit)
    assert repr(found) == repr(expected)


class Code:
    """An object whose class has code that Python calls."""

    kept = 2.0

    @property
    def gain(self):
        return SCALE

    @functools.cached_property
    def of_a_class(self):
        return self.kept

    def __add__(self, x):
        return x + SCALE

    __radd__ = __add__
    __array_ufunc__ = None

    def __getitem__(self, k):
        return SCALE * k

    def __iter__(self):
        return iter((SCALE, 1.0))

    def __contains__(self, value):
        return value < SCALE

    def __bool__(self):
        return SCALE < 3

    def __len__(self):
        return int(SCALE)

    def __float__(self):
        return SCALE

    def __index__(self):
        return int(SCALE) % 3

    def __eq__(self, other):
        return SCALE < 3

    __hash__ = None

    def __lt__(self, other):
        return SCALE < 3

    def __call__(self, x):
        return x - SCALE

    def __enter__(self):
        return SCALE

    def __exit__(self, *raised):
        return None

    def __format__(self, spec):
        return str(SCALE)

    def __getattr__(self, name):
        if name == "late":
            return SCALE
        raise AttributeError(name)

    def total(self):
        return sum(SCALE * k for k in range(3))

    @classmethod
    def of_class(cls):
        return SCALE

    def __class_getitem__(cls, k):
        return SCALE * k


class Described:
    class Scale:
        def __get__(self, holder, kind):
            return SCALE

    scale = Scale()


class Meta(type):
    @property
    def gain(cls):
        return SCALE

    def __instancecheck__(cls, value):
        return SCALE < 3


class OfMeta(metaclass=Meta):
    pass


class Missing(dict):
    def __missing__(self, key):
        return SCALE


class Mode(enum.Enum):
    ONE = 1

    @property
    def gain(self):
        return SCALE


@dataclasses.dataclass
class Made:
    a: float

    def __post_init__(self):
        self.b = self.a * SCALE


class New:
    def __new__(cls):
        made = object.__new__(cls)
        made.gain = SCALE
        return made


class Pair(collections.namedtuple("Pair", "a b")):
    @property
    def gain(self):
        return self.a * SCALE


@functools.singledispatch
def scaled(a):
    return 0.0


@scaled.register
def _(a: int):
    return SCALE


@contextlib.contextmanager
def scope():
    yield SCALE


def entered(x):
    with CODE as scale:
        return x * scale


def managed(x):
    with scope() as scale:
        return x * scale


def unpacked(x):
    one, two = CODE
    return x * one + two


def iterated(x):
    for value in CODE:
        x = x * value
    return x


CODE, DESCRIBED, MISSING, PAIR = Code(), Described(), Missing(), Pair(1.0, 2.0)
READERS = {
    "property": lambda x: x * CODE.gain,
    "operator": lambda x: CODE + x,
    "reflected operator": lambda x: x + CODE,
    "item": lambda x: x * CODE[2],
    "iteration": iterated,
    "unpacking": unpacked,
    "contains": lambda x: x * (3 in CODE),
    "truth": lambda x: x + 1 if CODE else x - 1,
    "length": lambda x: x * len(CODE),
    "float": lambda x: x * float(CODE),
    "index": lambda x: x * [1.0, 2.0, 3.0][CODE],
    "equality": lambda x: x * (CODE == 3),
    "order": lambda x: x * (CODE < 3),
    "call": lambda x: CODE(x),
    "with": entered,
    "context manager": managed,
    "text": lambda x: x * float(f"{CODE}"),
    "attribute that is made up": lambda x: x * CODE.late,
    "generator in a method": lambda x: x * CODE.total(),
    "method of the class": lambda x: x * Code.of_class(),
    "item of the class": lambda x: x * Code[2],
    "descriptor": lambda x: x * DESCRIBED.scale,
    "metaclass": lambda x: x * OfMeta.gain,
    "isinstance": lambda x: x * isinstance(3, OfMeta) + 1,
    "missing key": lambda x: x * MISSING["k"],
    "enum": lambda x: x * Mode.ONE.gain,
    "made by a dataclass": lambda x: x * Made(1.0).b,
    "made by __new__": lambda x: x * New().gain,
    "named tuple": lambda x: x * PAIR.gain,
    "dispatched": lambda x: x * scaled(1),
    "method caller": lambda x: x * operator.methodcaller("total")(CODE),
    "key of a sort": lambda x: x * sorted([1.0, 2.0], key=lambda v: abs(v - SCALE))[0],
    "reduction": lambda x: x * functools.reduce(lambda a, b: a * b * SCALE, [1.0, 2.0]),
    "evaluated text": lambda x: x * eval("SCALE * 2"),
    "vectorized": lambda x: x * np.vectorize(lambda v: v * SCALE)(np.ones(3)),
}


@pytest.mark.parametrize("name", READERS)
def test_code_that_python_calls(name):
    function = READERS[name]
    f = pf.jit(function)
    np.testing.assert_equal(calls(f, rescale), calls(function, rescale))
    rescale(2.0)
    assert f.state().tier != "python", f.explain()


def test_text_that_stands_beside_others():
    """Functions whose text does not parse by itself, or is nowhere."""
    table = {"sum": lambda x: x + CODE.gain + CODE[1]}
    one, two = (lambda x: x * CODE.total()), (lambda x: x * CODE.total() + 1)
    space = {"np": np, "code": CODE}
    exec("def made(x):\n    return code.total() * x + np.ones(3)\n", space)
    for function in (table["sum"], one, two, space["made"]):
        np.testing.assert_array_equal(calls(pf.jit(function), rescale), calls(function, rescale))


# --- effects ------------------------------------------------------------------------------------


def restored(jit):
    box = types.SimpleNamespace(gain=1.0)

    class Scope:
        def __enter__(self):
            self.old, box.gain = box.gain, 5.0

        def __exit__(self, *raised):
            box.gain = self.old

    @jit
    def f(x):
        with Scope():
            return x * box.gain

    return calls(f), box.gain


def counted(jit):
    counts = {"calls": 0}

    @contextlib.contextmanager
    def timed():
        counts["calls"] += 1
        yield

    def f(x):
        with timed():
            return x * 2 + 1

    return calls(jit(f)), counts


def counted_by_an_operator(jit):
    class Adder:
        def __init__(self):
            self.count = 0

        def __add__(self, x):
            self.count += 1
            return x + self.count

    adder = Adder()
    return calls(jit(lambda x: adder + x)), adder.count


def counted_by_a_class(jit):
    class Lazy:
        made = 0

        @functools.cached_property
        def value(self):
            Lazy.made += 1
            return 2.0

    lazy = Lazy()
    return calls(jit(lambda x: x * lazy.value)), Lazy.made


def counted_by_a_closure(jit):
    count = 0

    class Counting:
        @property
        def count(self):
            nonlocal count
            count += 1
            return count

    counting = Counting()
    return calls(jit(lambda x: x * counting.count)), count


def written_and_read(jit):
    box = types.SimpleNamespace(gain=1.0)

    class Reader:
        @property
        def gain(self):
            return box.gain

    reader = Reader()

    def f(x):
        box.gain = box.gain + 1.0
        return x * reader.gain

    return calls(jit(f)), box.gain


def set_by_a_property(jit):
    class Setting:
        def __init__(self):
            self.held, self.log = 0.0, []

        @property
        def value(self):
            return self.held

        @value.setter
        def value(self, new):
            self.held = new * SCALE
            self.log.append(new)

    setting = Setting()

    def f(x):
        setting.value = 3.0
        return x * setting.value

    return calls(jit(f), rescale), setting.held, setting.log


def finalized(jit):
    log = []

    class Ending:
        def __del__(self):
            log.append(1)

    def f(x):
        ending = Ending()
        del ending
        return x * 2

    return calls(jit(f)), len(log)


def default_made(jit):
    made = [0]

    def default():
        made[0] += 1
        return 2.0

    @dataclasses.dataclass
    class Holder:
        a: float = dataclasses.field(default_factory=default)

    return calls(jit(lambda x: x * Holder().a)), made


def called_back(jit):
    log = []

    def f(x):
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, 1)
            return x * 2

    return calls(jit(f)), log


@pytest.mark.parametrize(
    "program",
    [
        restored,
        counted,
        counted_by_an_operator,
        counted_by_a_class,
        counted_by_a_closure,
        written_and_read,
        set_by_a_property,
        finalized,
        default_made,
        called_back,
    ],
)
def test_effects_of_code_that_python_calls(program):
    check(program)


# --- what is held -------------------------------------------------------------------------------


def held_append(jit):
    losses = []
    record = losses.append

    def f(w):
        w = w * 0.5
        record(float((w**2).sum()))
        return w

    return calls(jit(f)), losses


def held_getter(jit):
    table = {"s": 2.0}
    get = table.get
    return calls(jit(lambda x: x * get("s")), lambda: table.update(s=5.0))


def held_item(jit):
    table = {"s": 2.0}
    get = table.__getitem__
    return calls(jit(lambda x: x * get("s")), lambda: table.update(s=5.0))


def held_contains(jit):
    seen = {1}
    has = seen.__contains__
    return calls(jit(lambda x: x * has(2)), lambda: seen.add(2))


def held_sum(jit):
    w = np.ones(3)
    total = w.sum
    return calls(jit(lambda x: x * total()), lambda: w.__setitem__(0, 9.0))


def held_fill(jit):
    w = np.ones(3)
    fill = w.fill

    def f(x):
        fill(x[0] * 2.0)
        return x + 1

    return calls(jit(f)), w


def held_pop(jit):
    items = list(range(20))
    pop = items.pop
    return calls(jit(lambda x: x * pop())), items


def held_update(jit):
    table = {"a": 0}
    update = table.update

    def f(x):
        update(a=table["a"] + 1)
        return x * table["a"]

    return calls(jit(f)), table


def mapped_append(jit):
    seen = []

    def f(x):
        list(map(seen.append, [1, 2]))
        return x * 2

    return calls(jit(f)), seen


def called_by_an_argument(jit):
    seen = []
    f = jit(lambda x, callback: callback(float(x.sum())) or x * 2)
    return [f(X, seen.append) for _ in range(6)], seen


@pytest.mark.parametrize(
    "program",
    [
        held_append,
        held_getter,
        held_item,
        held_contains,
        held_sum,
        held_fill,
        held_pop,
        held_update,
        mapped_append,
        called_by_an_argument,
    ],
)
def test_methods_that_are_held(program):
    check(program)


# --- the world outside --------------------------------------------------------------------------


def folder():
    return pathlib.Path(tempfile.mkdtemp())


def file_of_text(jit):
    path = folder() / "v"
    path.write_text("2")
    return calls(jit(lambda x: x * float(path.read_text())), lambda: path.write_text("5"))


def file_of_numbers(jit):
    path = folder() / "v"
    path.write_text("2")
    return calls(jit(lambda x: x * np.loadtxt(path)), lambda: path.write_text("5"))


def file_of_an_array(jit):
    path = folder() / "v.npy"
    np.save(path, np.ones(3))
    return calls(jit(lambda x: x * np.load(path)), lambda: np.save(path, np.full(3, 5.0)))


def file_that_exists(jit):
    path = folder() / "v"
    return calls(jit(lambda x: x * path.exists()), lambda: path.write_text("a"))


def database(jit):
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a)")

    def f(x):
        db.execute("insert into t values (1)")
        return x * 2

    with contextlib.closing(db):
        return calls(jit(f)), db.execute("select count(*) from t").fetchone()


def stream(jit):
    out = io.StringIO()

    def f(x):
        json.dump([1], out)
        return x * 2

    return calls(jit(f)), out.getvalue()


def digest(jit):
    digest = hashlib.sha256()

    def f(x):
        digest.update(b"a")
        return x * 2

    return calls(jit(f)), digest.hexdigest()


def decimals(jit):
    def f(x):
        return x * float(decimal.Decimal(1) / decimal.Decimal(3))

    with decimal.localcontext() as context:
        return calls(jit(f), lambda: setattr(context, "prec", 2))


def environment(jit):
    os.environ["PROFUSE_TEST_NUMBER"] = "2"
    return calls(
        jit(lambda x: x * float(os.environ.get("PROFUSE_TEST_NUMBER", "7"))),
        lambda: os.environ.pop("PROFUSE_TEST_NUMBER"),
    )


def numbers_drawn(jit):
    class Drawn:
        @property
        def value(self):
            return random.random()

    random.seed(3)
    drawn = Drawn()
    return calls(jit(lambda x: x * drawn.value))


def iterators(jit):
    counter, generator = itertools.count(), (k for k in range(100))
    return calls(jit(lambda x: x * next(counter) + next(generator)))


def queues(jit):
    queued = queue.Queue()

    def f(x):
        queued.put(1)
        return x * 2

    return calls(jit(f)), queued.qsize()


def weak_references(jit):
    code = Code()
    reference = weakref.ref(code)
    return calls(jit(lambda x: x * reference().kept), lambda: setattr(code, "kept", 5.0))


def bytes_of_others(jit):
    held = bytearray(b"\2")
    view = memoryview(held)
    return calls(jit(lambda x: x * held[0] + view[0]), lambda: held.__setitem__(0, 5))


@pytest.mark.parametrize(
    "program",
    [
        file_of_text,
        file_of_numbers,
        file_of_an_array,
        file_that_exists,
        database,
        stream,
        digest,
        decimals,
        environment,
        numbers_drawn,
        iterators,
        queues,
        weak_references,
        bytes_of_others,
    ],
)
def test_the_outside_is_asked_at_each_call(program):
    check(program)


def test_locks_are_held():
    class Total:
        def __init__(self):
            self.lock, self.total, self.count = threading.Lock(), np.zeros(20000), 0

        def add(self, value):
            with self.lock:
                self.count += 1
                self.total += value

    add, one = pf.jit(Total.add), np.ones(20000)
    warm = Total()
    for _ in range(4):
        add(warm, one)
    for total, each in ((Total(), 250), (warm, 249)):
        threads = [
            threading.Thread(target=lambda total=total, each=each: [add(total, one) for _ in range(each)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = 8 * each + (4 if total is warm else 0)
        assert total.count == total.total.min() == total.total.max() == expected
        assert not total.lock.locked()
    assert add.state().tier == "python"


# --- bindings -----------------------------------------------------------------------------------


def bound_ufunc(jit):
    model = types.SimpleNamespace(act=np.tanh)
    return calls(jit(lambda x: model.act(x)), lambda: setattr(model, "act", np.sin))


def bound_dtype(jit):
    model = {"dtype": np.float32}
    return calls(jit(lambda x: x.astype(model["dtype"])), lambda: model.update(dtype=np.float64))


def bound_builtin(jit):
    model = {"f": max}
    return calls(jit(lambda x: x * model["f"](2, 3)), lambda: model.update(f=min))


def bound_class(jit):
    model = types.SimpleNamespace(kind=list)
    return calls(jit(lambda x: x * len(model.kind((1, 1)))), lambda: setattr(model, "kind", set))


def code_in_place(jit):
    def g(x):
        return x + 1

    def h(x):
        return x * 100

    return calls(jit(lambda x: g(x)), lambda: setattr(g, "__code__", h.__code__))


def own_code_in_place(jit):
    def f(x):
        return x + 1

    def h(x):
        return x * 100

    return calls(jit(f), lambda: setattr(f, "__code__", h.__code__))


def code_of_a_property(jit):
    class Holder:
        @property
        def k(self):
            return 2.0

    def new(self):
        return 9.0

    holder, getter = Holder(), Holder.k.fget
    return calls(jit(lambda x: x * holder.k), lambda: setattr(getter, "__code__", new.__code__))


def property_of_a_class(jit):
    class Holder:
        @property
        def k(self):
            return 2.0

    holder = Holder()
    return calls(jit(lambda x: x * holder.k), lambda: setattr(Holder, "k", property(lambda s: 5.0)))


def static_method(jit):
    class Holder:
        @staticmethod
        def g(x):
            return x * 2

    new = staticmethod(lambda x: x * 7)
    return calls(jit(lambda x: Holder.g(x)), lambda: setattr(Holder, "g", new))


def defaults_in_place(jit):
    def g(x, *, s=2.0):
        return x * s

    return calls(jit(lambda x: g(x)), lambda: g.__kwdefaults__.update(s=7.0))


def keywords_of_a_partial(jit):
    p = functools.partial(lambda x, s: x * s, s=2.0)
    return calls(jit(lambda x: p(x)), lambda: p.keywords.update(s=5.0))


def attribute_that_comes_later(jit):
    holder = types.SimpleNamespace()

    def f(x):
        try:
            return x * holder.late
        except AttributeError:
            return x * 0

    return calls(jit(f), lambda: setattr(holder, "late", 5.0))


def name_that_comes_later(jit):
    space = {}
    exec("def f(x):\n    try: return x * LATE\n    except NameError: return x * 0\n", space)
    return calls(jit(space["f"]), lambda: space.update(LATE=5.0))


@pytest.mark.parametrize(
    "program",
    [
        bound_ufunc,
        bound_dtype,
        bound_builtin,
        bound_class,
        code_in_place,
        own_code_in_place,
        code_of_a_property,
        property_of_a_class,
        static_method,
        defaults_in_place,
        keywords_of_a_partial,
        attribute_that_comes_later,
        name_that_comes_later,
    ],
)
def test_bindings(program):
    check(program)


# --- what is pure -------------------------------------------------------------------------------


def test_pure_functions_are_constants_of_what_they_are_given():
    texts = {"text": b"a"}

    def f(x):
        return x * hashlib.sha256(texts["text"]).digest()[0]

    def results(function):
        texts["text"] = b"a"
        return calls(function, lambda: texts.update(text=b"b"))

    plain, watched = pf.jit(f), pf.jit(f)
    np.testing.assert_array_equal(results(plain), results(f))
    with taken_for_pure(hashlib.sha256, type(hashlib.sha256())):
        np.testing.assert_array_equal(results(watched), results(f))
    assert (plain.state().tier, watched.state().tier) == ("python", "optimized")


def test_profilers_go_on():
    """A profile function of the user's sees what it would have seen, and is set again."""
    seen = []

    def profiler(frame, event, argument):
        seen.append(frame.f_code.co_name)

    def watched(x):
        return helper(x) * 2

    def helper(x):
        return x + 1

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        pf.jit(watched)(X)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert {"watched", "helper"} <= set(seen)


def test_collectors_are_not_the_functions():
    """What the garbage collector calls at some moment of a trace is not part of the function."""
    states = []

    def called(phase, info):
        states.append(os.getpid())

    def f(x):
        for _ in range(3):
            gc.collect()
            x = x + 1
        return x

    gc.callbacks.append(called)
    try:
        with taken_for_pure(gc.collect):
            jitted = pf.jit(f)
            calls(jitted)
    finally:
        gc.callbacks.remove(called)
    assert states and jitted.state().counters["python_calls"] == 0


def test_functions_are_freed_with_their_modules():
    class Marked:
        pass

    def made():
        space = {"pf": pf, "mark": Marked(), "SCALE": 2.0}
        exec("f = pf.jit(lambda x: x * SCALE)", space)
        for _ in range(5):
            space["f"](X)
        assert space["f"].state().emitted
        return weakref.ref(space["mark"])

    mark = made()
    gc.collect()
    assert mark() is None


def test_abstract_classes_are_told_apart():
    class Shape(abc.ABC):
        @property
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        @property
        def area(self):
            return SCALE**2

    square = Square()
    f = pf.jit(lambda x: x * square.area * isinstance(square, Shape))
    np.testing.assert_array_equal(
        calls(f, rescale), calls(lambda x: x * square.area * isinstance(square, Shape), rescale)
    )


def _stat_size(call):
    """A function whose result depends on a file, of which C code asks the size."""
    return lambda x, path: x + call(path).st_size


@pytest.mark.parametrize(
    "call",
    [
        lambda path: next(map(os.stat, [path])),
        lambda path: next(itertools.starmap(os.stat, [(path,)])),
        lambda path: next(itertools.starmap(stat_of, [(path,)])),
        lambda path: functools.partial(os.stat, path)(),
        lambda path: next(map(functools.partial(stat_of), [path])),
        lambda path: functools.reduce(lambda _, found: found, map(os.stat, [path]), None),
    ],
)
def test_what_c_code_calls(call, tmp_path):
    """The profile function is not told of it: what the code reads stands for such functions."""
    path = str(tmp_path / "read")
    plain = _stat_size(call)
    f = pf.jit(plain)
    for size in (3, 5, 9, 11):
        pathlib.Path(path).write_text("a" * size)
        np.testing.assert_array_equal(f(np.zeros(2), path), plain(np.zeros(2), path))
        f.wait()
    counters = f.state().counters
    assert (counters["python_calls"], counters["kernel_launches"]) == (4, 0)
    assert "posix.stat is called while tracing" in f.explain()
