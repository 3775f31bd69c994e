"""In-place operators, ``out=`` and assignment on traced arrays: values, kernels, refusals."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import BoundsError, DTypeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace

X = np.arange(1.0, 25.0).reshape(4, 6)
OUTSIDE = np.ones((4, 6))


def check(fn: Any, *args: Any, calls: int = 3) -> Any:
    """The jitted function after calls that gave what NumPy gives and left the arguments alone."""
    compiled = pf.jit(fn)
    before = [np.copy(a) for a in args]
    for _ in range(calls):
        found, wanted = compiled(*args), fn(*args)
        several = isinstance(wanted, tuple)
        pairs = zip(found, wanted, strict=True) if several else [(found, wanted)]
        for a, b in pairs:
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)
    return compiled


def operators(x):
    y = x * 2
    y += x
    y -= 1
    y /= 3
    y **= 2
    return y


def outputs(x):
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    np.add(y, x, y)
    s = np.zeros(x.shape[1])
    np.max(y, axis=0, out=s)
    np.clip(y, 3, 20, out=y)
    return y, s


def assignments(x):
    y = x * 1
    y[0] = 7
    y[1:, ::-2] = x[:-1, 1::2]
    y[-1, 2] = x[0, 0]
    y[..., 3] += y[:, 0]
    y[2:][0, 1:3] *= 2
    return y


def shared_views(x):
    y = x + 1
    row, turned, column = y[1], y.T[::-1], y[:, 2:3]
    row += 10
    column[...] = row[:1]
    turned[0] -= 5
    return y, row, turned, column


def overlapping(x):
    y = x * 1
    y[1:] += y[:-1]
    y[:, ::-1] -= y
    y[0] = y[-1]
    return y


def masked(x):
    y = x * 1
    y[y > 10] = 0
    return y


def pieces(x):
    y = x * 1
    left, right = np.split(y, 2, axis=1)
    left *= 2
    right[...] = left
    return y


def broadcasts(x):
    y = x * 1
    y += x[0]
    y[...] = y[:, :1]
    y.fill(0)
    y[1:3] = x[2]
    return y


def contiguous(x):
    y = x.copy()
    flat = y.reshape(-1)
    flat[::5] = 0
    return y, flat


def copies(x):
    y = x * 1
    z = y.copy()
    a, b = np.array(y), np.asarray(y)
    y += 1
    return y, z, a, b


def no_axes(x):
    y, z = np.zeros(()), np.ones(())
    y[...] = x.sum()
    z[()] = y * 2
    y += 1
    return y, z


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "fn",
    [
        operators,
        outputs,
        assignments,
        shared_views,
        overlapping,
        masked,
        pieces,
        broadcasts,
        contiguous,
        copies,
        no_axes,
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_own_values_become_one_kernel(fn, order):
    """R3.8: in-place ops on own values are functionalised, so that all of it is one kernel."""
    counters = check(fn, np.asarray(X, order=order)).state().counters
    assert counters["kernels_compiled"] == 1 and counters["kernel_launches"] == 2
    assert counters["fallback_calls"] == counters["refusals"] == 0


def test_sizes_that_change():
    """R3.8: a dynamic specialisation of in-place ops agrees with NumPy for every size."""

    def f(x):
        y = x * 2
        y += x[0]
        y[0] = 1
        return y

    compiled = pf.jit(f, strategy=[("static", 1), ("dynamic", 1)])
    for rows in (4, 4, 5, 5, 7, 9):
        x = np.arange(rows * 3.0).reshape(rows, 3)
        np.testing.assert_array_equal(compiled(x), f(x))
    state = compiled.state()
    assert [s.behavior for s in state.specializations] == ["static", "dynamic"]


def test_equal_reads_on_both_sides_of_a_write_differ():
    def plain(x):
        y = x * 2
        row = y[0]
        before = row.sum()
        y += 1
        return before - row.sum()

    f = pf.jit(plain)
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert f(x) == plain(x)
    assert f.state().counters["kernel_launches"] == 2


def test_index_known_at_run_time_stays_in_place():
    """An op per element that is written, not a copy of everything; with the reason."""

    def f(x):
        out = np.zeros_like(x)

        def body(i, acc):
            acc[i] = x[i] * 2
            acc[i, 0] = i
            return acc

        return pf.fori_loop(0, x.shape[0], body, out)

    with pf.knobs.override(exact=True):  # loops have no kernels then
        state = check(f, X).state()
    assert any("kept: copy_: an index is known only at run time" in r for r in state.reasons)


def test_index_out_of_range():
    def f(x, n):
        y = x * 1
        y[n] = 0
        return y

    compiled = check(f, X[0], 2)
    with pytest.raises(IndexError):
        compiled(X[0], 6)
    with pytest.raises(BoundsError):
        trace(lambda x: (x * 1).__setitem__((0, 9), 1), (X,))


def stencil(x):
    def body(i, v):
        v[1:-1] = (v[:-2] + v[2:]) / 2
        return v

    return pf.fori_loop(0, 3, body, x * 1)


def made_in_the_body(x):
    def body(i, v):
        v = v * 2
        v += i
        v[0] = 0
        return v

    return pf.fori_loop(0, 3, body, x)


def closed_over(x):
    y = x * 1
    view = y[1:]

    def body(v):
        view[...] = view * 2
        return v + 1

    return pf.while_loop(lambda v: v < 3, body, 0), y, view


@pytest.mark.parametrize("fn, kernels", [(stencil, 2), (made_in_the_body, 1), (closed_over, 3)])
def test_in_place_in_loops(fn, kernels):
    """R3.8: a loop carries what its body writes; the body of it is one kernel."""
    state = check(fn, X).state()
    assert not any("kept" in reason for reason in state.reasons)
    assert state.counters["kernels_compiled"] <= kernels


@pytest.mark.parametrize("sign", [1, -1])
def test_in_place_in_branches(sign):
    def f(x):
        y = x * 2
        row = y[0]

        def then():
            row[...] = 1
            return y.sum()

        total = pf.cond(x[0, 0] > 0, then, lambda: y.sum())
        return y, row, total

    state = check(f, X * sign).state()
    assert not any("kept" in reason for reason in state.reasons)


def _carried_argument(x):
    def body(i, v):
        v += 1
        return v

    return pf.fori_loop(0, 2, body, x)


def _result_of_cond(x):
    y = pf.cond(x[0, 0] > 0, lambda: x, lambda: x * 2)
    y += 1
    return y


def _split_argument(x):
    first, _ = np.split(x, 2)
    first[0] = 1
    return x


def _captured(x):
    OUTSIDE[0] = x[0]
    return x


def _captured_element(x):
    OUTSIDE[0, 0] = x.sum()
    return x


def _captured_out(x):
    return np.add(x, 1, out=OUTSIDE)


def _argument_out(x):
    return np.add(x, 1, out=x.T[::-1].T)


def _layout(x):
    y = x * 2
    flat = y.reshape(-1)
    y += 1
    return flat


def _through_layout(x):
    y = x * 2
    np.ravel(y)[0] = 1
    return y


def _through_gaps(x):
    y = x * 1
    y[:, 1].ravel()[0] = 1  # in NumPy, of a copy
    return y


def _through_a_diagonal(x):
    y = np.diag(x * 1)
    np.ravel(y)[0] = 1
    return y


def _in_its_argument(x):
    y = x * 1
    np.nan_to_num(y, copy=False)
    return y


def _row_at_a_maximum(x):
    y = x * 1
    row = y[y[:, 0].argmax()]
    y.fill(0)
    return row


def _through_such_a_row(x):
    y = x * 1
    row = y[y[:, 0].argmax(), 1:]
    row += 1
    return y


def _such_a_row_of_an_argument(x):
    row = x[x[:, 0].argmax()]
    row += 1
    return row


def _such_a_row_in_a_loop(x):
    y = x * 1
    row, total = y[y[:, 0].argmin()], 0
    for k in range(3):
        total = total + row[1:]
        row = y[y[:, 0].argmax()]
        y[k] = 0
    return total


def _diagonal_of_einsum(x):
    y = x[:, :4] * 1
    v = np.einsum("ii->i", y)
    y += 1
    return v


def _through_einsum(x):
    y = x[:, :4] * 1
    v = np.einsum("ii->i", y)
    v += 1
    return y


def _written_below_a_diagonal(x):
    y = np.ones((4, 4)) * x[0, 0]
    v = np.diagonal(y)
    v += 1  # read-only in NumPy
    return y


def _scalar(x):
    s = x.sum()
    s[...] = 1
    return s


@pytest.mark.parametrize(
    "fn, message",
    [
        (_carried_argument, "would change argument 'x'"),
        (_argument_out, "would change argument 'x'"),
        (_result_of_cond, "memory of an argument"),
        (_split_argument, "would change argument 'x'"),
        (_captured, "contents are needed"),
        (_captured_element, "Python number is needed"),
        (_captured_out, "existing array"),
        (_layout, "memory order"),
        (_through_layout, "memory order"),
        (_through_gaps, "memory order"),
        (_through_a_diagonal, "memory order"),
        (_in_its_argument, "writes to its argument"),
        (_row_at_a_maximum, "would not be seen"),
        (_through_such_a_row, "would not be seen"),
        (_such_a_row_of_an_argument, "would change argument 'x'"),
        (_such_a_row_in_a_loop, "would not be seen"),
        (_diagonal_of_einsum, "would not be seen"),
        (_through_einsum, "would not be seen"),
        (_written_below_a_diagonal, "would not be seen"),
        (_scalar, "NumPy scalar"),
    ],
)
def test_refusals_name_the_line_and_a_way_out(fn, message):
    """R1.24: what the caller would see, or the layout decide, is refused before anything runs."""
    x, outside = X.copy(), OUTSIDE.copy()
    with pytest.raises(TraceError, match=message) as info:
        pf.jit(fn)(x)
    code = fn.__code__
    assert info.value.hint and info.value.loc.file == __file__
    assert code.co_firstlineno < info.value.loc.line <= code.co_firstlineno + 7
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(OUTSIDE, outside)


def rows_that_are_used_in_time(x):
    y = x * 1
    i = y[:, 0].argmax()
    row, kept, element = y[i] * 2, y[i].copy(), y[i, 1]
    taken, picked, listed = np.take(y, i, axis=0), y[np.array(2)], y[i, [0, 1]]
    view = y[i.item()]
    total = 0
    for k in range(4):
        total = total + y[y[:, 1].argmin()]
        y[k] = -k
    return row, kept, element, taken, picked, listed, view, total


def views_by_einsum(x):
    y = x * 1
    turned, same, summed = np.einsum("ij->ji", y), np.einsum("ij->ij", y), np.einsum("ij->j", y)
    turned[0] = 7
    same += 1
    return y, turned, summed


@pytest.mark.parametrize("fn", [rows_that_are_used_in_time, views_by_einsum])
def test_copies_of_what_numpy_views_do_where_no_write_tells_them_apart(fn):
    """R1.24: only what is used after a write must share memory as in NumPy."""
    counters = check(fn, X).state().counters
    assert (counters["traces"], counters["compile_failures"]) == (1, 0)


def test_dtypes_are_numpys():
    """In-place arithmetic casts as a ufunc with ``out=`` does, assignment as it likes."""
    ints = np.arange(6)

    def halve(x):
        y = x * 1
        y /= 2
        return y

    with pytest.raises(DTypeError, match="same_kind"):
        pf.jit(halve)(ints)

    def assign(x):
        y = x * 1
        y[1:] = 2.75
        y[:2] = x[:2] / 2
        return y

    def narrow(x):
        y = np.zeros(x.shape, np.float32)
        y += x
        np.multiply(y, x, out=y)
        return y

    check(assign, ints)
    check(narrow, X)


def test_dtypes_are_refused_before_shapes():
    """Who catches a TypeError gets one where neither can be stored, as in NumPy."""

    def f(x):
        mask = x > 0
        with contextlib.suppress(TypeError):
            mask[1:1] += x
        return mask

    np.testing.assert_array_equal(pf.jit(f)(X), f(X))


def _of_no_axes(way):
    def f(x):
        base = x * 1.0
        same = part = way(base)
        part *= 3
        part += base.sum()
        return base, part, same

    return f


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "way",
    [
        lambda a: a.squeeze(),
        lambda a: a[0].reshape(()),
        lambda a: np.squeeze(a).T,
        lambda a: a[0, 0],
        lambda a: a.T.squeeze().reshape(()),
        lambda a: a[0, 0, ...],
        lambda a: a[..., -1].squeeze(),
        lambda a: a[:, 0][..., -1],
        lambda a: np.where(a > 0, a, 1.0).squeeze(),
        lambda a: np.where(a[0, 0] > 0, a[0, 0], 1.0),
        lambda a: np.array(a.sum()),
        lambda a: np.asarray(a.sum()),
        lambda a: np.copy(a.sum()),
        lambda a: a.sum().copy(),
        lambda a: a.sum()[...],
        lambda a: a.sum()[...][()],
        lambda a: np.where(a[0, 0] > 0, 2, 1).astype("f4"),
        lambda a: a.sum().astype("f4"),
        lambda a: np.tensordot(a, a),
        lambda a: np.vdot(a, a),
        lambda a: np.inner(a[0], a[0]),
    ],
)
def test_arrays_of_no_axes_share_memory_and_numbers_do_not(way):
    """In-place operators write to a view that has lost its axes, and rebind what is a number."""
    f, x = _of_no_axes(way), np.array([[3.0]])
    compiled = pf.jit(f, background=False)
    for _ in range(3):
        for got, want in zip(compiled(x), f(x), strict=True):
            np.testing.assert_array_equal(got, want)
    assert compiled.state().counters["kernel_launches"] >= 1


@pytest.mark.parametrize(
    "way", [lambda v: v[:1, 0], lambda v: v[:1, :1], lambda v: [[2.0]], lambda v: [v[0, 0]], lambda v: 3]
)
@pytest.mark.parametrize("key", [(0, 0, ...), (..., 0), (0,), (slice(1),), (0, 0)], ids=str)
def test_what_an_element_takes_a_view_of_no_axes_need_not(key, way):
    """Leading axes of size 1 are dropped of arrays, not of lists; of views, not of elements."""

    def f(x):
        v = x + 0
        v[key] = way(v)
        return v

    try:
        wanted = f(X)
    except ValueError as error:
        with pytest.raises(ValueError) as caught:
            pf.jit(f)(X)
        assert str(error) in str(caught.value)
    else:
        np.testing.assert_array_equal(pf.jit(f)(X), wanted)


def test_an_index_out_of_range_beside_an_ellipsis():
    f = pf.jit(lambda x, i: x[..., i] * 2, background=False)
    assert [f(X[0], i) for i in (0, -1, 1)] == [2 * X[0, i] for i in (0, -1, 1)]
    with pytest.raises(IndexError, match=f"index 9 is out of bounds for axis 0 with size {len(X[0])}"):
        f(X[0], 9)


@pytest.mark.parametrize("number", [1.5, 3, -7.9, True])
def test_constants_of_another_dtype_are_stored_by_kernels(number):
    def f(x):
        y = x * 2
        y[...] = number
        z = x + 1
        z[1:] = number
        return y, z

    check(f, np.arange(4, dtype=np.int32))


def test_the_only_piece_of_a_split_is_all_of_it():
    def f(x):
        y = np.sqrt(x)
        piece = np.split(y, 1)[0]
        seen = np.expand_dims(piece, -2)
        piece.fill(3)
        return y, seen

    assert check(f, X).state().counters["refusals"] == 0


@pytest.mark.parametrize("dtype", ["i8", "i1", "u2"])
def test_floats_that_fit_no_integer_raise_in_kernels_too(dtype):
    """NumPy raises for a number that is stored as an integer and does not fit, and for NaN."""

    def f(x, k):
        v = np.zeros(x.shape[0], dtype)
        v[:] = k
        return v + x.astype(dtype)

    compiled, x = pf.jit(f, background=False), np.ones(3)
    for k in (2.5, 3.5, 1e30, float("nan"), float("inf"), -0.9):
        try:
            want = f(x, k)
        except (OverflowError, ValueError) as error:
            with pytest.raises(type(error)):
                compiled(x, k)
        else:
            np.testing.assert_array_equal(compiled(x, k), want)
    counters = compiled.state().counters
    assert (counters["kernel_launches"], counters["voided_launches"]) == (5, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("given", "dtype", "voided"),
    [
        ("f8", "i8", 3),
        ("f8", "i1", 4),
        ("f4", "u2", 0),
        ("i8", "i4", 2),
        ("i8", "u4", 0),
        ("u8", "i8", 1),
        ("bfloat16", "i8", 0),
        ("bfloat16", "i1", 4),
        ("bfloat16", "u2", 0),
    ],
)
def test_computed_numbers_are_stored_in_integers_by_kernels(given, dtype, voided):
    """NumPy raises for its scalars that do not fit signed integers; unsigned ones wrap."""

    def f(x):
        v = np.zeros(x.shape[0], dtype)
        v[...] = x.max()
        return v

    compiled = pf.jit(f, background=False)
    numbers = {
        "f": [2.5, 3.5, 1e3, 1e30, np.inf, np.nan, 1.0],
        "b": [2.5, 3.5, 1e3, 1e30, np.inf, np.nan, 1.0],
        "i": [3, 4, 2**40, -(2**31) - 1, -(2**31)],
        "u": [3, 4, 2**63, 2**63 - 1],
    }
    with np.errstate(invalid="ignore"):
        for number in numbers[given[0]]:
            x = np.full(3, number, given)
            try:
                want = f(x)
            except (OverflowError, ValueError) as error:
                with pytest.raises(type(error)):
                    compiled(x)
            else:
                np.testing.assert_array_equal(compiled(x), want)
    counters = compiled.state().counters
    assert counters["voided_launches"] == voided
    assert counters["kernel_launches"] == len(numbers[given[0]]) - 1


@pytest.mark.parametrize(
    "way",
    [lambda v, n: np.split(v, n)[0], lambda v, n: v.reshape(n, -1), lambda v, n: np.reshape(v, (n, -1))],
    ids=["split", "reshape", "np.reshape"],
)
def test_views_of_arrays_that_the_function_has_made_see_later_writes_or_are_refused(way):
    def late(x):
        made = np.arange(4.0)
        view = way(made, x.shape[0])
        made[0] = 9
        return view + 0

    def early(x):
        made = np.arange(4.0)
        made[0] = 9
        return way(made, x.shape[0]) * x[0]

    x = np.ones((2, 1))
    np.testing.assert_array_equal(pf.jit(early)(x), early(x))
    try:
        found = pf.jit(late)(x)
    except TraceError:
        return
    np.testing.assert_array_equal(found, late(x))


@pytest.mark.parametrize("number", [300.5, -1.5, float("inf"), float("nan"), 128.0])
def test_constants_take_computed_numbers_that_may_not_fit(number):
    """C code of an array of NumPy's own would ask for an int, where NumPy casts."""

    def written(k):
        v = np.arange(4, dtype="u1")
        v[1] = k * np.float64(1)
        return v

    f = pf.jit(written, background=False)
    for k in (3.5, 127.0):
        np.testing.assert_array_equal(f(k), written(k))
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            np.testing.assert_array_equal(f(number), written(number))

    def asked(k):
        found = [0]
        found[0] = int(k * np.float64(1))
        return np.full(2, found[0])

    np.testing.assert_array_equal(pf.jit(asked, background=False)(300.5), [300, 300])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_numbers_of_arrays_are_cast_where_a_mask_holds(dtype, shape):
    """NumPy converts them as numbers only where a whole array is assigned to."""

    def somewhere(x, y):
        v = x + 1
        v[v > 5] = y.max()
        return v

    def whole(x, y):
        v = x + 1
        v[...] = y.max()
        return v

    x = np.ones(shape, dtype)
    with np.errstate(invalid="ignore"):
        for number in (np.nan, 300.0, -1e30, 6.5):
            compiled = pf.jit(somewhere, background=False)
            for call in range(3):
                given = x if call < 2 or number != 6.5 else x * 7
                y = np.full(2, number)
                np.testing.assert_array_equal(compiled(given, y), somewhere(given, y))
        if dtype != "u1":
            for f in (whole, pf.jit(whole, background=False)):
                with pytest.raises(ValueError, match="NaN"):
                    f(x, np.full(2, np.nan))
    with pytest.raises(OverflowError):
        pf.jit(lambda x: _assigned(x.copy(), x > 5, 2**70))(x)


def _assigned(v, mask, value):
    v[mask] = value
    return v


@pytest.mark.parametrize("key", [..., slice(None), 0])
def test_scalars_out_of_the_range_of_integers_raise(key):
    def f(k):
        made = np.zeros(3, np.int64)
        made[key] = np.float32(k)
        return made

    jitted = pf.jit(f, unsupported="python")
    for k in (0.5, 1e30, -2.0):
        for function in (f, jitted):
            if k == 1e30:
                with pytest.raises(OverflowError):
                    function(k)
            else:
                np.testing.assert_array_equal(function(k), f(k))
