"""Sizes and numbers of a call: the same on every tier, and NumPy's, negative and huge ones too."""

import random

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.size_algebra import fits_64_bits
from profuse.dialect.ir.symbolic import symbol

TIERS = {"dynamic": [("dynamic", 1)], "static first": [("static", 1), ("dynamic", 2)]}
both = pytest.mark.parametrize("strategy", TIERS.values(), ids=TIERS)


def agree(f, plain, *args):
    """Values, shapes, dtypes and errors of two calls are NumPy's."""
    try:
        want = plain(*args)
    except Exception as error:
        for _ in range(2):
            with pytest.raises(type(error)):
                f(*args)
        return
    for _ in range(2):
        got = f(*args)
        results = (r if isinstance(r, tuple) else (r,) for r in (got, want))
        for one, other in zip(*results, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), args
            np.testing.assert_array_equal(one, other)


def expression(rng, depth):
    """A random size expression over n and m that never divides by 0, as Python source."""
    if depth == 0:
        return rng.choice(["n", "m", "n", "3", "(-2)"])
    a, b = expression(rng, depth - 1), expression(rng, rng.randrange(depth))
    kind = rng.choice(["+", "-", "*", "//", "%", "neg"])
    if kind in ("//", "%"):
        b = rng.choice(["2", "3", "(-2)", "(-3)", "7"])
    return f"(-{a})" if kind == "neg" else f"({a} {kind} {b})"


def _fits(text, symbols):
    return fits_64_bits(eval(f"({text}) * 60", symbols))


@both
def test_random_size_expressions_as_numbers_and_as_sizes(strategy):
    """In kernels, of what the caller allocates, in loops and in emitted calls."""
    rng = random.Random(5)
    symbols = {"n": symbol("n"), "m": symbol("m")}
    texts = [text for text in (expression(rng, 3) for _ in range(40)) if _fits(text, symbols)][:14]
    numbers = ", ".join(f"x[0] + {t}" for t in texts)
    ranges = ", ".join(f"np.arange({t} % 50 - 3) * 3 + 1" for t in texts[:5])
    steps = ", ".join(f"np.arange(9, {t} % 40, -2) * 3" for t in texts[5:8])
    cuts = ", ".join(f"np.ones({t} % 50)[{t} % 30 :: 3] * 5" for t in texts[8:11])
    made = f"({numbers}, {ranges}, {steps}, {cuts})"
    plain = eval(f"lambda x: (lambda n, m: {made})(x.shape[0], x.shape[1])", {"np": np})
    f = pf.jit(plain, strategy=strategy)
    for n, m in ((4, 6), (9, 2), (2, 13), (31, 3), (4, 6), (3, 3)):
        agree(f, plain, np.arange(float(n * m)).reshape(n, m))
    counters = f.state().counters
    assert counters["voided_launches"] == 0
    assert counters["compile_failures"] == 0, f.state().reasons
    assert counters["kernel_launches"] >= 8


@pytest.mark.sampled(2)
@both
@pytest.mark.parametrize(
    "plain",
    [
        lambda x: np.arange(0, x.shape[0], 2) * 3,
        lambda x: np.arange(x.shape[0], 0, -2) * 3,
        lambda x: np.arange(5, 5 + x.shape[0], 3) * 3,
        lambda x: np.arange(x.shape[0] + (-x.shape[0]) // 3) * 3,
    ],
    ids=["by 2", "down", "from 5", "rounded down"],
)
def test_every_element_of_a_range_is_written(strategy, plain):
    f = pf.jit(plain, strategy=strategy)
    for n in (4, 6, 8, 10, 12, 3, 1, 2, 0, 10):
        agree(f, plain, np.ones(n))
    assert f.state().counters["kernel_launches"] > 12


@both
def test_a_negative_size_raises_on_every_tier(strategy):
    """As a result, within one kernel, between kernels, and as the product of two."""

    def result(x):
        return np.zeros(x.shape[0] - 5) + 2

    def inside(x):
        n = x.shape[0]
        return np.zeros(n - 5).sum() + np.ones((n - 5, n - 5)).sum() + x

    def between(x):
        y = np.cumsum(np.ones(x.shape[0] - 5) * 2)
        return x + 1, (y @ y) * 2

    for plain in (result, inside, between):
        f = pf.jit(plain, strategy=strategy)
        for n in (7, 9, 6, 3, 2, 4, 12, 3):
            agree(f, plain, np.arange(float(n)))
        assert f.state().counters["kernel_launches"] >= 6


def test_a_size_as_a_number_that_leaves_64_bits_voids_the_launch():
    def plain(x):
        n = x.shape[0]
        return x / (n * n * n * n * n)

    f = pf.jit(plain, strategy=[("dynamic", 1)])
    for n in (10, 20, 10000, 30, 20000):
        agree(f, plain, np.arange(1.0, n + 1))
    counters = f.state().counters
    assert (counters["voided_launches"], counters["kernel_launches"]) == (4, 9)


def test_an_extent_that_may_leave_64_bits_is_refused():
    def plain(x):
        n = x.shape[0]
        return x[: n * n * n * n * n] * 2

    f = pf.jit(plain, strategy=[("dynamic", 1)])
    for n in (10, 20, 10000):
        agree(f, plain, np.arange(1.0, n + 1))
    assert f.state().counters["kernel_launches"] == 0
    assert any("more than 64 bits" in reason for reason in f.state().reasons)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_int_arithmetic_beyond_64_bits_is_numpys_on_every_call(dtype):
    def plain(x, k):
        return x * (k * k)

    f = pf.jit(plain)
    for k in (3, 2**40, 5, -(2**40)):
        agree(f, plain, np.ones(3, dtype), k)
    assert f.state().counters["kernel_launches"] == 3
    assert f.state().counters["voided_launches"] == 0


@pytest.mark.parametrize(
    "plain",
    [
        lambda x, a: x * 2 if a == a else x * 3,
        lambda x, a: x * 2 if a * 2 + 1 <= a * 2 + 1 else x * 3,
        lambda x, a: x * 2 if a * 0 == 0 else x * 3,
        lambda x, a: x * 2 if str(a) == "-0.0" else x * 3,
        lambda x, a: x * 2 if a * 2000000000 * 2000000000 * 4000000000 == 0 else x * 3,
    ],
    ids=["itself", "expression", "times 0", "sign", "many bits"],
)
def test_floats_and_large_ints_take_the_branch_that_they_take_in_python(plain):
    f = pf.jit(plain)
    for a in (1.5, float("nan"), float("inf"), -0.0, 0.0, 2**31 - 1, 3, 2**30, -2, 1.5):
        agree(f, plain, np.arange(3.0), a)


def test_ints_compared_with_themselves_need_no_guard():
    f = pf.jit(lambda x, a: x * 2 if a == a else x * 3)
    for a in (1, 2, 3):
        f(np.ones(3), a)
    assert f.state().counters["traces"] == 1


def test_a_slice_from_a_negative_int_has_its_own_length():
    """The length of ``x[k:]`` is guarded for ints of any sign."""

    def plain(x, k):
        return x[k:] * len(x[k:])

    f = pf.jit(plain)
    for n, k in ((5, 2), (1, -2), (5, -2), (7, -2), (3, 3), (0, 0), (0, 1), (1, 1)):
        agree(f, plain, np.arange(1.0, n + 1), k)


def test_bool_arguments_are_true_and_false():
    def plain(x, flag, other=None):
        if other is None and flag is True:
            return x * 2
        return x * 3 if flag is False else x

    f = pf.jit(plain)
    for flag in (True, False, True, 1, False):
        agree(f, plain, np.arange(3.0), flag)
    assert f.state().counters["traces"] == 3
    assert "flag = True was baked into the graph" in f.explain()


def test_known_indices_on_axes_of_any_size():
    """One kernel serves every size, and NumPy's error comes where an axis is too short."""

    def plain(x):
        y = np.exp(x[:, -2:])
        y[2] = y[1] * 2
        y[-3] += x[3, 0]
        return y, x[2] + x[-4] * x[:, 1].sum(), x[0, -1] + x[4, 1]

    f = pf.jit(plain, strategy=[("dynamic", 3)], background=False)
    rng = np.random.default_rng(0)
    for n, m in ((5, 6), (5, 6), (7, 4), (9, 2), (4, 6), (3, 6), (9, 1), (31, 17)):
        x = rng.standard_normal((n, m))
        try:
            want = plain(x)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                f(x)
            continue
        for one, other in zip(f(x), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    state = f.state()
    assert (state.counters["compiles"], state.counters["voided_launches"]) == (1, 3)
    assert not state.reasons


def test_a_kernel_computes_no_number_from_one_that_it_is_handed():
    """The bounds of a size are not known of a quotient that Python computes."""

    def f(x, y):
        return x % (min(len(y), 3) // y.shape[0] + 1), x + 1

    with pf.knobs.override(profiling_mode=False):  # no observer tells that quotient's value
        compiled = pf.jit(f, background=False)
        for n in (3, 4, 5, 3):
            agree(compiled, f, np.arange(float(n)) / 8, np.ones((n - 2, 1), np.float32))
        assert compiled.state().counters["compile_failures"] == 0


def test_functions_of_arrays_without_elements_compile():
    """What kernels read of such an array is a constant; MLIR aborts as it folds casts of undef."""

    def f(x, y):
        empty = np.arange(x.shape[0], y.shape[0])
        return np.take(np.power(empty, y.var(axis=-1)), empty, axis=0)

    compiled = pf.jit(f, background=False, strategy=[("static", 1)])
    agree(compiled, f, np.ones(3), np.array([1, 2]))
    assert compiled.state().counters["kernels_compiled"] == 1


def test_a_power_of_sizes_that_are_known_is_a_python_number():
    """Whether it is an int or a float is known in a group alone, and groups return arrays."""

    def f(x):
        made = np.tri(x.shape[0] // x.shape[0] - 2)
        return made.shape[0] ** abs(made.shape[1] - 3)

    with pf.knobs.override(profiling_mode=False):
        compiled = pf.jit(f, background=False)
        assert [type(compiled(np.ones(n))) for n in (3, 3, 5)] == [int] * 3


def _mean_of_rows(x):
    return (x * 2).sum(axis=1) * (1.0 / x.shape[0])


def _scaled(x, k):
    y = x * 2
    return y * (1 / k) + (x.shape[0] // k) + 7 % k


def _by_sizes(x):
    y = x * 2 * (100 // x.shape[0]) + x.shape[0] % 3
    return y * (3 / (x.shape[0] - 4)) + 100 % (x.shape[0] - 9)


@pytest.mark.parametrize(
    ("fn", "calls", "launches"),
    [
        (_mean_of_rows, [(np.ones((n, 3)),) for n in (4, 5, 6, 7)], 3),
        (_scaled, [(np.ones(4), k) for k in (2, 3, 0, 5, -2, 0, -7)], 4),  # divided before the kernel
        (_scaled, [(np.ones(4), k) for k in (2.5, 0.1, 0.0, -0.0, -2.5, 1e300)], 3),
        (_by_sizes, [(np.ones(n),) for n in (2, 5, 4, 6, 9, 3, 17)], 6),  # divided in it
    ],
)
def test_divisions_by_sizes_and_numbers_are_native(fn, calls, launches):
    """A divisor of 0 raises what Python raises; one kernel serves the others (after a profile)."""
    with pf.knobs.override(cache=False):
        f = pf.jit(fn, strategy=[("dynamic", 1)], background=False)
        for args in calls:
            try:
                want = fn(*args)
            except ZeroDivisionError as error:
                with pytest.raises(ZeroDivisionError, match=str(error)):
                    f(*args)
            else:
                np.testing.assert_array_equal(f(*args), want)
        counters = f.state().counters
    assert counters["compiles"] == 1
    assert counters["kernel_launches"] == launches


def _halves(x, c):
    half = x.shape[-1] // 2
    return np.concatenate([x[:, :half] * c, x[:, half:] - c], axis=-1)


def _bags(x, k):
    return x[k].reshape(-1, 4, x.shape[1]).mean(axis=1)


def _thirds(x):
    k = x.shape[0] // 3
    return np.concatenate([x[:k], x[k : 2 * k] * 2, x[2 * k :]])


@pytest.mark.parametrize(
    ("fn", "arguments", "fits", "other"),
    [
        (lambda x: x[::2] + x[1::2], lambda n: (np.arange(n) + 0.5,), (6, 8, 10, 2, 14), (7, 1, 9)),
        (lambda x: np.exp(x).reshape(-1, 2).sum(1), lambda n: (np.arange(n) / 7,), (6, 2, 12), (7, 5)),
        (_halves, lambda n: (np.ones((3, 2 * n)), np.arange(n) + 1.0), (4, 5, 1, 9), ()),
        (_bags, lambda n: (np.ones((n, n + 1)), np.arange(4 * n) % n), (4, 5, 2, 9), ()),
        (_bags, lambda n: (np.ones((9, 3)), np.arange(n) % 9), (8, 4, 20), (7, 0)),
        (_thirds, lambda n: (np.arange(n) + 0.5,), (9, 12, 3, 6), (10, 2, 1, 0)),
    ],
)
def test_r1_40_sizes_that_fitted_are_guarded_and_others_fall_back(fn, arguments, fits, other):
    """Even sizes, halves of others: one kernel for all that fit, NumPy's answer for the others."""
    with pf.knobs.override(cache=False):
        f = pf.jit(fn, strategy=[("dynamic", 1)], background=False)
        for n in fits:
            np.testing.assert_allclose(f(*arguments(n)), fn(*arguments(n)), rtol=1e-12)
        state = f.state()
        assert state.counters["guard_misses"] == 0 and state.counters["compiles"] == 1
        assert state.counters["kernel_launches"] == len(fits) - 1  # the first call is profiled
        assert any("sizes are guarded to fit as they have so far" in str(r) for r in state.reasons)
        for n in other:
            agree(f, fn, *arguments(n))
        assert f.state().counters["guard_misses"] == 2 * len(other)
        np.testing.assert_allclose(f(*arguments(fits[-1])), fn(*arguments(fits[-1])), rtol=1e-12)


def of_narrow_arrays(x):
    columns = np.multiply(x.shape[1], 1).astype(np.int8)
    return x * int(columns * np.int8(2) // np.int8(100))


def test_numbers_in_narrow_arrays_wrap_round():
    """Only arrays of 64 bits compute as Python does."""
    f = pf.jit(of_narrow_arrays, background=False)
    for columns in (60, 70, 60):
        with np.errstate(over="ignore"):
            agree(f, of_narrow_arrays, np.ones((4, columns)))


def rows_of_arrays(x):
    rows = np.multiply(x.shape[0], 4) // 2
    return np.zeros(int(rows)) + x.sum()


def test_guards_of_sizes_in_arrays_are_compared_in_emitted_code():
    f = pf.jit(rows_of_arrays, background=False)
    for rows in (4, 5, 4):
        agree(f, rows_of_arrays, np.ones((rows, 3)))
    assert "2*x.shape[0] = 8 was baked" in f.explain()
    assert "dispatched in Python" not in f.explain()
