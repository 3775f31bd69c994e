"""Where NumPy is asked to tell of floating-point errors, Python runs the calls, and NumPy tells."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import profuse as pf
import pytest

ONES, ZEROS = np.ones(3), np.array([1.0, 0.0, 4.0])


def inverse(x):
    return 2 / x + 1


def settled(function, *args, **options):
    """A jitted function whose calls with these arguments run in emitted code."""
    jitted = pf.jit(function, unsupported="python", **options)
    for _ in range(4):
        jitted(*args)
        jitted.wait()
    assert jitted.state().emitted
    return jitted


def counts(jitted):
    counters = jitted.state().counters
    return counters["python_calls"], counters["kernel_launches"]


@pytest.fixture
def heard():
    return []


@pytest.fixture(autouse=True)
def _numpys_own(heard):
    class Log:
        def write(self, text):
            heard.append(text)

    before, call = np.geterr(), np.seterrcall(Log())
    yield
    np.seterr(**before)
    np.seterrcall(call)


@pytest.mark.parametrize("dispatch", ["emitted", "python", "new"])
def test_errors_are_raised(dispatch):
    jitted = pf.jit(inverse, unsupported="python")
    with pf.knobs.override(native_dispatch=dispatch == "emitted"):
        for _ in range(0 if dispatch == "new" else 4):
            jitted(ZEROS)
        assert jitted.state().emitted == (dispatch == "emitted")
        python, launches = counts(jitted)
        with np.errstate(divide="raise"):
            for k in range(3):
                with pytest.raises(FloatingPointError, match="divide by zero"):
                    jitted(ZEROS)
                np.testing.assert_array_equal(jitted(ONES), inverse(ONES))
                assert counts(jitted) == (python + 2 * k + 2, launches)
            assert jitted.state().tier == "python"
        for _ in range(3):
            assert np.isinf(jitted(ZEROS)[1])
    assert counts(jitted)[0] == python + 6
    assert counts(jitted)[1] > launches
    assert jitted.explain().count("NumPy is asked to raise at floating-point errors") == 1


@pytest.mark.parametrize("how", ["call", "print", "log"])
def test_errors_are_told(how, heard, capfd):
    jitted = settled(inverse, ZEROS)
    if how == "call":
        np.seterrcall(lambda *told: heard.append(told))
    with np.errstate(divide=how):
        jitted(ZEROS)
    assert "divide by zero" in str(heard) + capfd.readouterr().err
    assert counts(jitted)[0] == 1
    jitted(ZEROS)
    assert counts(jitted)[0] == 1


@pytest.mark.parametrize("kind", ["divide", "over", "under", "invalid"])
def test_each_kind_of_error_is_asked_for_by_itself(kind):
    jitted = settled(inverse, ONES)
    _, launches = counts(jitted)
    for how in ("ignore", "warn"):
        with np.errstate(**{kind: how}):
            jitted(ONES)
    assert counts(jitted) == (0, launches + 2)
    np.seterr(**{kind: "raise"})
    jitted(ONES)
    assert counts(jitted) == (1, launches + 2)
    np.seterr(**{kind: "warn"})
    jitted(ONES)
    assert counts(jitted) == (1, launches + 3)


def test_each_thread_asks_for_itself():
    jitted, found = settled(inverse, ZEROS), []
    with np.errstate(all="raise"):
        thread = threading.Thread(target=lambda: found.append(jitted(ZEROS)))
        thread.start()
        thread.join()
    assert np.isinf(found[0][1])
    assert counts(jitted)[0] == 0


def test_results_into_arrays_are_pythons_as_well():
    jitted, out = settled(inverse, ONES), np.zeros(3)
    jitted.into(out, ONES)
    python = counts(jitted)[0]
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError):
            jitted.into(out, ZEROS)
        assert jitted.into(out, ONES) is out
    assert counts(jitted)[0] == python + 2


def test_what_has_no_python_is_refused_and_remembers_nothing():
    gradient = pf.grad(lambda x: (1 / x).sum())
    strict = pf.jit(inverse, unsupported="raise")
    for call in (gradient, strict, gradient, strict):
        with np.errstate(over="raise"), pytest.raises(pf.TraceError, match="asked to raise"):
            call(ONES)
    np.testing.assert_allclose(gradient(ONES), -ONES)
    np.testing.assert_allclose(strict(ONES), inverse(ONES))


@np.errstate(divide="raise")
def decorated(x):
    return 1 / x


@contextlib.contextmanager
def careful():
    with np.errstate(divide="raise"):
        yield


def in_an_exit_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(all="raise"))
        return 1 / x


def in_a_manager(x):
    with careful():
        return 1 / x


def unpacked(x):
    with np.errstate(**dict.fromkeys(["divide"], "raise")):
        return 1 / x


def helper(x):
    return decorated(x * 1)


def counting(x):
    times = []
    with np.errstate(divide="call", call=lambda *_: times.append(1)):
        y = 1 / x
    return y, len(times)


def asking(x):
    return x * 2 if np.geterr()["divide"] == "ignore" else x * 3


@pytest.mark.parametrize("function", [decorated, in_an_exit_stack, in_a_manager, unpacked, helper, counting, asking])
def test_functions_that_ask_themselves_are_pythons(function):
    jitted = pf.jit(function, unsupported="python")
    for x in (ONES, ONES, ZEROS, ONES):
        for f in (function, jitted):
            if function in (counting, asking) or x is ONES:
                np.testing.assert_array_equal(np.hstack(f(x)), np.hstack(function(x)))
            else:
                with pytest.raises(FloatingPointError):
                    f(x)
    assert jitted.state().counters["python_calls"] == 4


def test_what_a_function_ignores_stays_a_graph():
    def quiet(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1 / x

    jitted = settled(quiet, ZEROS)
    _, launches = counts(jitted)
    with np.errstate(all="ignore"):
        assert np.isinf(jitted(ZEROS)[1])
    assert counts(jitted) == (0, launches + 1)
