"""Writes to arguments are results of the graph, which go into the caller's arrays."""

import copy
import threading

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def jacobi(a, b, n):
    for _ in range(n):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def gemm(alpha, beta, c, a, b):
    c[:] = alpha * a @ b + beta * c


def increase(x):
    x += 1
    return x


def through_a_view(x):
    first = x[0]
    x[1:] = x[:-1] * 2
    first += 5
    return x.sum(), first


def twice(x):
    x *= 2
    return x, x.T, 3


def swap(x, y):
    t = x.copy()
    x[:] = y
    y[:] = t


def by_out(x):
    x[::2] += x[1::2]
    np.sqrt(x, out=x)
    return x.mean()


def descend(parameters, gradients):
    for name in parameters:
        parameters[name] -= 0.1 * gradients[name]


def some(*shape):
    return RNG.random(shape)


def both():
    return {"a": some(3), "b": some(2, 2)}


CASES = {
    "jacobi": (jacobi, lambda: (some(9), some(9), 3)),
    "gemm": (gemm, lambda: (1.5, 1.2, some(3, 4), some(3, 5), some(5, 4))),
    "floats": (increase, lambda: (some(4),)),
    "integers": (increase, lambda: (np.arange(5),)),
    "half": (increase, lambda: (some(6).astype(np.float16),)),
    "complex": (increase, lambda: (some(3) + 1j,)),
    "rank 0": (increase, lambda: (np.array(3.0),)),
    "empty": (increase, lambda: (some(0, 3),)),
    "transposed": (increase, lambda: (some(4, 5).T,)),
    "strided": (increase, lambda: (some(6, 6)[::2, ::-2],)),
    "foreign byte order": (increase, lambda: (some(4).astype(">f8"),)),
    "a view": (through_a_view, lambda: (some(3, 4),)),
    "returned": (twice, lambda: (some(3, 3),)),
    "two": (swap, lambda: (some(4), some(4))),
    "out": (by_out, lambda: (some(8),)),
    "dicts": (descend, lambda: (both(), both())),
}


def same(ours, theirs):
    if isinstance(ours, dict):
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            same(x, y)
    elif ours is None:
        assert theirs is None
    else:
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_results_and_arguments_are_numpys_at_each_call(name):
    fn, arguments = CASES[name]
    f = pf.jit(fn)
    for _ in range(5):
        ours = arguments()
        theirs = copy.deepcopy(ours)
        same(f(*ours), fn(*theirs))
        same(ours, theirs)
        f.wait()
    counters = f.state().counters
    assert (counters["python_calls"], counters["traces"]) == (0, 1)
    assert counters["profiled_runs"] < 5
    assert f.state().tier == "optimized"


def test_a_result_that_is_an_argument_is_the_callers_array():
    f, g, x = pf.jit(increase), pf.jit(twice), some(3, 3)
    for _ in range(4):
        assert f(x) is x
        again, turned, three = g(x)
        assert again is x and three == 3
        assert turned.tolist() == x.T.tolist()


def test_kernels_run():
    def relax(x, y):
        x += np.tanh(y) * 0.5
        x *= 0.9

    f, x, y = pf.jit(relax), some(64, 64), some(64, 64)
    theirs = x.copy()
    for _ in range(6):
        f(x, y)
        relax(theirs, y)
        f.wait()
    np.testing.assert_allclose(x, theirs, rtol=1e-12)
    counters = f.state().counters
    assert counters["python_calls"] == 0 and counters["kernel_launches"] >= 3


def test_arrays_that_overlap_are_left_to_python():
    f = pf.jit(swap)
    f(some(4), some(4))
    ours = some(6)
    theirs = ours.copy()
    f(ours[:4], ours[2:])
    swap(theirs[:4], theirs[2:])
    np.testing.assert_array_equal(ours, theirs)
    assert f.state().counters["python_calls"] == 1
    f(ours, ours)
    assert f.state().counters["python_calls"] == 2


def test_arrays_that_overlap_a_captured_one_are_left_to_python():
    held = np.arange(4.0)

    @pf.jit
    def f(x):
        x += held
        x += held

    f(np.zeros(4))
    assert f.state().counters["python_calls"] == 0
    f(held)
    assert held.tolist() == [0.0, 4.0, 8.0, 12.0]
    assert f.state().counters["python_calls"] == 1


def test_arrays_that_must_not_be_written_raise_numpys_error():
    f, x = pf.jit(increase), some(4)
    x.flags.writeable = False
    f(some(4))
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            f(x)


def test_a_call_that_fails_leaves_what_numpy_leaves():
    def write(x, i):
        x[0] = 9
        x[1] = x[i]
        return x

    f = pf.jit(write)
    for i in (2, 3, 9, 2, 9):
        x = np.arange(4.0)
        if i < 4:
            assert f(x, i).tolist() == [9.0, float(i), 2.0, 3.0]
        else:
            with pytest.raises(IndexError):
                f(x, i)
            assert x.tolist() == [9.0, 1.0, 2.0, 3.0]
        f.wait()


def test_within_another_function_and_on_the_tape():
    inner = pf.jit(increase)

    @pf.jit
    def outer(x):
        y = x * 2
        inner(y)
        return inner(x) + y

    for _ in range(4):
        x = np.ones(3)
        assert outer(x).tolist() == [5.0] * 3 and x.tolist() == [2.0] * 3
    x = pf.array(np.ones(3), requires_grad=True)
    inner(x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_results_go_into_arrays_of_the_caller_too():
    f, x, out = pf.jit(lambda x: np.tanh(increase(x))), np.zeros(3), np.empty(3)
    for _ in range(3):
        x[:] = 0
        assert f.into(out, x) is out
        assert x.tolist() == [1.0] * 3
        np.testing.assert_allclose(out, np.tanh(np.ones(3)))


def test_writes_are_refused_where_errors_are_asked_for():
    with pytest.raises(TraceError, match="would change argument 'x'"):
        pf.jit(increase, unsupported="raise")(np.ones(3))
    with pytest.raises(TraceError, match="would change argument 'x'"):
        pf.grad(lambda x: increase(x).sum())(np.ones(3))


def test_threads():
    f, failures = pf.jit(jacobi), []

    def run(k):
        for _ in range(20):
            a, b = np.random.default_rng(k).random((2, 8 + k))
            c, d = a.copy(), b.copy()
            f(a, b, 2)
            jacobi(c, d, 2)
            if not (np.allclose(a, c) and np.allclose(b, d)):
                failures.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert f.state().counters["python_calls"] == 0


def double_flat(x):
    flat = x.ravel()
    flat *= 2
    return flat + 1


def add_to_rows(x):
    rows = x.reshape(-1, 2)
    rows[1:] += rows[:-1]
    return rows.sum()


LAYOUTS = {
    "c": np.array,
    "fortran": np.asfortranarray,
    "reversed": lambda x: np.array(x[::-1])[::-1],
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", [double_flat, add_to_rows])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_a_view_or_a_copy_as_the_layout_decides(function, shape, layout):
    """``ravel`` copies what is not contiguous, ``reshape`` what no strides can tell."""
    with pf.knobs.override(unsupported="python"):
        f = pf.jit(function)
        for kind in ("c", layout, layout, "c"):
            ours, theirs = (LAYOUTS[kind](np.arange(np.prod(shape) * 1.0).reshape(shape)) for _ in range(2))
            np.testing.assert_array_equal(f(ours), function(theirs))
            f.wait()
            np.testing.assert_array_equal(ours, theirs)


WRITERS = {
    "in place": (lambda x: (np.multiply(x, 0.5, out=x), None)[1], 1),
    "slices": (lambda x: (x.__setitem__(slice(1, None), x[:-1] + 1), None)[1], 1),
    "returned": (increase, 1),
    "with a result": (lambda x, y: (x.__iadd__(y), (x * y).sum())[1], 2),
    "two": (lambda x, y: (x.__iadd__(1), y.__imul__(x), (x + y, y - x))[2], 2),
}


@pytest.mark.parametrize("name", WRITERS)
def test_emitted_code_serves_functions_that_write_to_arrays(name):
    """Also where arrays overlap, have another layout, or cannot be written, as Python has it."""
    function, count = WRITERS[name]
    f = pf.jit(function)

    def arguments(kind):
        arrays = [np.arange(6.0) + k for k in range(count)]
        if kind == "strided":
            return [np.repeat(x, 2)[::2] for x in arrays]
        if kind == "overlapping":
            memory = np.arange(8.0)
            return [memory[k : k + 6] for k in range(count)]
        if kind == "read-only":
            for x in arrays:
                x.flags.writeable = False
        return arrays

    for _ in range(4):
        f(*arguments("plain"))
        f.wait()
    assert "dispatched in Python" not in f.explain()
    launches = f.state().counters["kernel_launches"]
    for kind in ("plain", "strided", "overlapping", "plain", "read-only", "plain"):
        ours, theirs = arguments(kind), arguments(kind)
        with pf.knobs.override(unsupported="python"):
            if kind == "read-only":
                with pytest.raises(ValueError, match="read-only"):
                    f(*ours)
                continue
            found, wanted = f(*ours), function(*theirs)
        assert (found is ours[0]) == (wanted is theirs[0])
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
        several = isinstance(wanted, tuple)
        for a, b in zip(found, wanted, strict=True) if several else [(found, wanted)]:
            np.testing.assert_array_equal(a, b)
    assert f.state().counters["kernel_launches"] >= launches + 3


def raised(x, indices, values):
    np.maximum.at(x, indices, values)
    np.maximum.at(x, indices + 1, values)
    return x


def test_emitted_code_returns_an_array_that_is_copied_to():
    """What may be outside of the array is known behind the first writes: the kernel does not write in place."""
    f, indices, values = pf.jit(raised), np.array([1, 1, 2, 8, 8]), np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    for k in range(4):
        ours, theirs = np.full(10, k * 1.0), np.full(10, k * 1.0)
        assert f(ours, indices, values) is ours
        np.testing.assert_array_equal(ours, raised(theirs, indices, values))
        f.wait()
    assert "dispatched in Python" not in f.explain()
    assert f.state().counters["kernel_launches"] >= 2
    ours, theirs = np.zeros(10), np.zeros(10)
    for function, x in ((f, ours), (raised, theirs)):
        with pytest.raises(IndexError, match="index 10 is out of bounds"):
            function(x, indices + 1, values)
    np.testing.assert_array_equal(ours, theirs)


def test_threads_that_write_to_arrays_of_their_own():
    f = pf.jit(increase)
    for _ in range(4):
        f(np.zeros(50))
        f.wait()
    arrays = [np.zeros(50) for _ in range(4)]

    def work(x):
        for _ in range(500):
            f(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((x == 500).all() for x in arrays)
