"""A traced function has a NumPy of its own; no other code meets a traced value."""

import dataclasses
import datetime
import functools
import operator
import os
import random
import secrets
import sys
import threading
import time
import uuid
from queue import SimpleQueue

import numpy as np
import profuse as pf
import pytest
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.stats
from numpy import zeros
from profuse.dialect.importers.numpy.capture import method_calls
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import check, line_of

A = np.arange(4.0)
GENERATOR = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)


def _filled(x):
    """Only where `np.empty` records can a traced value be written to what it makes."""
    out = np.empty(4)
    out[:] = x
    return out


# --- C code -----------------------------------------------------------------------------------

KNOTS = np.arange(5.0)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + scipy.ndimage.label(np.ones(4))[0],
        lambda x: x + scipy.interpolate.CubicSpline(KNOTS, KNOTS**2)(np.arange(4.0) / 2),
        lambda x: x + scipy.signal.lfilter([1.0], [1.0, 0.5], np.linspace(0, 1, 4)),
        lambda x: x + np.linalg.inv(np.eye(4) * 2)[0],
        lambda x: x + np.vectorize(lambda v: v * 2)(KNOTS[:4]),
    ],
)
def test_libraries_get_arrays(fn):
    """What NumPy and C code make for themselves while a trace runs are arrays."""
    check(fn, A)


def test_an_array_that_a_library_has_is_written_no_more():
    def f(x):
        ones = np.ones(4)
        parts = scipy.ndimage.label(ones)[0]
        ones[0] = 7.0
        return x + parts + ones

    with pytest.raises(pf.TraceError, match="other code was given"):
        trace(f, (A,))


class _Draws:
    def __init__(self):
        self.generator = np.random.default_rng(1)

    def noise(self, x):
        return x + self.generator.normal(size=4)


DRAWS = _Draws()
HIDDEN = {"random": random, "norm": scipy.stats.norm, "np.random": np.random}


@pytest.mark.parametrize(
    "fn, name",
    [
        (lambda x: x + GENERATOR.standard_normal(4), "Generator.standard_normal"),
        (lambda x: x + LEGACY.rand(4), "RandomState.rand"),
        (lambda x: x + np.random.rand(4), "np.random.rand"),
        (lambda x: x + random.random(), "random.random"),
        (lambda x: x + scipy.stats.norm.rvs(size=4), "norm.rvs"),
        (lambda x: x + scipy.stats.norm.rvs(size=4, random_state=LEGACY), "norm.rvs"),
        (DRAWS.noise, "Generator.normal"),
        (lambda x: DRAWS.noise(x), "Generator.normal"),
        (lambda x: x + np.fromiter(map(lambda _: random.gauss(0, 1), range(4)), float), "gauss"),  # noqa: C417
        (lambda x: x + uuid.uuid4().int % 7, "uuid.uuid4"),
        (lambda x: x + os.urandom(1)[0], "os.urandom"),
        (lambda x: x + secrets.randbelow(5), "secrets.randbelow"),
        (lambda x: x + time.time(), "time.time"),
        (lambda x: x + time.perf_counter(), "time.perf_counter"),
        (lambda x: x + datetime.datetime.now().second, "datetime.now"),
    ],
)
def test_draws_and_clocks_are_refused_before_anything_runs(fn, name):
    states = _states()
    with pytest.raises(pf.TraceError, match=name) as info:
        trace(fn, (A,))
    assert "pass" in info.value.hint and info.value.loc.file == __file__
    assert _states() == states


def _states():
    made = [g.bit_generator.state for g in (GENERATOR, DRAWS.generator)]
    legacy = [LEGACY.get_state()[1:], np.random.get_state()[1:]]
    return repr(made), [(k.tobytes(), *rest) for k, *rest in legacy], random.getstate()


def test_hidden_draws_are_seen_by_the_state_and_undone():
    """Code that is not the user's draws: the generators tell."""
    states = _states()
    for fn, name in (
        (lambda x: x + operator.methodcaller("permutation", 4)(GENERATOR), "generator GENERATOR"),
        (lambda x: x + operator.methodcaller("rvs", size=4)(HIDDEN["norm"]), "np.random"),
        (lambda x: x + operator.methodcaller("gauss", 0, 1)(HIDDEN["random"]), "of random"),
    ):
        with pytest.raises(pf.TraceError, match=f"{name} is drawn from") as info:
            trace(fn, (A,))
        assert "pass them as an argument" in info.value.hint
        assert _states() == states


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_normal_value_that_costs_no_draw_is_seen_to_be_taken(is_kept):
    """NumPy's old generator makes two at once, and keeps one of them beside its state."""
    np.random.seed(3)
    if is_kept:
        np.random.standard_normal()
    states = _states()
    with pytest.raises(pf.TraceError, match=r"np\.random is drawn from"):
        trace(lambda x: x + operator.methodcaller("standard_normal")(HIDDEN["np.random"]), (A,))
    assert _states() == states


def test_generators_are_no_arguments():
    for generator in (GENERATOR, LEGACY, random.Random(1)):
        with pytest.raises(pf.ArgumentError, match="argument 'g': random generators") as info:
            trace(lambda x, g: x, (A, generator))
        assert "draw them outside" in info.value.hint


# --- who gets substitutes ---------------------------------------------------------------------


class _Base:
    def go(self, x):
        return _filled(x) * self.scale


class _Layer(_Base):
    kinds = ("a", "b")

    def __init__(self, scale):
        self.scale = scale
        self.__secret = 1.0

    def go(self, x):
        made = np.zeros(x.shape)
        made[0] = self.__secret
        return super().go(x) + made

    @staticmethod
    def still(x):
        return _filled(x)

    @classmethod
    def made(cls, x):
        return cls(2.0)(x) + cls.still(x)

    @property
    def doubled(self):
        return np.full(4, self.scale * 2)

    def __call__(self, x):
        return self.go(x)


class _Net:
    def __init__(self):
        self.layers = [_Layer(1.0), _Layer(2.0)]
        self.table = {"last": _Layer(3.0)}

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.table["last"].go(x) + self.layers[0].doubled


@dataclasses.dataclass
class _Scale:
    w: np.ndarray
    k: float

    def apply(self, x):
        return _filled(x) * self.w * self.k


def _wrapped(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        out = np.empty(4)
        out[...] = fn(*args, **kwargs)
        return out

    return call


@_wrapped
def _decorated(x, *, k=KNOTS[:4]):
    return _filled(x) + k


def _power(x, n):
    return x if n == 0 else _power(_filled(x), n - 1) * x


def _stream(x):
    for k in range(3):
        out = np.zeros(4)
        out[k] = x[k]
        yield out


@functools.lru_cache
def _window(n):
    return np.hanning(n)


@functools.singledispatch
def _kind(x):
    return 0.0


@_kind.register
def _(x: np.ndarray):
    return x * 2


NET, LAYER, SCALE = _Net(), _Layer(2.0), _Scale(A, 2.0)
TABLE = {"fill": _filled}


def _chain(n):
    if n == 0:
        return lambda x: x
    inner = _chain(n - 1)
    return lambda x: _filled(inner(x)) + 1


def _imports(x):
    import numpy
    import numpy as xp
    from numpy import linalg
    from numpy import zeros as z

    assert np is numpy and xp is np and z is np.zeros and zeros is z
    assert isinstance(x, np.ndarray) and x.astype(np.float32).dtype.type is np.float32
    made = z(4)
    made[:] = x
    return made * linalg.norm(xp.ones(4))


def _local_class(x):
    class Holder:
        scale = np.float64(2)

        def __init__(self, v):
            self.v = np.zeros(4)
            self.v[:] = v

        def out(self):
            return self.v * self.scale

    return Holder(x).out()


def _defaults(x, make=np.zeros, lib=np, start=(1.0, 2.0)):
    out = make(4)
    out[0] = x[0]
    return out + lib.ones(4) * start[1]


@pytest.mark.parametrize(
    "fn",
    [
        _filled,
        _decorated,
        _imports,
        _local_class,
        _defaults,
        NET,
        LAYER.go,
        _Layer.made,
        lambda x: NET(x) + LAYER.go(x) + _Layer.made(x) + _Layer(3.0)(x),
        lambda x: SCALE.apply(x) + TABLE["fill"](x) + _power(x, 3) + _chain(4)(x),
        lambda x: sum(_stream(x)) + sum([_filled(v) for v in (x, x)]),
        lambda x: sum(map(LAYER.go, [x, x])) + functools.reduce(lambda a, b: _filled(a) + b, [x, x]),
        lambda x: x * _window(4) + _kind(x) + functools.partial(_power, n=2)(x),
        lambda x: pf.fori_loop(0, 3, lambda i, v: _filled(v) + 1.0, x),
        lambda x: pf.cond(x.sum() > 0, LAYER.go, _Layer.still, x),
        lambda x: eval("x + np.zeros(4)") + globals()["A"] + locals()["x"],
        functools.partial(lambda k, x: _filled(x) * k, 3.0),
    ],
    ids=range(17),
)
def test_whatever_users_call_sees_the_substitutes(fn):
    """Methods, closures, decorators, generators, recursion, classes: `np.empty` records there."""
    check(fn, A)


def test_caches_of_users_keep_no_traced_numbers():
    _window.cache_clear()
    check(lambda x: x * _window(x.shape[0]), A, guards=1)
    _window.cache_clear()
    trace(lambda x: x * _window(x.shape[0]), (A,))
    np.testing.assert_array_equal(_window(4), np.hanning(4))
    assert _window.cache_info()[:2] == (1, 1)
    with pytest.raises(pf.TraceError, match="_window, which keeps its results"):
        trace(lambda x: _window(x), (A,))


def test_functions_that_are_read_are_the_same_ones():
    """One object per function, with the attributes of the original."""
    _filled.note = "mine"

    def f(x):
        assert _filled is TABLE["fill"] or _filled.note == "mine"
        assert {_filled: 1}[_filled] == 1 and _filled.__name__ == "_filled"
        return _filled(x)

    check(f, A)
    del _filled.note


def test_places_are_those_of_the_source():
    """Code that is compiled anew keeps file, lines and columns, and its traceback."""

    class Thing:
        def go(self, x):
            y = x * 2
            return self.fail(y)  # call

        def fail(self, x):
            return x.reshape(3, 3)  # fails

    thing = Thing()
    with pytest.raises(pf.ShapeError) as info:
        trace(thing.go, (A,))
    assert info.value.loc.line == line_of(Thing.fail, "# fails")
    lines = [entry.lineno + 1 for entry in info.traceback if str(entry.path) == __file__]
    assert line_of(Thing.go, "# call") in lines and line_of(Thing.fail, "# fails") in lines


def test_code_without_its_source_runs_as_it_is():
    """Other source than that of the code is not used."""
    space = {"np": np, "thing": LAYER}
    exec(compile("def f(x):\n    return thing.go(x * 1)\n", "<nowhere>", "exec"), space)
    f = space["f"]
    assert method_calls.with_callees(f) is f.__code__
    stale = f.__code__.replace(co_filename=__file__, co_firstlineno=line_of(_filled, "def"))
    assert method_calls.with_callees(type(f)(stale, space)) is stale
    again = method_calls.with_callees(_Net.__call__)
    assert again is not _Net.__call__.__code__ and method_calls.CALLEE in again.co_names
    assert again is method_calls.with_callees(_Net.__call__)
    assert method_calls.with_callees(_filled) is _filled.__code__  # nothing to see in it


@pytest.mark.usefixtures("queues_are_pure")
def test_nothing_is_patched_for_anybody():
    """Threads that compute while another traces, and libraries that import NumPy, see NumPy."""
    names = [n for n in dir(np) if callable(getattr(np, n, None))]
    before = [getattr(np, name) for name in names]
    inside, leave = SimpleQueue(), SimpleQueue()

    def f(x):
        inside.put(None)
        leave.get(timeout=10)
        return x + np.zeros(4)

    thread = threading.Thread(target=trace, args=(f, (A,)))
    thread.start()
    inside.get(timeout=10)
    try:
        assert all(getattr(np, n) is b for n, b in zip(names, before, strict=True))
        assert type(np.zeros(3)) is np.ndarray and random.random() < 1
    finally:
        leave.put(None)
        thread.join()
    assert f.__globals__["np"] is np and sys.modules["numpy"] is np


# --- traced values elsewhere ------------------------------------------------------------------


@pytest.mark.usefixtures("queues_are_pure")
def test_traced_values_outside_of_their_trace_say_so():
    queue = SimpleQueue()  # of C: what is put into it is not undone
    f = pf.jit(lambda x: queue.put(x) or x * 2)
    f(A)
    x = queue.get()
    for use in (
        lambda: x + 1,
        lambda: np.asarray(x),
        lambda: bool(x),
        lambda: list(x),
        lambda: len(x),
        lambda: int(x.shape[0]),
        lambda: {x.shape[0]: 1},
        lambda: f"{x.shape[0]}",
        lambda: x[0],
        lambda: np.sum(x),
        lambda: x.reshape(2, 2),
        lambda: f(x),
        lambda: f(A + x),
        lambda: x.T,
    ):
        with pytest.raises(pf.TraceError, match="outside of the trace that made it"):
            use()
    given, told = SimpleQueue(), SimpleQueue()

    def use():
        try:
            told.put(given.get(timeout=10) + 1)
        except pf.TraceError as error:
            told.put(str(error))

    thread = threading.Thread(target=use)
    thread.start()

    def elsewhere(y):
        given.put(y)
        queue.put(told.get(timeout=10))
        return y

    trace(elsewhere, (A,))
    thread.join()
    assert "outside of the trace that made it" in queue.get()


class _Series:
    def __init__(self, v):
        self.v = v

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return _Series(getattr(ufunc, method)(*[getattr(x, "v", x) for x in inputs]))


def test_results_keep_no_traced_values_in_objects():
    series = _Series(A)
    for fn in (lambda x: np.add(series, x), lambda x: {"a": _Series(x)}, lambda x: lambda: x):
        with pytest.raises(pf.TraceError, match="traced values in an object of type"):
            trace(fn, (A,))
    for fn in (lambda x: x + series, lambda x: series - x):
        with pytest.raises(pf.TraceError, match="_Series is no operand"):
            trace(fn, (A,))


# --- subclasses of ndarray --------------------------------------------------------------------


class _Plain(np.ndarray):
    """Overrides nothing."""


class _Noted(np.ndarray):
    def __array_finalize__(self, other):
        self.note = getattr(other, "note", None)


class _Units(np.ndarray):
    def __array_ufunc__(self, *args, **kwargs):
        return "units"


class _Functions(np.ndarray):
    def __array_function__(self, *args, **kwargs):
        return "functions"


class _Product(np.ndarray):
    def __mul__(self, other):
        return self @ other


def test_subclasses_with_a_meaning_of_their_own_are_refused(tmp_path):
    """As arguments and captured; those that override nothing are plain arrays, and so memmaps."""
    f = pf.jit(lambda x: x * 2)
    np.testing.assert_array_equal(f(A.view(_Plain)), A * 2)
    for kind in (_Noted, _Units, _Functions, _Product, np.ma.MaskedArray):
        odd = A.view(kind)
        with pytest.raises(pf.ArgumentError, match=f"'x': .*{kind.__name__}"):
            f(odd)
        with pytest.raises(pf.ArgumentError, match=kind.__name__) as info:
            pf.jit(lambda x, odd=odd: x + odd)(A)
        assert "np.asarray" in info.value.hint
    mapped = np.memmap(tmp_path / "a", float, "w+", shape=4)
    mapped[:] = A
    np.testing.assert_array_equal(f(mapped), A * 2)
    np.testing.assert_array_equal(pf.jit(lambda x: x + mapped)(A), A * 2)
    with pytest.raises(pf.TraceError, match="the array mapped is changed"):
        pf.jit(lambda x: [mapped.fill(3), x][1])(A)
    assert f.state().counters["traces"] == 1


# --- floating-point errors --------------------------------------------------------------------


def test_errstate_that_makes_effects_of_errors_is_refused():
    def quotient(x, how):
        with np.errstate(divide=how):
            return 1 / x

    check(lambda x: quotient(x, "ignore"), A)
    for how in ("raise", "print"):
        with pytest.raises(pf.TraceError, match=f"NumPy is asked to {how}"):
            trace(lambda x, how=how: quotient(x, how), (A,))
    with pytest.raises(pf.TraceError, match=r"np\.seterr is called while tracing"):
        trace(lambda x: [np.seterr(divide="raise"), x], (A,))
    f = pf.jit(lambda x: quotient(x, "raise"), unsupported="python")
    for x in (np.ones(2), np.zeros(2), np.ones(2)):
        if x.all():
            np.testing.assert_array_equal(f(x), x)
        else:
            with pytest.raises(FloatingPointError):
                f(x)
