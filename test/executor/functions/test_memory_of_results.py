"""Memory and kinds of results are NumPy's: what shares memory, flags, byte order, scalars."""

import numpy as np
import profuse as pf
import pytest
from memory_of_results import memory


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def plain():
    return np.arange(1.0, 13).reshape(3, 4)


LAYOUTS = {
    "C": plain,
    "F": lambda: np.asfortranarray(plain()),
    "columns": lambda: np.repeat(plain(), 2, axis=1)[:, ::2],
    "backwards": lambda: plain()[::-1],
    "one row": lambda: plain()[1:2],
    "one column": lambda: plain()[:, 1:2],
    "foreign": lambda: plain().astype(">f8"),
    "read-only": lambda: np.broadcast_to(plain()[0], (3, 4)),
}


def pair(y):
    return y, y[1:]


def written(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    v = y[:, 1:]
    v += 1
    return v, y


def stacked(x):
    y = [row * 2 for row in x]
    return y[0], np.stack(y)


# name -> function; those in PYTHONS are Python's for some layouts.
FUNCTIONS = {
    "product": lambda x: x * 2,
    "turned": lambda x: (x * 2).T,
    "of turned": lambda x: np.tanh(x.T) * 2,
    "columns": lambda x: (x * 2)[:, 1:],
    "every second row": lambda x: (x + 1)[::2],
    "rows": lambda x: (x + 1)[1:],
    "row": lambda x: (x * 2)[0],
    "column": lambda x: (x * 2)[:, 0],
    "element with an axis": lambda x: (x[0, None, 0], x[None, None, -1, 0], x[-1, -1, None]),
    "element at an index with an axis": lambda x, i=1: (x[None, np.int64(i), 0], x[0, x[0].argmax(), None], x.sum()),
    "element of a product with an axis": lambda x: (lambda y: (y[0, None, 0], y))(x * 2),
    "mirrored": lambda x: np.flip(x + 1, 1),
    "rotated": lambda x: np.rot90(x * 2),
    "repeated": lambda x: np.broadcast_to(x + 1, (2, *x.shape)),
    "repeated argument": lambda x: (np.broadcast_to(x, (2, *x.shape)), x.sum()),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x * 2, 1, axis=0),
    "array and rows": lambda x: pair(x * 2),
    "array and turned": lambda x: (lambda y: {"y": y, "t": y.T})(x * 2),
    "one array twice": lambda x: (lambda y: [y, y])(x - 1),
    "parts that overlap": lambda x: (lambda y: (y[:, 1:], y[:, :-1]))(x * 2),
    "parts": lambda x: np.split(np.concatenate([x, x], 1), 2, axis=1),
    "reshaped": lambda x: (x.T * 2).reshape(-1),
    "raveled": lambda x: (x.ravel(), x.sum()),
    "raveled in Fortran order": lambda x: (x.ravel("F"), x.sum()),
    "flattened": lambda x: (x.flatten(), x * 2),
    "diagonal": lambda x: (np.diagonal(x), np.exp(x)),
    "diag": lambda x: np.diag(x * 2, 1),
    "diagonal of einsum": lambda x: (np.einsum("ii->i", x[:1, :1]), x.sum()),
    "transposed by einsum": lambda x: (np.einsum("ij->ji", x), x.sum()),
    "product by einsum": lambda x: np.einsum("ij,kj->ki", x, x),
    "contiguous": lambda x: (np.ascontiguousarray(x), x.mean(axis=0)),
    "in Fortran order": lambda x: (np.asfortranarray(x), x.mean(axis=0)),
    "array in C order": lambda x: (np.asarray(x.T, order="C"), x.sum()),
    "array in F order": lambda x: (np.asarray(x, order="F"), x.sum()),
    "array": lambda x: (np.asarray(x), np.asanyarray(x), x.sum()),
    "copies": lambda x: (np.array(x), x.copy(), np.copy(x), x.copy("K")),
    "copies in an order": lambda x: (np.array(x, order="F"), np.copy(x, order="C"), x.copy("F")),
    "casts": lambda x: (x.astype("f4"), x.astype("f4", order="F"), x.astype(x.dtype)),
    "cast of a sum": lambda x: (x + 1).astype("f8", copy=False),
    "no cast": lambda x: (x.astype("f8", copy=False), x.sum()),
    "squeezed": lambda x: (x[:1].squeeze(), x * 2),
    "axes moved": lambda x: (np.swapaxes(x, 0, 1), np.moveaxis(x, 0, 1), x.sum()),
    "more axes": lambda x: (np.atleast_3d(x), x[None], np.expand_dims(x, 1), x.sum()),
    "parts of numbers": lambda x: (x.real, x.conj(), x.sum()),
    "parts of complex numbers": lambda x: (lambda z: (z.real, z.imag))(x * 1j),
    "views": lambda x: (x.view(), x.view(np.int64), x.sum()),
    "picked rows": lambda x: (x[[0, 0]], x[:, [0, 0]], x.sum()),
    "picked elements": lambda x: (x[x > 3], np.take(x, [0], axis=1)),
    "row at the maximum": lambda x: (x[x.sum(axis=1).argmax()], x * 2),
    "zeros": lambda x: (np.zeros_like(x), np.empty_like(x), np.zeros(x.shape)),
    "full": lambda x: (np.full_like(x, 2, order="C"), np.ones_like(x) * x),
    "sums": lambda x: (x.sum(axis=0), x.sum(axis=1, keepdims=True), x.max()),
    "scalars": lambda x: (np.asarray(x.max()), x[0, 0], (x * 2)[0, 0, ...]),
    "joined": lambda x: (np.concatenate([x, x]), np.hstack([x, x]), np.stack([x, x])),
    "chosen": lambda x: (np.where(x > 3, x, 0), np.clip(x, 0, 5), np.isnan(x)),
    "scans": lambda x: (np.cumsum(x, axis=0), np.cumsum(x), np.diff(x, axis=0)),
    "products": lambda x: (x @ x.T, np.dot(x.T, x), np.outer(x[0], x[0])),
    "with a row": lambda x: (x + x[0], x * x[:, :1], (x - x.mean(0)) / x.std(0)),
    "triangle": lambda x: (np.tril(x), np.triu(x.T * 2)),
    "rolled": lambda x: np.roll(x, 1, axis=0),
    "sorted": lambda x: np.sort(x, axis=0),
    "padded": lambda x: np.pad(x, 1),
    "trimmed": lambda x: (np.trim_zeros(x[0]), x.sum()),
    "rows of the argument": lambda x: (list(x), x.sum()),
    "written": written,
    "stacked": stacked,
    "nan": lambda x: np.nan_to_num(x),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_python(name, layout):
    function, make = FUNCTIONS[name], LAYOUTS[layout]
    f = pf.jit(function)
    for _ in range(4):
        ours, theirs = make(), make()
        with np.errstate(all="ignore"):
            found, expected = f(ours), function(theirs)
        assert memory(found, ours) == memory(expected, theirs)


# Functions with a graph, which serves arrays in C order however they are stored otherwise.
NATIVE = (
    "product",
    "columns",
    "row",
    "mirrored",
    "repeated",
    "windows",
    "array and rows",
    "copies",
    "parts that overlap",
    "diagonal",
    "diag",
    "products",
    "casts",
    "with a row",
    "joined",
    "scans",
    "picked rows",
    "row at the maximum",
    "raveled",
    "contiguous",
    "in Fortran order",
    "trimmed",
)
# A copy is computed that only some layouts need, by an op that runs in Python.
IN_PYTHON = ("raveled", "contiguous", "in Fortran order", "trimmed", "row at the maximum")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NATIVE)
def test_these_results_come_of_graphs(name):
    f = pf.jit(FUNCTIONS[name])
    for _ in range(5):
        f(plain())
    counters = f.state().counters
    assert counters["python_calls"] == 0 and counters["traces"] == 1
    assert f.state().emitted or name in IN_PYTHON


def test_one_graph_serves_all_layouts():
    f = pf.jit(lambda x: (x * 2 + 1, np.tanh(x)))
    for _ in range(3):
        for make in (LAYOUTS["C"], LAYOUTS["F"], LAYOUTS["columns"]):
            x = make()
            assert memory(f(x), x) == memory((x * 2 + 1, np.tanh(x)), x)
    assert f.state().counters["traces"] == 1 and f.state().counters["python_calls"] == 0


def test_an_order_that_is_not_known_is_python_s():
    f = pf.jit(lambda x: np.pad(x * 2, 1))
    for make in (LAYOUTS["C"], LAYOUTS["F"]) * 3:
        x = make()
        assert memory(f(x), x) == memory(np.pad(x * 2, 1), x)
    assert f.state().counters["python_calls"] == 3
    assert "in which order a result lies then is not known" in f.explain()


def test_what_keeps_a_foreign_byte_order_is_python_s():
    keeps, native = pf.jit(lambda x: x.copy()), pf.jit(lambda x: x + 0)
    for k in range(6):
        x = np.arange(3.0).astype(">f8" if k % 2 else "<f8")
        assert keeps(x).dtype.str == x.dtype.str and native(x).dtype.str == "<f8"
    assert keeps.state().counters["python_calls"] == 3
    assert native.state().counters["python_calls"] == 0
    assert "foreign byte order" in keeps.explain()


@pytest.mark.parametrize("order", ["K", "A"])
def test_elements_in_the_order_of_memory_are_python_s(order):
    function = lambda x: (x.T.flatten(order), (x.T + 0).ravel(order), x.sum())  # noqa: E731
    f = pf.jit(function)
    for make in (plain, LAYOUTS["F"], LAYOUTS["columns"]):
        for a, b in zip(f(make()), function(make()), strict=True):
            np.testing.assert_array_equal(a, b)
    assert f.state().counters["python_calls"] == 3
    vector = pf.jit(lambda x: x.ravel(order) * 2)
    for _ in range(3):
        np.testing.assert_array_equal(vector(np.arange(3.0)), np.arange(3.0) * 2)
    assert vector.state().counters["python_calls"] == 0


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
def test_what_is_made_of_arrays_put_in_an_order_lies_as_in_python(make):
    function = lambda x: make(x.T) + 1  # noqa: E731
    f = pf.jit(function)
    for layout in (plain, LAYOUTS["F"], plain, LAYOUTS["F"], LAYOUTS["columns"]):
        assert memory(f(layout()), None) == memory(function(layout()), None)
    assert f.state().counters["python_calls"] == 0


def test_writes_through_results_are_seen():
    f = pf.jit(lambda x: pair(x * 2))
    for _ in range(4):
        y, v = f(np.arange(3.0))
        v[0] = 50
        assert y.tolist() == [0, 50, 4]


def test_equal_results_are_two_arrays():
    def function(x):
        a, b = np.tanh(x), np.tanh(x)
        return a, b, np.arange(len(x)), np.arange(len(x)), np.identity(2), np.identity(2), a

    f = pf.jit(function)
    for _ in range(5):
        x = np.arange(4.0)
        assert memory(f(x), x) == memory(function(x), x)
    assert f.state().counters["python_calls"] == 0


def test_axes_that_have_one_element_for_a_while():
    f = pf.jit(lambda x, y: ((x > 1.5).T, np.triu(y).T))
    for shape, n in (((4, 1), 1), ((3, 2), 4), ((4, 1), 1), ((3, 2), 4), ((1, 3), 2), ((3, 2), 1)):
        x, y = np.ones(shape), np.ones(n)
        assert memory(f(x, y)) == memory(((x > 1.5).T, np.triu(y).T))


def test_coordinates_are_parts_of_one_array():
    f = pf.jit(lambda x: np.nonzero(x > 3))
    for _ in range(3):
        assert memory(f(plain())) == memory(np.nonzero(plain() > 3))
    assert f.state().counters["python_calls"] == 3


def test_a_copy_of_what_is_written_later_has_the_contents_of_its_time():
    def function(x):
        flat = np.ascontiguousarray(x)
        total = flat.sum()
        x += 1
        return flat, total

    f = pf.jit(function)
    for make in (plain, LAYOUTS["F"], LAYOUTS["columns"], plain):
        ours, theirs = make(), make()
        (flat, total), (wanted, expected) = f(ours), function(theirs)
        assert total == expected and memory(flat, ours) == memory(wanted, theirs)
        np.testing.assert_array_equal(flat, wanted)


class Layer:
    def __init__(self):
        self.whole = self.rest = np.zeros(3)

    def set(self, x):
        y = x * 2
        self.whole = y
        self.rest = y[1:]
        return y.T


def test_attributes_share_memory():
    layer, f = Layer(), pf.jit(Layer.set)
    for k in range(4):
        found = f(layer, np.full((3, 2), float(k)))
        layer.rest[0] = 50
        assert layer.whole[1].tolist() == [50, 50] and found[:, 1].tolist() == [50, 50]
    assert f.state().counters["python_calls"] == 0


def test_scalars_are_values():
    def function(x):
        s = x.max()
        w, e, b = s.reshape(-1), np.expand_dims(s, 0), np.broadcast_to(s, 2)
        w[0] = 99
        return s, w, e, b

    f = pf.jit(function)
    for _ in range(4):
        s, w, e, b = f(np.arange(3.0))
        assert type(s) is np.float64 and s == 2
        assert (w[0], e[0], b[1]) == (99, 2, 2) and not b.flags.writeable
    assert f.state().counters["python_calls"] == 4


@pytest.mark.parametrize("steps", [(0, 8), (8, 8)])
def test_arrays_that_overlap_themselves_are_python_s(steps):
    def function(x):
        x[0] = 9
        return x.sum()

    f = pf.jit(function)
    for _ in range(4):
        bases = np.arange(6.0), np.arange(6.0)
        windows = [np.lib.stride_tricks.as_strided(b, (4, 3), steps) for b in bases]
        assert f(windows[0]) == function(windows[1])
        assert bases[0].tolist() == bases[1].tolist()
    assert f.state().counters["python_calls"] == 4
    x = np.arange(24.0).reshape(4, 6)[:, ::2]
    f(x)
    assert x[0].tolist() == [9, 9, 9] and f.state().counters["python_calls"] == 4


def test_the_variable_of_a_loop_is_the_element_that_was_taken():
    def last(x, y):
        for k, (e, _) in enumerate(zip(x, y, strict=True)):
            x[::-1] = x * 2
            y[k] = e
        return e

    f = pf.jit(last)
    for _ in range(4):
        ours, theirs = ([np.arange(1.0, 41), np.ones(40)] for _ in range(2))
        assert f(*ours) == last(*theirs)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_strings_are_python_s():
    f = pf.jit(lambda s: s == "ab")
    words = np.array(["ab", "c"], np.dtypes.StringDType())
    for _ in range(3):
        assert f(words).tolist() == [True, False]
    assert f.state().counters["python_calls"] == 3


NUMBERS = {
    "clip": (lambda a: np.clip(2, a, None), np.arange(3, dtype=np.int32)),
    "clip of a number": (lambda a, n=2: np.clip(n, None, a), np.arange(3, dtype=np.int16)),
    "dot": (lambda a: np.dot(a, 2), np.arange(3, dtype=np.int8)),
    "zeros without a sign": (lambda a: np.dot(a, 1.5), np.array([-0.0, 0.0, 1.0])),
    "inner": (lambda a: np.inner(-2.5, a), np.array([-0.0, 0.0, 1.0])),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_dtypes_and_signs_of_numpy(name):
    function, x = NUMBERS[name]
    f = pf.jit(function)
    for _ in range(3):
        found, expected = f(x), function(x)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    assert f.state().counters["python_calls"] == 0


def test_initial_values_that_the_dtype_has_not():
    f = pf.jit(lambda a, n: np.sum(a, initial=n))
    a = np.arange(3, dtype=np.uint64)
    for n in (1, 1, -1, 1, -1):
        if n < 0:
            with pytest.raises(OverflowError):
                f(a, n)
        else:
            assert f(a, n) == 4


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exact_writes_into_any_layout(dtype):
    def backwards(x):
        w = x[::-1]
        np.exp(w, out=w)
        return w

    def forwards(x):
        y = np.empty(x.shape, x.dtype)
        np.exp(x, out=y)
        return y

    x = np.random.default_rng(3).normal(size=37).astype(dtype)
    with pf.knobs.override(exact=True):
        for function, calls in ((backwards, 3), (forwards, 0)):
            f = pf.jit(function)
            for _ in range(3):
                assert f(x.copy()).tobytes() == function(x.copy()).tobytes()
            assert f.state().counters["python_calls"] == calls
            told = "may depend on how that array lies in memory" in f.explain()
            assert told == bool(calls)
