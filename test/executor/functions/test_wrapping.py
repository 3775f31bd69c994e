"""Functions made of others that have attributes, as jitted ones have: each has its own state."""

import abc
import asyncio
import functools
import inspect
import weakref

import numpy as np
import profuse as pf
import pytest

X = np.arange(3.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def squares(x):
    return (x * x).sum()


@pytest.mark.parametrize("called_first", [True, False])
def test_gradients_of_a_jitted_function(called_first):
    f = pf.jit(squares)
    for _ in range(3 * called_first):
        assert f(X) == 5
    made = (
        (pf.grad(f), lambda g: g),
        (pf.jit(pf.grad(f)), lambda g: g),
        (pf.value_and_grad(f), lambda pair: pair[1]),
        (lambda x: pf.vjp(f, x)[1](1.0)[0], lambda g: g),
        (lambda x: pf.grad(lambda y: pf.checkpoint(f)(y))(x), lambda g: g),
    )
    for function, gradient in made:
        for _ in range(4):
            np.testing.assert_array_equal(gradient(function(X)), 2 * X)
            assert f(X) == 5
    assert pf.jvp(f, (X,), (X,)) == (5, 10)


def test_a_gradient_of_a_jitted_function_says_why_it_is_refused():
    f = pf.jit(lambda x: float(str(x[0])) * x[1])
    f(X)
    with pytest.raises(pf.TraceError, match="the text of an array is needed here"):
        pf.grad(f)(X)


def test_a_jitted_function_is_jitted_again():
    f = pf.jit(squares)
    g = pf.jit(f, unsupported="raise", name="again")
    for _ in range(3):
        assert f(X) == g(X) == 5
    assert f.state().counters["calls"] == g.state().counters["calls"] == 3
    assert "again" in g.explain()


class Scaled:
    """Its attributes have the names that a jitted function uses for its own."""

    def __init__(self, factor):
        self._flat, self._options, self._fn, self._lock, self._name = {}, None, None, None, factor

    def __call__(self, x):
        return x * self._name


def test_attributes_of_callables_are_theirs():
    f = pf.jit(Scaled(3))
    for _ in range(3):
        np.testing.assert_array_equal(f(X), 3 * X)


def test_attributes_of_functions():
    def f(x):
        return x + 1

    f.note, f.state, f._flat, f._source, f._route = "mine", {}, None, None, "/f"
    g = pf.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(g(X), X + 1)
    assert (g.note, g._route) == ("mine", "/f") and g.state().counters["calls"] == 3
    assert g.__wrapped__ is f and pf.jit(functools.wraps(squares)(f)).__wrapped__ is f


def test_abstract_methods_are_abstract():
    class Shape(abc.ABC):
        @pf.jit
        @abc.abstractmethod
        def area(self):
            return X

    class Square(Shape):
        @pf.jit
        def area(self):
            return super().area() * 2

    with pytest.raises(TypeError, match="area"):
        Shape()
    np.testing.assert_array_equal(Square().area(), X * 2)


def test_inspect_tells_generators_and_coroutines():
    @pf.jit
    def rows(x):
        yield from x

    @pf.jit
    async def later(x, by=2):
        return x * by

    class Server:
        method = later

    assert inspect.isgeneratorfunction(rows) and not inspect.iscoroutinefunction(rows)
    assert inspect.iscoroutinefunction(later) and asyncio.iscoroutinefunction(Server().method)
    assert not inspect.iscoroutinefunction(pf.jit(squares))
    with pf.knobs.override(unsupported="python"):
        for _ in range(3):
            assert list(rows(X)) == list(X)
            np.testing.assert_array_equal(asyncio.run(later(X)), X * 2)


def test_a_wrapper_of_a_jitted_function_is_jitted():
    f = pf.jit(squares)
    f(X)

    @pf.jit
    @functools.wraps(f)
    def doubled(x):
        return 2 * f(x)

    for _ in range(3):
        assert doubled(X) == 10 and f(X) == 5


def test_a_wrapper_takes_what_it_takes():
    """And not what it wraps, or says that it takes."""

    def scaled(x, limit, tries):
        return x * tries

    @functools.wraps(scaled)
    def tried(x, limit):
        return scaled(x, limit, 3)

    def told(*args):
        return args[0] * len(args)

    told.__signature__ = inspect.signature(scaled)
    x = np.ones(3)
    for function, args in ((tried, (x, 2.0)), (told, (x, 1)), (functools.partial(tried, x), (2.0,)), (told, (x,))):
        jitted = pf.jit(function)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(*args), function(*args))
    with pytest.raises(TypeError, match="was called wrongly"):
        pf.jit(tried)(x)
    with pf.knobs.override(unsupported="python"), pytest.raises(TypeError):
        pf.jit(told)(x, y=3)


class Subject:
    """Its methods are listed by others, who look for them by what they are equal to."""

    def __init__(self):
        self.gain = 2.0

    @pf.jit
    def scaled(self, x):
        return x * self.gain

    @pf.host
    def solved(self, x):
        return x - self.gain

    @pf.jit
    def listed(self, listeners, x):
        return self.scaled in listeners, x + 1


@pytest.mark.parametrize("name", ["scaled", "solved"])
def test_methods_are_equal_as_those_of_plain_functions_are(name):
    one, other = Subject(), Subject()
    method = getattr(one, name)
    assert method == getattr(one, name) and method != getattr(other, name)
    assert hash(method) == hash(getattr(one, name))
    assert inspect.ismethod(method) and method.__self__ is one and method.__func__ is vars(Subject)[name]
    assert weakref.WeakMethod(method)() == method
    listeners = [method]
    listeners.remove(getattr(one, name))
    assert not listeners


def test_methods_are_found_among_others_in_a_trace():
    with pf.knobs.override(unsupported="python"):
        one, other = Subject(), Subject()
        for listeners in ([one.scaled], [other.scaled], [], [other.scaled, one.scaled]):
            found, _ = one.listed(listeners, X)
            assert found is (one.scaled in listeners)
    assert one.scaled.state() is not None


@pf.jit
def counted(x):
    counted.calls += 1
    counted.seen.append(x.sum())
    return x * counted.calls


@pf.jit
def counted_from_nothing(x):
    counted_from_nothing.calls = getattr(counted_from_nothing, "calls", 0) + 1
    return x * counted_from_nothing.calls


@pf.jit
def scaled_by_another(x):
    return x * counted.scale + getattr(counted, "shift", 0)


def test_attributes_that_a_jitted_function_keeps_its_state_in():
    counted.calls, counted.seen = 0, []
    with pf.knobs.override(unsupported="python"):
        for k in (1, 2, 3, 4):
            np.testing.assert_array_equal(counted(X), X * k)
            np.testing.assert_array_equal(counted_from_nothing(X), X * k)
            assert counted.calls == counted_from_nothing.calls == k and counted.seen == [X.sum()] * k


def test_attributes_of_other_jitted_functions_are_compared():
    with pf.knobs.override(unsupported="python"):
        for k in (1.0, 1.0, 2.0, np.ones(3)):
            counted.scale = k
            np.testing.assert_array_equal(scaled_by_another(X), X * k)
        counted.shift = 5
        np.testing.assert_array_equal(scaled_by_another(X), X * k + 5)
        counted.scale[1] = 7
        np.testing.assert_array_equal(scaled_by_another(X), X * counted.scale + 5)
        del counted.shift
        np.testing.assert_array_equal(scaled_by_another(X), X * counted.scale)
    assert scaled_by_another.state().counters["python_calls"] == 0


@pf.host
def solved(x):
    return x - 1


checkpointed = pf.checkpoint(squares)


@pf.custom_vjp
class Clipped:
    @staticmethod
    def forward(x):
        return x * 1, ()

    @staticmethod
    def backward(saved, gradient):
        return gradient


@pytest.mark.parametrize("function", [solved, checkpointed, Clipped], ids=["host", "checkpoint", "custom_vjp"])
def test_attributes_of_what_is_made_of_functions(function):
    function.scale = function.calls = 0

    def scaled(x):
        return function(x) * function.scale + getattr(function, "shift", 0)

    def counted(x):
        function.calls += 1
        return function(x) * function.calls

    with pf.knobs.override(unsupported="python"):
        f, g = pf.jit(scaled), pf.jit(counted)
        for k in (1.0, 1.0, 2.0):
            function.scale = k
            np.testing.assert_array_equal(f(X), scaled(X))
        function.shift = 5
        np.testing.assert_array_equal(f(X), scaled(X))
        for k in (1, 2, 3):
            np.testing.assert_array_equal(g(X), function(X) * k)
    assert f.state().counters["python_calls"] == 0
