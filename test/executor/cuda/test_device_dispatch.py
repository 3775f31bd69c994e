"""Calls on device arrays in emitted code: the same values, counts and errors as Python's."""

import gc
import random
import sys
from collections import Counter
from dataclasses import replace

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
import stand_ins
from dispatched import is_native
from emulated import Fault
from every_case import EVERY_CASE
from profuse.dialect.errors import ArgumentError
from profuse.dialect.guards.checks import generalize
from profuse.dialect.guards.mismatch import check_types, fits_relaxed
from profuse.dialect.ir.gradient_mode import gradients
from profuse.dialect.ir.types import type_of
from profuse.executor.cuda.exchange import libraries
from profuse.executor.cuda.exchange.arrays import as_leaf
from profuse.executor.cuda.launching import device_plans
from profuse.executor.cuda.nvidia.driver_api import DriverError, NoEpilogueError
from profuse.executor.dispatch.arguments import flat_arguments
from profuse.executor.dispatch.conditions.guards import guard_tests
from profuse.executor.dispatch.leaf_spec import Leaf
from profuse.executor.dispatch.loaded_dispatcher import make_entry
from profuse.executor.settings.knobs import knobs
from support import counts, host, modulus
from test_device_calls import CASES
from test_device_graphs import LONG, normalised
from test_device_products import PRODUCTS
from test_dispatch_guards import plain_settings
from test_dispatch_relaxed import random_layout, relaxed_type
from torch_calls import get, tensor, warmed

pytestmark = pytest.mark.usefixtures("torch")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_counts_are_those_of_python(device, name, strategy):
    fn, shapes = CASES[name]
    args = [host(*shape) for shape in shapes]
    given = [tensor(a) for a in args]
    found = {}
    for native in (True, False):
        with knobs.override(native_dispatch=native):
            f = pf.jit(fn, strategy=[(strategy, 1)])
            for _ in range(6):
                np.testing.assert_allclose(get(f(*given)), fn(*args), rtol=2e-5, atol=2e-6)
            assert f.state().emitted is native, f.explain()
            counters = f.state().counters
            found[native] = {k: n for k, n in counters.items() if k != "graph_replays"}
    assert found[True] == found[False]
    assert device.calls["launched directly"] >= 3
    assert not device.failures


def test_a_call_launches_on_the_current_stream_and_does_nothing_else(device):
    x, b = tensor(host(4, 8)), tensor(host(8))
    f = warmed(lambda x, b: np.tanh(x + b) * 0.5, x, b)
    device.log.clear()
    calls = device.calls.copy()
    f(x, b)
    started = [entry for entry in device.log if entry[0].startswith("launch")]
    assert [stream for _, stream in started] == [stand_ins.STREAM]
    grown = {k: n - calls[k] for k, n in device.calls.items() if n != calls[k]}
    result = {"allocate": 1, "to_device": 1, "free": 1}  # made by the stand-in, and dropped
    assert grown == {"launch": 1, "launched directly": 1, **result}


def test_sizes_that_guards_do_not_hold_for_are_specialised_for(device):
    """R1.39: a miss is Python's, and a leaf of its own afterwards."""
    f = pf.jit(lambda x: np.exp(x) * 2, strategy=[("static", 1), ("dynamic", 1)])
    for rows in (4, 4, 5, 5, 5, 6, 7, 4):
        x = host(rows, 8)
        np.testing.assert_allclose(get(f(tensor(x))), np.exp(x) * 2, rtol=1e-5)
    assert counts(f, "compiles", "profiled_runs", "kernel_launches") == [2, 2, 6]
    assert is_native(f, tensor(host(9, 8))) and is_native(f, tensor(host(4, 8)))
    static, dynamic = f.state().specializations
    assert (static.behavior, static.hits, dynamic.hits) == ("static", 3, 5)
    assert "cuda:0" in f.explain()


def test_what_is_no_plain_tensor_is_left_to_python(device):
    x = host(4, 8)
    f = warmed(lambda x: x * 2 + 1, tensor(x))
    assert is_native(f, tensor(x))
    device.devices = 2
    negated = tensor(-x)
    negated.negated = True
    for given in (tensor(x.T.copy()), negated, tensor(x.astype(np.float64)), tensor(x, 1)):
        assert not is_native(f, given)
    np.testing.assert_allclose(get(f(negated)), x * 2 + 1, rtol=1e-6)
    learning = tensor(x)
    learning.requires_grad = True
    with pytest.raises(ArgumentError, match="requires gradients"):
        f(learning)
    with gradients(False):  # R1.39: then nothing does, and Python's guard holds
        before = f.state().counters
        assert not is_native(f, learning)
        np.testing.assert_allclose(get(f(learning)), x * 2 + 1, rtol=1e-6)
        after = f.state().counters
        assert after["guard_hits"] - before["guard_hits"] == 2
        assert after["guard_misses"] == before["guard_misses"]
    with pytest.raises(ArgumentError, match="in the host's memory"):
        f(stand_ins.Tensor(x, cuda=False))
    np.testing.assert_array_equal(f(x), x * 2 + 1)  # a host array: a graph of its own


def test_views_are_read_where_they_are(device):
    x = host(6, 4)
    held = xp.array(x)
    for view, expected in ((held.T, x.T), (held[::2], x[::2])):
        given = stand_ins.Tensor(view)
        f = warmed(lambda x: np.exp(x) * 2, given)
        assert is_native(f, given)
        assert not is_native(f, tensor(expected.copy()))  # of the same shape, contiguous
        np.testing.assert_allclose(get(f(given)), np.exp(expected) * 2, rtol=1e-5)


def test_kernels_are_chosen_by_alignment(device):
    """The same specialisation, with vectors of 16 bytes and without."""
    x = host(4096 + 1)
    held = xp.array(x)
    aligned, odd = stand_ins.Tensor(held[0:4096]), stand_ins.Tensor(held[1:4097])
    f = warmed(lambda x: x * 2 + 1, aligned)
    seen = []
    for given, expected in ((aligned, x[:4096]), (odd, x[1:])):
        device.log.clear()
        assert is_native(f, given)
        seen += device.launched
        np.testing.assert_allclose(get(f(given)), expected * 2 + 1, rtol=1e-6)
    assert len(set(seen)) == 2
    assert not device.failures


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_started_by_python(device, name, strategy):
    """With what comes before and after them in emitted code, and counts as ever."""
    fn, left, right = PRODUCTS[name]
    args = host(*left), host(*right)
    found = {}
    for native in (True, False):
        with knobs.override(native_dispatch=native):
            f = pf.jit(fn, strategy=[(strategy, 1)])
            for _ in range(5):
                given = [tensor(a) for a in args]
                np.testing.assert_allclose(get(f(*given)), fn(*args), rtol=1e-4, atol=1e-5)
            assert f.state().emitted is native, f.explain()
            counters = f.state().counters
            found[native] = {k: n for k, n in counters.items() if k != "graph_replays"}
    assert found[True] == found[False]
    # A product over no elements is a fill, and so no call of the library.
    assert found[True]["library_calls"] >= (4 if fn(*args).size and args[0].size else 0)


def test_a_product_that_fails_is_pythons(device):
    a, b, c = host(4, 8), host(8, 3), host(3)
    f = warmed(lambda a, b, c: a @ b + c, tensor(a), tensor(b), tensor(c))
    held, given = device.held, [tensor(x) for x in (a, b, c)]
    for error, fallbacks, misses in ((NoEpilogueError("none"), 0, 1), (DriverError("x"), 1, 0)):
        first = device.calls["product"] + 1
        device.faults["product"] = Fault(error, first, 2)
        names = ("device_fallbacks", "epilogue_misses")
        before = counts(f, *names)
        np.testing.assert_allclose(get(f(*given)), a @ b + c, rtol=1e-5)
        after = counts(f, *names)
        assert [n - m for n, m in zip(after, before, strict=True)] == [fallbacks, misses]
    device.faults.clear()
    del given, error  # which knows the frames that it has passed
    gc.collect()
    assert device.held == held


def test_numbers_are_arguments(device):
    x = host(30)
    f = warmed(lambda x, k: x * k + 1, tensor(x), 2.5)
    assert is_native(f, tensor(x), -1.5)
    np.testing.assert_allclose(get(f(tensor(x), -1.5)), x * np.float32(-1.5) + 1, rtol=1e-6)
    i = np.arange(6)
    f = warmed(lambda x, k: x * k + 1, tensor(i), 3)
    assert is_native(f, tensor(i), 4)
    np.testing.assert_array_equal(get(f(tensor(i), 4)), i * 4 + 1)
    with pytest.raises(Exception) as native:
        f(tensor(i), 2**70)
    with knobs.override(native_dispatch=False):
        g = pf.jit(lambda x, k: x * k + 1)
        for k in (3, 3):
            g(tensor(i), k)
        with pytest.raises(type(native.value)):
            g(tensor(i), 2**70)


def test_kernels_hand_each_other_memory_that_is_let_go(device):
    x = host(LONG)
    f = warmed(normalised, tensor(x))
    given = tensor(x)
    before, allocated = device.held, device.calls["allocate"]
    out = f(given)
    assert device.calls["launched directly"] > 1
    assert device.calls["allocate"] == allocated + 2  # the result, and a block for all else
    np.testing.assert_allclose(get(out), normalised(x), rtol=1e-5)
    del out
    gc.collect()
    assert device.held == before


def test_many_launches_stay_a_graph(device, monkeypatch):
    monkeypatch.setattr(device_plans, "MOST_LAUNCHES", 1)
    x = tensor(host(LONG))
    f = pf.jit(normalised)
    for _ in range(4):
        f(x)
    assert not f.state().emitted
    assert "launches more than 1 kernels: they are a graph" in f.explain()
    assert counts(f, "graph_replays") == [2]


@pytest.mark.parametrize(("fn", "shapes", "reason"), [(lambda a: modulus(a * 2) + 1, [(3, 9)], "runs in Python")])
def test_what_python_does_says_why(device, fn, shapes, reason):
    args = [host(*shape) for shape in shapes]
    f = pf.jit(fn)
    for _ in range(4):
        np.testing.assert_allclose(get(f(*map(tensor, args))), fn(*args), rtol=1e-5)
    assert not f.state().emitted
    assert reason in f.explain()


def test_arrays_of_other_libraries_say_why(device):
    f = pf.jit(lambda x: x * 2 + 1)
    for _ in range(3):
        f(xp.array(host(4)))
    assert "arrays of fakelib are read by Python" in f.explain()
    x = tensor(host(4))  # the same graph, of which emitted code can read the arrays
    for _ in range(3):
        f(x)
    assert is_native(f, x)
    assert not is_native(f, xp.array(host(4)))
    assert counts(f, "traces") == [1]


# --- guards ------------------------------------------------------------------------------------


def as_on_device(array):
    """A tensor that lies in a device's memory as an array does in the host's."""
    return stand_ins.Tensor(xp.Array(1 << 40, array.shape, array.dtype, array.strides, None))


@pytest.mark.parametrize("relaxed", [False, True])
def test_random_guards(device, relaxed):
    """R1.39, R3.42: emitted, they answer as their definitions do."""
    lent = libraries.library_of(as_on_device(np.zeros(1))).exchange()
    seen = Counter()
    for seed in range(120 if EVERY_CASE else 40):
        rng = random.Random(seed)
        rank, pool = rng.randrange(4), rng.sample((0, 1, 2, 3), 2)
        layouts = [random_layout(rng, tuple(rng.choices(pool, k=rank))) for _ in range(25)]
        kind = relaxed_type if relaxed else lambda _, array: type_of(array)
        type_ = replace(kind(rng, layouts[0]), device="cuda:0", requires_grad=False)
        if not relaxed and rng.random() < 0.5:
            (type_,) = generalize((type_,)) or (type_,)
        arguments = flat_arguments([(np.dtype(np.float64), rank, "cuda:0")], lent)
        leaf = Leaf(tests=guard_tests([type_], arguments.values, relaxed=relaxed))
        leaf.finish(arguments, ("tuple", None, ()))
        recent = np.zeros(3, np.int64)
        entry = make_entry([leaf], lambda *_: None, plain_settings(recent))
        for array in layouts:
            given = as_on_device(array)
            leaf_array = as_leaf(given)
            fits = (fits_relaxed if relaxed else check_types)([type_], [leaf_array])
            assert (entry.call(given) == ()) == fits, (seed, type_, array.shape, array.strides)
            seen[fits] += 1
    assert min(seen[True], seen[False]) > 100


# --- failures --------------------------------------------------------------------------------


def test_a_launch_that_fails_is_pythons(device):
    x = host(4, 8)
    f = warmed(lambda x: x * 2 + 1, tensor(x))
    device.faults["launch"] = Fault(
        DriverError("cuLaunchKernel fails", "CUDA_ERROR_INVALID_VALUE"), device.calls["launch"] + 1, 2
    )
    np.testing.assert_allclose(get(f(tensor(x))), x * 2 + 1, rtol=1e-6)
    assert len(device.failures) == 1
    assert counts(f, "device_fallbacks") == [1]
    np.testing.assert_allclose(get(f(tensor(x))), x * 2 + 1, rtol=1e-6)


def test_memory_that_runs_out_is_pythons(device, torch):
    x = host(4, 8)
    f = warmed(lambda x: x * 2 + 1, tensor(x))
    torch.full = True
    np.testing.assert_allclose(get(f(tensor(x))), x * 2 + 1, rtol=1e-6)
    assert counts(f, "device_fallbacks") == [1]
    assert "CUDA out of memory" in f.explain()
    torch.full = False
    assert is_native(f, tensor(x))


def test_a_thread_with_another_context_is_pythons(device):
    x = host(4, 8)
    f = warmed(lambda x: x * 2 + 1, tensor(x))
    device.context = 0
    assert not is_native(f, tensor(x))
    np.testing.assert_allclose(get(f(tensor(x))), x * 2 + 1, rtol=1e-6)
    device.context = stand_ins.driver().direct(0).context
    assert is_native(f, tensor(x))


def test_nothing_is_leaked(device, monkeypatch):
    x, b = tensor(host(4, 8)), tensor(host(8))
    f = warmed(lambda x, b: (x + b).sum(axis=0), x, b, strategy=[("dynamic", 1)])
    other = tensor(host(8, 4).T.copy())
    f(x, b), f(other, b)
    monkeypatch.setattr(device, "run_node", lambda *_: None)  # an emulated kernel takes longer than a call
    gc.collect()
    references = [sys.getrefcount(v) for v in (x, b, x.held, False, stand_ins.torch.float32)]
    held, blocks = device.held, sys.getallocatedblocks()
    for _ in range(300):
        f(x, b)
        f(stand_ins.Tensor(x.held), b)
        device.log.clear()
    gc.collect()
    now = [sys.getrefcount(v) for v in (x, b, x.held, False, stand_ins.torch.float32)]
    assert now[:3] == references[:3]
    assert abs(now[3] - references[3]) < 50 and abs(now[4] - references[4]) < 50
    assert device.held == held
    assert abs(sys.getallocatedblocks() - blocks) < 300


def test_items_live_until_the_call_ends(device):
    """Asking one of them what it is runs Python code, a mode of torch say, or another thread."""
    x, y, table = host(4, 8), host(8), []
    f = warmed(lambda t: t[0] * t[2] + t[1], [tensor(x), tensor(y), 0.5])
    other = [tensor(x), tensor(y[:1]), 2.5]
    f(other), f(other), f(other)
    ask = stand_ins.Tensor.is_neg

    def is_neg(self):
        table.clear()
        gc.collect()
        return ask(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stand_ins.Tensor, "is_neg", is_neg)
        for k in range(12):
            table[:] = [tensor(x), tensor(y), float(k)]
            np.testing.assert_allclose(get(f(table)), x * k + y, rtol=1e-6)
            assert not table
    for wrong in (other, [tensor(x.T.copy()), tensor(x[0, :4].copy()), 0.25]):
        held = [sys.getrefcount(o) for o in wrong]
        f(wrong)
        assert [sys.getrefcount(o) for o in wrong] == held
