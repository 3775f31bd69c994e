"""NumPy ufuncs and array operators: traced and evaluated they give NumPy's results and dtypes."""

import operator

import numpy as np
import profuse as pf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.dialect.errors import DTypeError, ShapeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.tracing.handler_tables import COMPOSED, UFUNCS
from profuse.executor.settings.knobs import knobs
from scipy import special
from tracing import check, line_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(0)


def sample(kind, shape=(2, 3)):
    x = RNG.uniform(0.2, 0.9, shape)
    return {"f": x, "i": RNG.integers(1, 5, shape), "b": x > 0.5, "c": x + 1j * x}[kind]


def ufunc_named(name):
    found = getattr(np, name, None) or getattr(special, name)
    assert isinstance(found, np.ufunc)
    return found


@pytest.mark.parametrize("name", sorted({*UFUNCS, *COMPOSED} - {"matmul", "vecdot"}))
@pytest.mark.parametrize("kind", "fib")
def test_every_ufunc_matches_numpy(name, kind):
    ufunc = ufunc_named(name)
    args = [sample(kind) for _ in range(ufunc.nin)]
    others = [sample(kind, (4, 5)) for _ in range(ufunc.nin)]
    try:
        ufunc(*args)
    except TypeError:
        with pytest.raises(DTypeError):
            trace(lambda *xs: ufunc(*xs), tuple(args))
        return
    check(lambda *xs: ufunc(*xs), *args, again=[others], exact=name not in COMPOSED)


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    divmod,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [2, 2.5, np.float32(1.5), np.int8(2), [1, 2, 3]], ids=str)
def test_operators_with_numbers_and_sequences_on_either_side(op, other):
    for x in (sample("f").astype(np.float32), sample("i").astype(np.int16)):
        for fn in (lambda x, op=op: op(x, other), lambda x, op=op: op(other, x)):
            try:
                fn(x)
            except TypeError:
                with pytest.raises((DTypeError, TypeError)):
                    trace(fn, (x,))
                continue
            check(fn, x)


@pytest.mark.parametrize("exponent", [2, 1, 0.5, -1, 3, 0, 2.0, -0.5])
def test_power_operator_takes_numpys_shortcuts(exponent):
    check(lambda x: x**exponent, np.array([0.1, -np.inf, 3.7, -0.0]))
    if isinstance(exponent, int) and exponent >= 0:
        check(lambda x: x**exponent, np.array([3, -4, 120], np.int8))


@given(st.floats(-1e3, 1e3), st.integers(-100, 100), st.booleans())
@settings(max_examples=25, deadline=None)
def test_python_number_arguments_stay_weak(a, b, c):
    x = np.array([1.5, -2.0], np.float32)
    check(lambda x, a, b, c: (x * a + b - c, a * b, -a, abs(b), b + c), x, a, b, c, again=[(x, 2.5, 7, c)], guards=1)
    # A bool is the one that it is, under a guard.


def test_ufunc_of_python_numbers_gives_numpy_scalars():
    check(lambda a, b: (np.add(a, b), np.sqrt(b), np.maximum(a, 2)), 3, 2.0, again=[(5, 9.0)])


@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
def test_scalars_of_constants_have_numpys_types(profiling):
    """A constant of a graph is no long long, which equals int64 and is another type."""
    x, big = np.ones(3), np.array([2**63, 1], "u8")
    with knobs.override(profiling_mode=profiling):
        f = pf.jit(lambda x: (np.abs(len(x)), big[0] + np.uint64(len(x))), background=False)
        for _ in range(3):
            assert [type(v) for v in f(x)] == [np.int64, np.uint64]


def test_dtype_argument_casts():
    check(lambda x: np.add(x, 1, dtype=np.float64), np.ones(3, np.float32))


def test_reduce_and_accumulate_methods():
    check(
        lambda x: (np.add.reduce(x), np.maximum.reduce(x, axis=1, keepdims=True), np.multiply.reduce(x, axis=None)),
        sample("f"),
    )


def test_concrete_left_operands_record():
    w = np.ones(3)
    traced = check(lambda x: w + x * np.float64(2), sample("f"))
    assert len(traced.captured) == 1 and traced.captured[0] is w


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: np.add(x, 1, out=x), "would change argument"),
        (lambda x: np.add(x, 1, where=x > 0), "where="),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), "is not supported"),
    ],
)
def test_refusals_say_what_and_where(call, message):
    with pytest.raises(TraceError) as info:
        trace(call, (np.ones(3),))
    assert message in info.value.what
    assert info.value.hint
    assert info.value.loc.file == __file__


def test_shape_errors_name_the_users_line():
    def f(x, y):
        z = x * 2
        return z + y  # wrong

    with pytest.raises(ShapeError, match="could not be broadcast") as info:
        trace(f, (np.ones(3), np.ones(4)))
    assert info.value.loc.line == line_of(f, "# wrong")
    with pytest.raises(ValueError):
        trace(f, (np.ones(3), np.ones(4)))


def test_integers_beyond_64_bits():
    mask = 0xCBF29CE484222325
    check(lambda x: x ^ mask, np.array([1, 2], np.uint64))
    with pytest.raises(OverflowError):
        trace(lambda x: x + 2**70, (np.ones(2, np.int64),))


@pytest.mark.parametrize("name", ["i8", "u8", "i4", "f4", "f8", "c8", "?", "b", "<i8", "int16", "d"])
def test_dtypes_in_text_are_numpys(name):
    """``"i8"`` is int64 to NumPy; our own short names never reach user code."""
    x = np.array([[1, 2, 300]])
    check(lambda x: (x.astype(name), np.zeros(x.shape, name) + x, x.sum(axis=0, dtype=name)), x)


@pytest.mark.parametrize("name", ["f32", "i16", "bf16", "nonsense"])
def test_text_that_is_no_dtype_to_numpy_is_refused(name):
    with pytest.raises(DTypeError, match="not understood"):
        trace(lambda x: x.astype(name), (np.ones(3),))


@pytest.mark.parametrize("ufunc", [np.add, np.true_divide, np.power, np.maximum], ids=str)
@pytest.mark.parametrize("dtype", ["i1", "f4", "f2", "f8"])
def test_numbers_beside_captured_arrays_stay_weakly_typed(ufunc, dtype):
    """A size or a number argument does not widen an array that the function closes over."""
    captured, scalar = np.array([[1, 2]], dtype), np.array(3, dtype)[()]
    check(
        lambda x: (ufunc(captured, x.shape[0]), ufunc(x.shape[0], captured)),
        np.ones(3),
        again=[(np.ones(2),)],
        exact=False,
    )
    check(lambda x, k: (ufunc(scalar, k), ufunc(captured, k), ufunc(k, x.shape[0])), np.ones(3), 2, exact=False)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 2.0, 0.5, 1.0, True, np.int64(2)], ids=repr)
def test_powers_of_bools_and_small_ints(exponent):
    """NumPy's shortcuts of ``**`` decide the dtype: the square of a bool is an int8."""
    arrays = (np.array([True, False]), np.array([2, 3], "i2"), np.array([2, 3], "u1"))
    for x in (*arrays, np.array(True), np.True_):
        check(lambda x: x**exponent, x, exact=False)


def test_numpy_scalars_combine_with_number_arguments_as_with_numbers():
    check(
        lambda x, k: x * (np.float32(3) / k) + np.multiply(k, np.float32(2)) - k * np.int8(1),
        np.ones(2, np.float32),
        4,
        again=[(np.ones(2, np.float32), 7)],
    )
