"""NumPy functions and ndarray methods: traced once at one size, evaluated at others."""

import itertools
import re

import ml_dtypes
import numpy as np
import profuse as pf
import profuse.dialect.importers.numpy.capture.user_functions as api
import pytest
from every_case import fewer
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.dialect.errors import BoundsError, DTypeError, ShapeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call, check

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(2, 3)), RNG.normal(size=(5, 4))
C, D = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(3, 5, 2))

REDUCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_reductions_as_functions_and_methods(name, axis):
    check(lambda x: getattr(np, name)(x, axis=axis), X, again=[(Y,)], exact=False)
    check(lambda x: getattr(x, name)(axis), X > 0, again=[(Y > 0,)], exact=False)
    if not name.startswith("cum"):
        check(lambda x: getattr(x, name)(axis=axis, keepdims=True), X, again=[(Y,)], exact=False)


FUNCTIONS = {
    "sum axes": lambda x: np.sum(x, axis=(0, 1)),
    "sum dtype": lambda x: np.sum(x, dtype=np.float32),
    "sum initial": lambda x: x.sum(initial=3.0) + np.prod(x, initial=2.0),
    "max initial": lambda x: np.max(x, initial=9.0),
    "amax": lambda x: np.amax(x, 0) - np.amin(x, 0),
    "mean dtype": lambda x: np.mean(x, dtype=np.float32),
    "var ddof": lambda x: (np.var(x, ddof=1), x.std(0, ddof=1)),
    "ptp": lambda x: np.ptp(x, axis=0),
    "count": lambda x: np.count_nonzero(x > 0, axis=1),
    "average": lambda x: np.average(x, axis=1),
    "average weights": lambda x: np.average(x, weights=x * x, axis=0),
    "average 1-d": lambda x: np.average(x, weights=x[0] ** 2, axis=1),
    "reshape": lambda x: (np.reshape(x, -1), x.reshape(-1, 1), x.reshape((1, -1))),
    "reshape F": lambda x: x.reshape(-1, 1, order="F"),
    "ravel": lambda x: (np.ravel(x), x.flatten(), x.ravel(), x.ravel(order="F")),
    "transpose": lambda x: (x.T, np.transpose(x), x.transpose(1, 0), np.transpose(x, (0, 1)), x.mT),
    "swapaxes": lambda x: (np.swapaxes(x, 0, 1), x.swapaxes(-1, 0), np.moveaxis(x, 0, -1)),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "expand": lambda x: (np.expand_dims(x, 0), x[None], np.expand_dims(x, (0, -1))),
    "squeeze": lambda x: (np.squeeze(x[None], 0), x[None].squeeze(axis=0)),
    "atleast": lambda x: (np.atleast_1d(x[0, 0]), np.atleast_2d(x[0]), np.atleast_3d(x)),
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape),
    "broadcast arrays": lambda x: np.broadcast_arrays(x, x[:1], 3.0),
    "flip": lambda x: (np.flip(x), np.flip(x, 0), np.fliplr(x), np.flipud(x), np.rot90(x)),
    "concatenate": lambda x: np.concatenate([x, x * 2, np.ones((1, 1)) * x[:1]]),
    "concatenate axis": lambda x: np.concatenate((x, x), axis=-1),
    "concatenate flat": lambda x: np.concatenate((x, x[0]), axis=None),
    "stack": lambda x: (np.stack([x, x]), np.stack((x, -x), axis=-1)),
    "stacks": lambda x: (np.vstack([x, x[0]]), np.hstack([x, x]), np.dstack([x, x]), np.column_stack([x[:, 0], x])),
    "append": lambda x: (np.append(x, [1.0, 2.0]), np.append(x, x, axis=0)),
    "array": lambda x: np.array([[x[0, 0], 1], [2, x.sum()]]),
    "array split": lambda x: (np.array_split(x, 2), np.split(x, [1], axis=1)),
    "hsplit": lambda x: np.hsplit(x, [1, 2]),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 2))),
    "repeat": lambda x: (np.repeat(x, 2), np.repeat(x, 3, axis=0), x.repeat(2, 1)),
    "pad": lambda x: (np.pad(x, 1), np.pad(x, ((0, 1), (2, 0)), constant_values=3)),
    "roll": lambda x: (np.roll(x, 1), np.roll(x, -1, axis=0), np.roll(x, (1, 2), axis=(0, 1))),
    "diff": lambda x: (np.diff(x), np.diff(x, axis=0), np.diff(x, n=2, axis=1)),
    "take": lambda x: (np.take(x, [0, 1]), x.take([1, 0], axis=1), np.take(x, 7, mode="wrap")),
    "take along": lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1),
    "where": lambda x: (np.where(x > 0, x, 0), np.where(x > 0, 1, -1), np.where(x > 0, x, x.T[0, 0])),
    "clip": lambda x: (np.clip(x, -1, 1), x.clip(0), np.clip(x, None, 0.5), x.clip(max=0.1)),
    "clip names": lambda x: np.clip(x, min=0, max=x.max() / 2),
    "round": lambda x: (np.round(x), x.round(2), np.around(x, -1), round(3.7), np.fix(x)),
    "nan": lambda x: np.nan_to_num(np.where(x > 0, np.nan, x / 0)),
    "triangles": lambda x: (np.triu(x), np.tril(x, 1)),
    "close": lambda x: (np.isclose(x, x + 1e-9), np.allclose(x, x.copy())),
    "array_equal": lambda x: np.array_equal(x[0], x[0] * 1),
    "real": lambda x: (np.real(x), x.imag, np.real(x + 1j * x), (x * 1j).conj(), np.angle(x * 1j)),
    "sinc": lambda x: np.sinc(x),
    "copy": lambda x: (np.copy(x), x.copy()),
    "astype": lambda x: (x.astype(np.float32), x.astype(int), (x > 0).astype("f4"), x.astype(float)),
    "result_type": lambda x: x.astype(np.result_type(x, np.float32, 1)),
    "norm": lambda x: (
        np.linalg.norm(x),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x, 1, axis=0),
        np.linalg.norm(x, np.inf, axis=0),
        np.linalg.norm(x[0], 3),
        np.linalg.norm(x, axis=1, keepdims=True),
        np.linalg.norm(x, "fro"),
        np.linalg.norm(x, 1),
        np.linalg.norm(x, np.inf),
    ),
    "diagonal": lambda x: (np.diagonal(x), x.diagonal(1), np.trace(x), np.diag(x), np.diag(x[0])),
    "outer": lambda x: (np.outer(x[0], x[1]), np.kron(x, x[:1])),
    "products": lambda x: (
        np.dot(x, x.T),
        x.dot(x.T),
        x @ x.T,
        np.matmul(x, x.T),
        x[0] @ x[1],
        np.inner(x, x),
        np.vdot(x, x),
        np.inner(x[0], x[1]),
    ),
    "tensordot": lambda x: (np.tensordot(x, x), np.tensordot(x, x, axes=(1, 1)), np.tensordot(x, x.T, axes=1)),
    "einsum": lambda x: (
        np.einsum("ij,kj->ik", x, x),
        np.einsum("ij->j", x),
        np.einsum("ij", x),
        np.einsum("ij,ij->", x, x),
    ),
    "like": lambda x: (
        np.zeros_like(x, dtype=int),
        np.ones_like(x),
        np.full_like(x, 2.5),
        np.zeros_like(x, shape=(2,)),
    ),
    "softmax": lambda x: (
        np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    ),
    "helpers": lambda x: (api.erf(x), api.sigmoid(x), api.relu(x), api.rsqrt(np.abs(x))),
    "contains": lambda x: x.dtype.kind + str(x.ndim),
}


# Whether an axis is empty decides whether they raise.
GUARDED = {
    "pad edge": lambda x: np.pad(x, 2, mode="edge"),
    "pad reflect": lambda x: (np.pad(x, 1, mode="reflect"), np.pad(x, 3, mode="symmetric")),
    "pad wrap": lambda x: np.pad(x, ((1, 2), (0, 1)), mode="wrap"),
}


@pytest.mark.parametrize("name", GUARDED)
def test_functions_that_ask_for_empty_axes(name):
    check(GUARDED[name], X, again=[(Y,)], exact=False, guards=2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], X, again=[(Y,)], exact=False)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: np.matmul(a, a.swapaxes(-1, -2)),
        lambda a, b: np.einsum("abc,bde->ade", a, b),
        lambda a, b: np.tensordot(a, b, axes=((1,), (0,))),
        lambda a, b: np.cross(a.transpose(0, 2, 1), [1.0, 2.0, 3.0]),
        lambda a, b: np.transpose(a, (2, 0, 1)),
        lambda a, b: np.moveaxis(a, (0, 1), (-1, 0)),
        lambda a, b: a.sum((0, -1)),
        lambda a, b: np.dot(a, a.transpose(0, 2, 1)),
        lambda a, b: np.rot90(a, 3, (1, 2)),
    ],
)
def test_higher_ranks(fn):
    check(fn, C, D, exact=False)


KEYS = {
    "int": lambda x: x[0],
    "ints": lambda x: x[1, -1],
    "slice": lambda x: x[1:],
    "step": lambda x: x[::-1, ::2],
    "negative": lambda x: x[-2:, :-1],
    "ellipsis": lambda x: x[..., 0],
    "newaxis": lambda x: x[:, None, 1:],
    "all": lambda x: x[...],
    "empty": lambda x: x[5:2],
    "list": lambda x: x[[0, 1, 0]],
    "range": lambda x: x[range(2)],
    "range in rows": lambda x: x[:, range(1, -1, -1)],
    "array": lambda x: x[:, np.array([[0, 1], [1, 0]])],
    "pairs": lambda x: x[[0, 1], [1, 0]],
    "outer": lambda x: x[np.array([[0], [1]]), [0, 2]],
    "mixed": lambda x: x[0, [0, 1]],
    "negative array": lambda x: x[:, [-1, 0]],
    "traced": lambda x: x[np.argmax(x, axis=0)],
    "traced pair": lambda x: x[[0, 1], x.argmin(1)[:2]],
    "new and array": lambda x: x[None, [0, 1], :, None],
    "np int": lambda x: x[np.int64(1)],
    "traced scalar": lambda x: x[x.argmax() % 2],
    "split pair": lambda x: x[[0, 1], None, [1, 0]],
}


@pytest.mark.parametrize("name", KEYS)
def test_indexing(name):
    check(KEYS[name], X, again=[(Y,)])


@pytest.mark.parametrize(
    "key",
    [
        (0, slice(None), [0, 1]),
        ([0, 1], slice(None), [0, 1]),
        (slice(None), [0, 1], [0, 1]),
        ([0, 1], [0, 1]),
        (slice(None), [1], None, [0]),
        (slice(1), [0, 1], 1),
        (..., [0, 1], 0),
        (None, 0, slice(None), [0, 1]),
        ([[0], [1]], slice(None), [1, 2]),
        (1, [0, 1]),
        (slice(None), None, [0, 1]),
        (slice(None), [0, 1], slice(None, None, -2)),
    ],
    ids=str,
)
def test_index_arrays_go_where_numpy_puts_them(key):
    check(lambda x: x[key], C)


@given(st.data())
@settings(max_examples=fewer(150), deadline=None)
def test_any_key(data):
    """Of slices, numbers, newaxes and index arrays, with an ellipsis anywhere."""
    bound = st.none() | st.integers(-4, 4)
    item = st.one_of(
        st.integers(-2, 1),
        st.just(None),
        st.sampled_from([[0, 1], [-1], [[1], [0]]]),
        st.builds(slice, bound, bound, st.none() | st.sampled_from([-2, -1, 1, 3])),
    )
    key = data.draw(st.lists(item, max_size=5))
    if data.draw(st.booleans()):
        key.insert(data.draw(st.integers(0, len(key))), ...)
    if sum(k is not None and k is not ... for k in key) <= C.ndim:
        check(lambda x: x[tuple(key)], C)


def test_slices_with_computed_bounds():
    check(lambda x, k: (x[k:], x[:, : x.shape[1] - k], x[k], x[:: k + 1]), X, 1, again=[(Y, 3)])
    check(lambda x: x[: x[:, 0].argmax() + 1], X, again=[(Y,)])


def test_equal_split_is_checked_at_run_time():
    traced = check(lambda x: np.split(x, 3, axis=1), X)
    from tracing import call

    with pytest.raises(ShapeError):
        call(traced, Y)


def test_contraction_errors_have_a_line():
    with pytest.raises(ShapeError) as info:
        trace(lambda x: np.einsum("ij,ij->ij", x, x[:, :2]), (X,))
    assert info.value.loc.file == __file__


@pytest.mark.parametrize(
    "fn, message",
    [
        (lambda x: np.pad(x, 1, mode="mean"), "mode='mean'"),
        (lambda x: np.sum(x, out=np.flip([0.0])), "out="),
        (lambda x: np.fill_diagonal(x, 0), "would change argument 'x'"),
        (lambda x: x.sort(), "would change argument 'x'"),
        (lambda x: x.byteswap(True), "change an array in place"),
    ],
)
def test_refusals(fn, message):
    with pytest.raises(TraceError) as info:
        trace(fn, (X,))
    assert message in str(info.value)


def test_triangles_of_one_axis_have_the_array_in_every_row():
    check(lambda x: (np.tril(x), np.triu(x, 1)), X[0], again=[(Y[1],)])
    check(lambda x: np.tril(x, -1), C, again=[(D,)])
    with pytest.raises(DTypeError, match="one axis"):
        trace(np.tril, (np.float64(1.0),))


def test_a_float_argument_is_no_index():
    """As in NumPy an IndexError, which code may catch."""
    for index in (lambda x, k: x[k], lambda x, k: x[..., k]):
        with pytest.raises(BoundsError, match="valid indices"):
            trace(index, (X, 1.0))


def test_what_only_numbers_of_other_kinds_show():
    """Bools are no small ints for vdot and no mask for take; roll cuts its shift to an int."""
    mask = X > 0
    check(lambda m, x: (np.vdot(m, m), np.vdot(m, x)), mask, X, again=[(Y > 0, Y)], exact=False)
    check(lambda x, m: np.take(x, m, axis=0), X, mask, again=[(Y, Y > 0)])
    check(lambda x, m: (np.nan_to_num(m), np.nan_to_num(x)), X, mask, again=[(Y, Y > 0)])
    check(lambda x, k: (np.roll(x, 1.9), np.roll(x, k, axis=1), np.roll(x, -k)), X, 1.5, guards=2)
    small = np.array([0, 200], np.uint8)
    check(lambda x, i: np.take(x, i, mode="clip"), np.arange(300.0), small, again=[(X[0], small)])
    narrow = np.array([1, np.inf], ml_dtypes.bfloat16)
    check(np.nan_to_num, narrow)  # NumPy, too, does not know it to be of floats


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: [getattr(np, n)(x.sum(), axis=-1) for n in ("sum", "prod", "max", "min", "any")],
        lambda x: x.sum().all(axis=0, keepdims=True),
        lambda x: np.repeat(x.sum(), 3, axis=-1),
        lambda x: np.roll(x, x.sum().astype(np.uint8)),  # 0 - 28 is no uint8
        lambda x: np.roll(x, np.uint64(3)),
        lambda x: (np.take(x, x[0, 0]), np.take(x, 1.0), np.take(x, [1.0, 0.5], axis=1)),
        lambda x: (np.mean(x, dtype=np.int64), (x / 3).mean(axis=1, dtype=np.int8, keepdims=True)),
        lambda x: (np.tile(x, True), np.tri(True) * x[0, 0]),
    ],
)
def test_rare_arguments_do_what_they_do_in_numpy(fn):
    check(fn, np.arange(8.0).reshape(2, 4), again=[(np.arange(6.0).reshape(3, 2),)])


def test_rolls_by_more_than_a_number_of_a_graph_can_hold():
    f = pf.jit(lambda x: np.roll(x, 1e30) + np.roll(x, -(10**25)), background=False)
    for size in (4, 4, 5, 0):
        x = np.arange(float(size))
        np.testing.assert_array_equal(f(x), np.roll(x, 1e30) + np.roll(x, -(10**25)))
    assert f.state().counters["traces"] == 3


def test_diagonals_and_paddings_of_empty_axes():
    """R1.33: also where the graph was made of others."""
    check(np.diagonal, np.ones((3, 2, 1)), again=[(np.ones((4, 2, 0)),), (np.ones((0, 2, 0)),)])
    nothing = np.ones((0, 2))
    check(lambda x: (np.repeat(x, -1), np.repeat(x, -2, axis=-2)), nothing, guards=2)
    check(lambda x: np.pad(X, x.shape[0]) * 1, np.ones(2), guards=1)  # no traced array
    same = np.ones((2, 3)), np.ones((2, 3))
    check(lambda x, y: [a * 1 for a in np.broadcast_arrays(x, y)], *same, guards=2)
    for mode in ("edge", "wrap", "reflect"):
        padded = pf.jit(lambda x, mode=mode: np.pad(x, 1, mode=mode), background=False)
        for n in (3, 0, 4, 0):
            x = np.ones((n, 2))
            if n:
                np.testing.assert_array_equal(padded(x), np.pad(x, 1, mode=mode))
                continue
            with pytest.raises(ValueError, match="can't extend empty axis 0"):
                padded(x)
        assert padded.state().counters["traces"] == 1


@pytest.mark.parametrize("function", [np.dot, np.inner, np.vdot])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "f4", "f8"])
def test_products_with_bfloat16_have_the_common_dtype(function, dtype):
    for x, y in itertools.permutations([np.ones(3, ml_dtypes.bfloat16), np.ones(3, dtype)]):
        assert pf.jit(function)(x, y).dtype == function(x, y).dtype


def test_products_of_bfloat16_stay_so():
    x = np.ones((2, 3), ml_dtypes.bfloat16)
    check(lambda x: (np.dot(x, x.T), np.vdot(x, x), np.inner(x, x[0]), np.inner(x, x)), x)


def test_errors_are_of_numpys_classes():
    def rows(x):
        return np.linspace(0, 1, x.shape[-1] ** 2 - 2, endpoint=False)

    traced = check(rows, np.ones((1, 3)))
    with pytest.raises(ValueError, match="negative dimensions"):
        call(traced, np.ones((1, 1)))
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: np.split(x, 0), (X,))
    for fn in (lambda x: np.ones((x.shape[0], True)), lambda x: x.reshape(True, -1)):
        for call_ in (fn, lambda x, fn=fn: trace(fn, (x,))):
            with pytest.raises(TypeError, match="integer"):
                call_(X)


def test_arrays_of_one_shape_are_broadcast_as_they_are():
    """They can be written, as in NumPy."""

    def f(x):
        y = x * 2
        np.broadcast_arrays(y, y)[0][...] = 1
        return y

    check(f, X, again=[(Y,)])


@pytest.mark.parametrize(
    "f",
    [lambda x: np.isfinite(x.sum()) ** 2, lambda x: (x > 0) ** 2, lambda x: (x > 0).any() ** 2],
    ids=["of an element", "of an array", "reduced"],
)
def test_powers_of_bools(f):
    x = np.array([1.0, -2.0])
    want, got = f(x), pf.jit(f, background=False)(x)
    assert (want == got).all() and want.dtype == got.dtype


@pytest.mark.parametrize(("sections", "error"), [(10**30, OverflowError), (10**9, TraceError), (5.0, None), (7, None)])
def test_splits_into_more_pieces_than_there_are_elements(sections, error):
    def f(x):
        return np.array_split(x, sections)

    if error:
        with pytest.raises(error):
            pf.jit(f)(X)
    else:
        check(f, X)


@pytest.mark.parametrize("k", [1, 2.5, -1])
def test_triangles_by_any_number(k):
    x = np.arange(12.0).reshape(3, 4)
    for f in (np.triu, np.tril):
        assert (pf.jit(lambda x, k, f=f: f(x, k), background=False)(x, k) == f(x, k)).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [2.5, 0.5, -1.5, 40.0, np.inf, -np.inf, np.nan, 1e30])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_triangles_of_any_float(number, place):
    def f(n):
        args = [3, 4, 0]
        args[place] = n
        return np.tri(*args)

    compiled = pf.jit(f, background=False)
    with np.errstate(invalid="ignore"):
        try:
            want = f(number)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                compiled(number)
        else:
            if want.shape == (3, 0) and place == 2:  # rounding takes the columns away
                with pytest.raises(pf.TraceError, match="rounding"):
                    compiled(number)
                return
            for n in (number, number):
                np.testing.assert_array_equal(compiled(n), want)


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "f2", "f4", "c8"])
def test_vecdot_stays_in_its_dtype(dtype):
    a, b = np.ones((2, 3), dtype), np.ones(3, dtype)
    want, got = np.vecdot(a, b), pf.jit(lambda a, b: np.vecdot(a, b), background=False)(a, b)
    assert want.dtype == got.dtype and (want == got).all()


def test_repetitions_of_nothing_may_be_negative():
    f = pf.jit(lambda x: np.tile(x, len(x) - 1) + 1.0, background=False)
    assert f(np.ones(0)).shape == (0,) and f(np.ones(3)).shape == (6,)
    with pytest.raises(ValueError, match="negative"):
        pf.jit(lambda x: np.tile(x, -1))(np.ones(3))


@pytest.mark.parametrize("number", [1e30, -1e30, np.inf, np.nan, 1.5])
def test_floats_that_are_taken_raise_as_numpys(number):
    def f(x, k):
        return np.take(x, 3 - k)

    x = np.arange(6.0)
    try:
        want = f(x, number)
    except (OverflowError, ValueError) as error:
        with pytest.raises(type(error)):
            pf.jit(f)(x, number)
    else:
        assert pf.jit(f)(x, number) == want


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_arrays_of_floats_are_no_indices(mode):
    with pytest.raises(TypeError, match="Cannot cast"):
        np.take(np.ones(3), np.ones(2), mode=mode)
    with pytest.raises(TypeError):
        pf.jit(lambda x, i: np.take(x, i, mode=mode))(np.ones(3), np.ones(2))


def test_powers_of_numbers_may_be_complex():
    f = pf.jit(lambda x, k: (x * 1, k**0.5, k**2.0), background=False)
    for k in (-4, 4, -2.5, 0):
        got, want = f(np.ones(2), k)[1:], (k**0.5, k**2.0)
        assert got == want and list(map(type, got)) == list(map(type, want))


def test_numbers_are_weak_beside_numpys_scalars():
    two = np.float32(2)
    f = pf.jit(lambda x: (np.where(x.sum() > 0, -x.size, two), np.where(True, x.size, two)))
    assert [r.dtype for r in f(np.ones(3))] == [np.float32] * 2


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_booleans_are_rounded_to_no_decimals_only(decimals):
    def f(x):
        return np.round(x, decimals)

    mask = np.array([True, False])
    if decimals:
        for call in (f, pf.jit(f)):
            with pytest.raises(TypeError, match="same_kind"):
                call(mask)
    else:
        np.testing.assert_array_equal(pf.jit(f)(mask), f(mask))


INDEXED = {"take": np.take, "[]": lambda x, i: x[i], "take_along_axis": lambda x, i: np.take_along_axis(x, i, 0)}


@pytest.mark.parametrize("call", INDEXED.values(), ids=INDEXED)
def test_unsigned_indices_of_64_bits_are_taken_as_signed(call):
    """The largest is -1, on all tiers."""
    x, index = np.arange(3.0), np.array([2**64 - 1, 0, 2**64 - 2], np.uint64)
    compiled = pf.jit(lambda x, i: call(x, i) * 2, background=False)
    for _ in range(4):
        np.testing.assert_array_equal(compiled(x, index), call(x, index) * 2)
    counters = compiled.state().counters
    assert counters["kernel_launches"] >= 1 and not counters["voided_launches"]


@pytest.mark.parametrize(
    "ours", [lambda x: x.sum() @ x.sum(), lambda x: x.sum() @ 3.0, lambda x: np.float32(3) @ x.sum()]
)
def test_products_of_numpy_scalars_are_not_defined(ours):
    for fn in (ours, pf.jit(ours)):
        with pytest.raises(TypeError, match="unsupported operand"):
            fn(np.ones(3))


def test_products_of_arrays_without_axes_lack_dimensions():
    def product(x):
        return x @ x

    for fn in (product, pf.jit(product)):
        with pytest.raises(ValueError, match="does not have enough dimensions"):
            fn(np.array(2.0))


@pytest.mark.parametrize(
    "bounds",
    [(np.inf,), (0.0, -np.inf), (-np.inf, 1.0), (0.0, np.nan), (0, 1, np.nan), (0.0, 1, np.inf), (0, 1, 0.0), (1e30,)],
)
def test_ranges_without_a_length(bounds):
    def f(x):
        return np.arange(*bounds) + x

    want, got = [], []
    for found, fn in ((want, f), (got, pf.jit(f))):
        try:
            found.append(fn(np.ones(1)).tolist())
        except (ValueError, ZeroDivisionError) as error:
            found.append(str(error).rpartition(": ")[2])
    assert want == got


def test_clip_takes_arrays_that_are_captured():
    """Bounds are compared with nothing: arrays of several elements are neither equal nor not."""
    low, high = np.array([0.0, 0.1, -1.0]), np.array([1.0, 0.2, 1.0])
    x = np.array([3.0, -4.0, 0.5])
    for f in (
        lambda x: np.clip(x, low, high),
        lambda x: np.clip(x, low, None),
        lambda x: np.clip(x, None, high),
        lambda x: np.clip(x, min=low, max=high),
    ):
        np.testing.assert_array_equal(pf.jit(f)(x), f(x))
