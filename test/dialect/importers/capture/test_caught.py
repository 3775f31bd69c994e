"""Errors that the traced function catches: their outcome holds for the sizes of the trace alone."""

import contextlib
import operator
import pickle

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace

R = np.arange


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        return kind is not None


class _Loud(_Quiet):
    def __exit__(self, *raised):
        return None


@contextlib.contextmanager
def _quiet():
    try:  # noqa: SIM105
        yield
    except IndexError:
        pass


def _caught(attempt, *errors):
    """A function that tries ``attempt``, and computes something else if that raises."""

    def f(*args):
        try:
            return attempt(*args)
        except errors:
            return args[0].sum() * 0.5 - 1

    return f


def _suppressed(x):
    with contextlib.suppress(ValueError, IndexError):
        return x[10] + 0
    return x[0] - 1


def _suppressed_local(x):
    from contextlib import suppress as quiet

    with quiet(Exception):
        return x[10] + 0
    return x[0] - 1


def _context(x):
    with _Quiet():
        return x[10] + 0
    return x[0] - 1


def _context_variable(x):
    manager = _Quiet()
    with manager:
        return x[10] + 0
    return x[0] - 1


def _generator_context(x):
    with _quiet():
        return x[10] + 0
    return x[0] - 1


def _bare(x):
    try:
        return x[10] + 0
    except:  # noqa: E722
        return x[0] - 1


def _left_by_finally(x):
    try:
        y = x[10] + 0
    finally:
        return x[0] if "y" not in locals() else y  # noqa: B012


def _attempts(x):
    for k in (30, 10, 2):
        try:
            return x[k] + 0
        except IndexError:
            continue
    return x[0]


def _in_loop(x):
    def body(i, v):
        try:
            return v + x[10]
        except IndexError:
            return v - 1

    return pf.fori_loop(0, 3, body, x[0])


def _assigned(x):
    y = np.zeros(3)
    try:
        y[:] = x
    except ValueError:
        return x.sum() - 1
    return y.sum()


INNER = pf.jit(lambda x: x[10] + 0)
ONE, TWO = (R(5.0),), (R(20.0),)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "fn, small, large",
    [
        (_caught(lambda x: x[10] + 0, IndexError), ONE, TWO),
        (_caught(lambda x: INNER(x), IndexError), ONE, TWO),
        (_suppressed, ONE, TWO),
        (_suppressed_local, ONE, TWO),
        (_context, ONE, TWO),
        (_context_variable, ONE, TWO),
        (_generator_context, ONE, TWO),
        (_bare, ONE, TWO),
        (_left_by_finally, ONE, TWO),
        (_attempts, ONE, TWO),
        (_in_loop, ONE, TWO),
        (_assigned, (R(3.0),), (R(4.0),)),
        (
            _caught(lambda x, y: (x @ y).sum(), ValueError),
            (np.ones((2, 3)), np.ones((3, 2))),
            (np.ones((2, 3)), np.ones((4, 2))),
        ),
        (_caught(lambda x: x.reshape(2, -1)[0].sum(), ValueError), (R(5.0),), (R(6.0),)),
        (_caught(lambda x, y: (x + y).sum(), ValueError), (R(3.0), R(3.0)), (R(3.0), R(4.0))),
        (_caught(lambda x: np.split(x, 3)[0].sum(), ValueError), (R(6.0),), (R(7.0),)),
        (
            _caught(lambda x, y: np.concatenate([x, y], axis=1).sum(), ValueError),
            (np.ones((2, 3)), np.ones((2, 3))),
            (np.ones((2, 3)), np.ones((4, 2))),
        ),
        (_caught(lambda x: x.squeeze(0).sum(), ValueError), (np.ones((1, 3)),), (np.ones((2, 3)),)),
        (_caught(lambda x: x.max(), ValueError), (np.ones(0),), (np.ones(3),)),
        (_caught(lambda x, y: np.einsum("i,i->", x, y), Exception), (R(3.0), R(3.0)), (R(4.0), R(3.0))),
        (_caught(lambda x, i: x[i] * 1.0, IndexError), (R(4.0), 2), (R(4.0), 9)),
        (_caught(lambda x, n: x.sum() * (7 // n), ZeroDivisionError), (R(4.0), 0), (R(4.0), 2)),
        (_caught(lambda x, k: (2**k) * x.sum(), Exception), (R(4.0), 2), (R(4.0), -3)),
        (_caught(lambda x, k: x * k, OverflowError), (np.ones(4, "u1"), 7), (np.ones(4, "u1"), -1)),
        (_caught(lambda x, k: np.full_like(x, k) + x, Exception), (R(4).astype("i2"), 7), (R(4).astype("i2"), 70000)),
    ],
)
def test_what_is_caught_holds_for_these_sizes(fn, small, large):
    """In both orders: an error that is caught, and one that might have been."""
    for order in ((small, large), (large, small)):
        f = pf.jit(fn, background=False)
        for args in (*order, *order):
            np.testing.assert_array_equal(f(*args), fn(*args))
        assert f.state().counters["traces"] == 2


def _assigned(x, place, number):
    y = x * 1
    y[place] = number
    return y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [1, -1, 300])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x, n: x - n,
        lambda x, n: np.maximum(n, x),
        lambda x, n: np.full_like(x, n),
        lambda x, n: x > n,
        lambda x, n: np.where(x > 1, x, n),
        lambda x, n: _assigned(x, 1, n),
        lambda x, n: _assigned(x, slice(1, 3), n),
        lambda x, n: _assigned(x, x > 2, n),
        lambda x, n: operator.iadd(x * 1, n),
        lambda x, n: operator.iadd((x * 1)[::2], n),
    ],
)
def test_numbers_that_a_dtype_cannot_hold_are_caught(fn, number):
    """They are literals: whether they fit is the same in all calls."""
    caught = _caught(lambda x: fn(x, number), OverflowError)
    f = pf.jit(caught, background=False)
    for n in (4, 4, 4, 6):
        x = np.arange(n, dtype=np.uint8)
        np.testing.assert_array_equal(f(x), caught(x))
    assert f.state().counters["traces"] <= 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "fn",
    [
        _caught(lambda x: (x * 2 + 1).sum(), ValueError),  # no size decides
        _caught(lambda x: {"a": x[:3]}["b"], KeyError),
        _caught(lambda x: x.reshape(2, -1).sum(), KeyError, AttributeError),  # another error
        _caught(lambda x: x.astype("nonsense"), TypeError),  # for any size
        lambda x: np.pad(x, 1)[1:-1] + np.cross(x[:3], x[1:4]).sum(),
    ],
)
def test_other_errors_may_be_caught(fn):
    f = pf.jit(fn, background=False)
    for n in (4, 8, 4, 20):
        np.testing.assert_array_equal(f(R(float(n))), fn(R(float(n))))
    assert f.state().counters["traces"] == 1


def test_errors_in_graphs_that_are_inlined_are_caught_as_well():
    """Without profiling an inner function is traced by itself, and may fail there."""
    before = pf.set_profiling_mode(False)
    try:
        for order in ((R(5.0), R(20.0)), (R(20.0), R(5.0))):
            inner = pf.jit(lambda x: x[10] + 0)
            f = pf.jit(_caught(lambda x, inner=inner: inner(x), IndexError), background=False)
            for x in (*order, *order):
                want = x[10] if len(x) > 10 else x.sum() * 0.5 - 1
                np.testing.assert_array_equal(f(x), want)
            assert f.state().counters["traces"] == 2
    finally:
        pf.set_profiling_mode(before)


def test_contexts_that_raise_on_are_free():
    def f(x):
        with np.errstate(all="ignore"), _Loud(), contextlib.suppress(KeyError):
            y = x.reshape(2, -1)
        try:
            return y[1] + y[0]
        finally:
            del y

    g = pf.jit(f, background=False)
    for n in (4, 8, 4, 20):
        np.testing.assert_array_equal(g(R(float(n))), f(R(float(n))))
    assert g.state().counters["traces"] == 1


def _error_after_a_refusal(x):
    try:
        y = np.array(x.tolist())
    except TypeError:
        y = x.sum()
    return y[0]


@pytest.mark.parametrize(
    "fn, args",
    [
        (_caught(lambda x, i: x[i].sum(), IndexError), (R(4.0), np.array([1, 9]))),
        (_caught(lambda x: np.take(x, [0, 5]).sum(), IndexError), (R(4.0),)),
        (_caught(lambda x, k: x[: int(x.sum())] * k, Exception), (R(4.0), 2)),
        (_caught(lambda x, k: (x**k).sum(), ValueError), (R(4), R(4) - 2)),
        (_caught(lambda x, k: x.sum() * k**k, ValueError), (R(4.0), np.int8(-3))),
        (_caught(lambda x: np.linalg.inv(x).sum(), Exception), (np.eye(2),)),  # caught TraceErrors
        (_caught(lambda x: x.tolist(), TypeError), (R(4.0),)),
        (_error_after_a_refusal, (R(4.0),)),
        (_caught(lambda x: x * 2 if x.any() else x, TypeError), (R(4.0),)),
    ],
)
def test_what_contents_decide_is_refused_even_if_caught(fn, args):
    with pytest.raises(pf.TraceError) as info:
        trace(fn, args)
    assert info.value.loc.file == __file__ and info.value.hint


def test_a_number_that_ml_dtypes_does_not_take_is_refused_before_it_can_be_caught():
    """Its TypeError, which NumPy does not raise, would choose the other branch for good."""
    kept = np.zeros(0, ml_dtypes.bfloat16)

    def f(x):
        try:
            kept.fill(x.shape[0])
            return x + 1
        except TypeError:
            return x * 2

    with pytest.raises(TraceError, match="bfloat16 that the function has not made"):
        pf.jit(f)(np.ones(3))


def test_a_float_that_no_integer_can_hold_is_caught():
    """One number is converted as NumPy does it: NaN and infinity raise."""

    def f(x):
        found = np.zeros(3, np.int64)
        try:
            found.fill(np.log(x.max()))
            factor = 1
        except (ValueError, OverflowError):
            factor = 2
        return found, x * factor

    with pf.knobs.override(unsupported="python"), np.errstate(all="ignore"):
        jitted = pf.jit(f)
        for number in (1.0, -1.0, np.nan, np.inf, 0.0, 2.0):
            x = np.full(2, number)
            for ours, theirs in zip(jitted(x), f(x), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def _grown(x):
    x += np.ones((2, 4))


def _stored_wider(x):
    x[1:3] = np.ones(3)


FAILING = {
    "index": lambda x: x[9],
    "shapes": lambda x: x + np.ones(3),
    "joined": lambda x: np.concatenate([x, x[None]]),
    "reshaped": lambda x: x.reshape(3, 3),
    "axis": lambda x: x.sum(axis=4),
    "product": lambda x: x @ np.ones((3, 2)),
    "in place": _grown,
    "assigned": _stored_wider,
    "empty": lambda x: x[:0].max(),
    "dtype": lambda x: np.bitwise_and(x, x),
    "number": lambda x: 1 // (len(x) - 4),
    "truth": lambda x: 1 if x else 2,
    "step": lambda x: x[::0],
    "length of a scalar": lambda x: len(x.sum()),
    "items of a scalar": lambda x: list(x.sum()),
    "length of an array": lambda x: len(np.array(1.0)) + x,
}


FAILING |= {
    "axis in a tuple": lambda x: x.sum(axis=(0, 7)),
    "into an array of integers": lambda x: np.add(x, x, out=np.zeros(4, np.int64)),
    "grown": lambda x: operator.iadd(x, np.ones(3)),
    "power of a matrix": lambda x: np.linalg.matrix_power(x, 2),
    "shape": lambda x: np.zeros(-len(x)) + x,
    "sections": lambda x: np.split(x, 3),
    "keyword": lambda x: np.sum(x, axes=1),
}


class _Looks(list):
    """A context manager that notes of what class an error is."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        self.append(kind.__name__)
        return True


class _LooksInside(list):
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.extend(map(lambda k: str(raised[k]), (0, 1)))  # noqa: C417 - a cell
        return True


@contextlib.contextmanager
def _telling(texts):
    try:
        yield
    except (ValueError, IndexError) as error:
        texts.append(repr(error))


@pytest.mark.parametrize("name", FAILING)
def test_a_caught_error_is_numpys(name):
    """Its class, its text and its attributes, as far as anybody looks."""

    def told(x):
        try:
            return FAILING[name](x)
        except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
            return type(error), error.args, vars(error), str(error), x * 2

    with pf.knobs.override(unsupported="python"):
        f = pf.jit(told, profiled_runs=1000)
        for k in range(3):
            (*facts, doubled), (*wanted, plain) = f(R(4.0) + k), told(R(4.0) + k)
            assert facts == wanted
            np.testing.assert_array_equal(doubled, plain)


@pytest.mark.parametrize("name", ["index", "shapes", "axis"])
@pytest.mark.parametrize("manager", [_Looks, _LooksInside, "generator"])
def test_context_managers_may_look_at_errors(name, manager):
    def told(x):
        texts = []
        if manager == "generator":
            with _telling(texts):
                return FAILING[name](x)
        else:
            with manager() as texts:
                return FAILING[name](x)
        return list(texts), x * 2

    with pf.knobs.override(unsupported="python"):
        f = pf.jit(told)
        for k in range(3):
            (texts, doubled), (wanted, plain) = f(R(4.0) + k), told(R(4.0) + k)
            assert texts == wanted
            np.testing.assert_array_equal(doubled, plain)


@pytest.mark.parametrize("attempt", [lambda x, k: x.sum(axis=k), lambda x, k: np.tensordot(x, x, ((k,), (0,)))])
def test_clauses_for_the_errors_of_numpy_catch_them(attempt):
    def told(x, axis):
        try:
            return attempt(x, axis)
        except np.exceptions.AxisError:
            return x * 2
        except (ValueError, IndexError):
            return x * 3

    f = pf.jit(told)
    for axis in (7, 7, 0):
        np.testing.assert_array_equal(f(R(4.0), axis), told(R(4.0), axis))
    assert f.state().counters["python_calls"] == 0


def test_errors_that_leave_the_function_tell_the_line():
    def raised(x):
        try:
            return x[9]
        except IndexError:
            return x + np.ones(3)

    for _ in range(2):
        with pytest.raises(ValueError, match=r"test_caught.py:\d+: operands could not be broadcast together"):
            pf.jit(raised)(R(4.0))


def test_axes_that_are_out_of_range_are_told_with_the_line():
    with pytest.raises(np.exceptions.AxisError, match=r"test_caught.py:\d+: axis 3 is out of bounds") as info:
        pf.jit(lambda x: x.sum(axis=3))(R(4.0))
    assert isinstance(pickle.loads(pickle.dumps(info.value)), np.exceptions.AxisError)
