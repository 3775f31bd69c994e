"""Arrays that a function closes over: any layout, changed in place between calls, reshaped."""

import numpy as np
import profuse as pf
import pytest
from dispatched import hits
from profuse.executor.settings.knobs import knobs

X = np.linspace(-1, 1, 12).reshape(3, 4)
CALLS = 10


def misaligned():
    array = np.zeros(8 * 12 + 1, np.uint8)[1:].view(np.float64).reshape(3, 4)
    return array, array


def packed():
    records = np.zeros((3, 4), np.dtype([("tag", "u1"), ("f", "f8")]))
    return records["f"], records["f"]


def swapped_field():
    records = np.zeros((3, 4), np.dtype([("f", ">f8"), ("tag", "u1")]))
    return records["f"], records["f"]


def read_only():
    base = np.zeros((3, 4))
    array = base.view()
    array.flags.writeable = False
    return array, base


def broadcast():
    base = np.zeros((1, 4))
    return np.broadcast_to(base, (3, 4)), base


def reversed_rows():
    base = np.zeros((3, 4))
    return base[::-1, ::-1], base


def columns():
    base = np.zeros((4, 9))
    return base.T[::3], base


def big_endian():
    array = np.zeros((3, 4), ">f8")
    return array, array


def rank_zero():
    array = np.zeros(())
    return array, array


def swapped_rank_zero():
    array = np.zeros((), ">f8")
    return array, array


def empty():
    array = np.zeros((0, 1, 4))
    return array, array


def misaligned_empty():
    array = np.zeros(9, np.uint8)[1:1].view(np.float64).reshape(0, 1, 4)
    return array, array


COPIED = (misaligned, packed, swapped_field, big_endian, swapped_rank_zero)
LAYOUTS = (*COPIED, read_only, broadcast, reversed_rows, columns, rank_zero, empty, misaligned_empty)
STRATEGIES = {"static": [("static", 2)], "dynamic": [("dynamic", 2)], "keyed": None}


def mixed(x, w):
    return np.tanh(x) * w + 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("make", LAYOUTS, ids=lambda make: make.__name__)
def test_r1_39_layouts_and_in_place_changes(make, strategy, request):
    """Values are those of the call, one compile serves all calls, and copies are counted."""
    if strategy == "keyed":
        request.getfixturevalue("profiling_off")
    w, written = make()
    f = pf.jit(lambda x: mixed(x, w), strategy=STRATEGIES[strategy])
    for k in range(CALLS):
        written[...] = np.arange(written.size).reshape(written.shape) + k
        np.testing.assert_allclose(f(X), mixed(X, w), rtol=1e-12)
    counters = f.state().counters
    assert counters["compiles"] == 1
    assert counters["traces"] == 1
    # Kernels for all sizes are for sizes of at least 1.
    misses = CALLS if strategy == "keyed" and not w.size else 0
    assert (counters["guard_misses"], counters["fallback_calls"]) == (misses, misses)
    launches = CALLS if strategy == "keyed" else CALLS - 1
    assert counters["kernel_launches"] == launches - misses
    copied = make in COPIED
    assert counters["input_copies"] == (CALLS if copied else 0)
    reason = "captured array 0 is copied at every call: its "
    assert sum(reason in text for text in f.state().reasons) == copied
    assert (reason in f.explain()) == copied
    if strategy != "keyed":
        assert f.state().emitted != copied
        assert copied or hits(f) >= CALLS - 3


def test_memory_maps_are_captured_and_read_in_emitted_code(tmp_path):
    w = np.memmap(tmp_path / "w", np.float64, "w+", shape=(3, 4))
    f = pf.jit(lambda x: mixed(x, w))
    for k in range(CALLS):
        w[...] = k
        np.testing.assert_allclose(f(X), mixed(X, np.asarray(w)), rtol=1e-12)
    assert f.state().counters["compiles"] == 1
    assert hits(f) >= CALLS - 3


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("native", [True, False])
def test_captured_arrays_that_change_shape_or_dtype(native, strategy):
    """A graph holds for the shape that code may have read while it was traced."""
    w = np.arange(12.0)

    def rows(x):
        return (x * w).sum(axis=-1) * len(w)

    with knobs.override(native_dispatch=native):
        f = pf.jit(rows, strategy=[(strategy, 2)])
        for shape in ((12,), (3, 4), (12,), (6, 2), (3, 4)):
            w.shape = shape
            given = np.ones(shape[-1])
            for _ in range(4):
                np.testing.assert_allclose(f(given), rows(given), rtol=1e-12)
        counters = f.state().counters
        assert (counters["traces"], counters["compiles"]) == (3, 3)
        w.resize((2, 4), refcheck=False)
        for k in range(4):
            w[...] = k
            np.testing.assert_allclose(f(given), rows(given), rtol=1e-12)
        assert f.state().counters["traces"] == 4
        assert f.state().counters["fallback_calls"] == 0


def test_a_captured_array_that_becomes_unreadable_leaves_emitted_code():
    """Alignment and byte order are tested at each call, not once."""
    memory = np.zeros(8 * 12 + 8, np.uint8)
    w = memory[:96].view(np.float64).reshape(3, 4)
    f = pf.jit(lambda x: mixed(x, w))
    for _ in range(4):
        f(X)
    assert hits(f) > 0
    w[...] = 3
    w.dtype = ">f8"  # the same bytes, read otherwise
    for k in range(4):
        w[...] = k
        np.testing.assert_allclose(f(X), mixed(X, w), rtol=1e-12)
    counters = f.state().counters
    assert counters["traces"] == counters["compiles"] == 2
    assert counters["input_copies"] == 4


def test_into_and_captured_arrays_that_are_copied():
    w, _ = misaligned()
    w[...] = np.arange(12).reshape(3, 4)
    f = pf.jit(lambda x: mixed(x, w))
    for _ in range(4):
        want = mixed(X, w)
        f.into(w, X)
        np.testing.assert_allclose(w, want, rtol=1e-12)
    assert f.state().counters["compiles"] == 1


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("make", [lambda: np.matrix([[1.0]]), lambda: np.ma.masked_array([1.0])])
def test_arrays_with_operators_of_their_own_are_no_captured_arrays_either(make):
    w = make()
    with pytest.raises(pf.ArgumentError, match=r"an array that the function uses: \w+ arrays"):
        pf.jit(lambda x: x * w)(np.ones(1))
