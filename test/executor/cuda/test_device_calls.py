"""Functions called with device arrays: values, and what is launched, copied and waited for."""

import sys
from pathlib import Path

import fakelib as xp
import kernels
import numpy as np
import profuse as pf
import pytest
from support import counts, host, modulus, warmed


def scaled(x, b):
    return np.tanh(x + b) * 0.5


def test_the_first_call_copies_each_argument_and_each_result_once(device):
    x, b = host(4, 8), host(8)
    f = pf.jit(scaled)
    out = f(xp.array(x), xp.array(b))
    assert np.array_equal(out.get(), scaled(x, b))
    assert counts(f, "evaluated_ops", "copies_to_host", "copies_to_device") == [3, 2, 1]
    assert not device.launched


def test_an_optimised_call_launches_and_neither_copies_nor_waits(device):
    x, b = host(4, 8), host(8)
    f = warmed(scaled, xp.array(x), xp.array(b))
    names = ("evaluated_ops", "copies_to_host", "copies_to_device", "device_syncs")
    before = counts(f, *names, "kernel_launches")
    transfers = device.calls["to_device"], device.calls["to_host"]
    given = xp.array(x), xp.array(b)
    out = f(*given)
    assert counts(f, *names, "kernel_launches") == [*before[:-1], before[-1] + 1]
    assert device.calls["to_device"] == transfers[0] + len(given)
    assert device.calls["to_host"] == transfers[1]
    np.testing.assert_allclose(out.get(), scaled(x, b), rtol=1e-6)


def test_results_are_arrays_of_the_callers_library_with_memory_of_their_own(device):
    x = xp.array(host(4, 8))
    f = warmed(lambda x: x + 1, x)
    one, two = f(x), f(x)
    assert type(one) is xp.Array
    assert len({one.pointer, two.pointer, x.pointer}) == 3


def test_the_same_code_is_loaded_once(device):
    x = xp.array(host(4, 8))
    for _ in range(3):
        f = warmed(scaled, x, xp.array(host(8)))
        f.flush()
        f(x, xp.array(host(8)))
        f(x, xp.array(host(8)))
        assert counts(f, "kernel_launches") == [2]
    assert device.calls["load"] == 1


def test_memory_goes_back_when_results_die(device):
    x = xp.array(host(64, 8))
    f = warmed(lambda x: (x + 1).sum(axis=0), x)
    before = device.held
    out = f(x)
    assert device.held == before + 32
    del out
    assert device.held == before


def test_kernels_run_on_the_stream_of_the_arguments(device):
    x = xp.array(host(4, 8))
    f = warmed(lambda x: x * 2 + 1, x)
    device.log.clear()
    f(x)
    assert [(what.split()[0], stream) for what, stream in device.log] == [("launch", xp.STREAM)]


def test_streams_wait_for_arguments_made_elsewhere(device):
    x, y = xp.array(host(4)), xp.array(host(4), stream=9)
    f = warmed(lambda x, y: x * y + 1, x, y)
    device.log.clear()
    f(x, y)
    assert device.log[0] == ("wait for 9", xp.STREAM)
    assert device.log[1][0].startswith("launch")


CASES = {
    "gelu_bias": (kernels.gelu_bias, [(6, 40), (40,)]),
    "softmax": (kernels.softmax, [(6, 40)]),
    "long softmax": (kernels.softmax, [(1, 16_500)]),
    "layernorm": (kernels.layernorm, [(6, 40), (40,), (40,)]),
    "rmsnorm": (kernels.rmsnorm, [(6, 40), (40,)]),
    "column_sum": (kernels.column_sum, [(300, 7)]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_kernels(device, name, strategy):
    fn, shapes = CASES[name]
    args = [host(*shape) for shape in shapes]
    given = [xp.array(a) for a in args]
    f = pf.jit(fn, strategy=[(strategy, 1)])
    for _ in range(4):
        out = f(*given).get()
        np.testing.assert_allclose(out, fn(*args), rtol=2e-5, atol=2e-6)
    assert counts(f, "guard_misses", "compile_failures", "device_fallbacks") == [0, 0, 0]
    assert counts(f, "kernel_launches")[0] >= 3


def called(device, f, *shape):
    """Kernels that a call launches, without its function's name, and their shared memory."""
    x = host(*shape)
    device.log.clear()
    np.testing.assert_allclose(f(xp.array(x)).get(), kernels.softmax(x), rtol=2e-5, atol=2e-6)
    return [(name.split("_", 1)[1], device.shared[name]) for name in device.launched]


def test_rows_of_known_length_in_shared_memory(device):
    """More than registers hold, and more than a launch has without asking for it."""
    f = warmed(kernels.softmax, xp.array(host(2, 20_000)), strategy=[("static", 1)])
    ((name, shared),) = called(device, f, 2, 20_000)
    assert (name.endswith("nest0"), shared) == (True, 80_000)
    assert counts(f, "device_fallbacks", "compile_failures") == [0, 0]


def test_rows_of_any_length_in_shared_memory_while_they_fit(device):
    f = warmed(kernels.softmax, xp.array(host(3, 40)), strategy=[("dynamic", 1)])
    found = [called(device, f, 3, columns) for columns in (40, 1003, 20_000, 20_001)]
    suffixes = ["nest0", "nest0_general", "nest0_large", "nest0_large_general"]
    assert [shared for ((_, shared),) in found] == [160, 4016, 0, 0]
    assert all(n.endswith(s) for ((n, _),), s in zip(found, suffixes, strict=True))
    assert counts(f, "compiles", "guard_misses", "device_fallbacks") == [1, 0, 0]


def test_one_dynamic_kernel_serves_all_sizes(device):
    f = pf.jit(kernels.softmax, strategy=[("dynamic", 1)])
    for rows, columns in ((4, 8), (4, 8), (5, 33), (9, 64)):
        x = host(rows, columns)
        np.testing.assert_allclose(f(xp.array(x)).get(), kernels.softmax(x), rtol=1e-5)
    assert counts(f, "compiles", "guard_hits", "guard_misses") == [1, 3, 0]


def test_strided_arguments_are_read_where_they_are(device):
    x = host(12, 6)
    given = xp.array(x)
    f = pf.jit(lambda x: np.exp(x) - 1)
    for view, expected in ((given.T, x.T), (given[::2], x[::2]), (given[3:], x[3:])):
        for _ in range(2):
            np.testing.assert_allclose(f(view).get(), np.exp(expected) - 1, rtol=1e-5, atol=1e-6)
    # Tier 0 reads each layout once.
    assert counts(f, "copies_to_host", "compile_failures") == [3, 0]


def test_numbers_and_host_scalars_are_operands_of_kernels(device):
    x = host(4, 8)
    f = pf.jit(lambda x, n, s, t: x * n + s * t)
    args = xp.array(x), 3.0, np.float32(2), np.array(0.5, np.float32)
    for _ in range(3):
        np.testing.assert_allclose(f(*args).get(), x * 3 + 1, rtol=1e-6)
    assert counts(f, "guard_misses", "kernel_launches") == [0, 2]
    assert not f.state().reasons


def test_arrays_made_inside_belong_to_the_device(device):
    x = host(4, 8)
    f = pf.jit(lambda x: x + np.arange(8, dtype=np.float32) * np.ones(8, np.float32))
    for _ in range(3):
        out = f(xp.array(x))
    np.testing.assert_allclose(out.get(), x + np.arange(8), rtol=1e-6)
    assert counts(f, "kernel_launches", "guard_misses") == [2, 0]


def test_captured_host_arrays_are_copied_at_every_call(device):
    weight = host(8)
    x = xp.array(host(4, 8))
    f = warmed(lambda x: x * weight + 1, x)
    before = counts(f, "copies_to_device", "evaluated_ops")
    f(x)
    assert counts(f, "copies_to_device", "evaluated_ops") == [before[0] + 1, before[1]]


def test_an_argument_returned_as_it_is_is_a_copy(device):
    x = host(4)
    given = xp.array(x)
    f = pf.jit(lambda x: (x, x + 1))
    for _ in range(3):
        same, _ = f(given)
        assert same.pointer != given.pointer
        assert np.array_equal(same.get(), x)


def test_empty_arrays(device):
    x = np.empty((0, 4), np.float32)
    f = pf.jit(lambda x: (x + 1, x.sum(axis=0)))
    for _ in range(3):
        a, b = f(xp.array(x))
        assert a.get().shape == (0, 4)
        assert np.array_equal(b.get(), np.zeros(4, np.float32))


def test_results_of_rank_0_are_arrays(device):
    x = host(50)
    f = pf.jit(lambda x: (x * x).sum())
    for _ in range(3):
        out = f(xp.array(x))
        assert out.shape == ()
        np.testing.assert_allclose(out.get(), (x * x).sum(), rtol=1e-5)


def test_in_place_code(device):
    def fn(x):
        y = x * 2
        y[1:] += x[:-1]
        y[0] = modulus(y[0])
        return y, y[1:]

    x = host(5, 4)
    f = pf.jit(fn)
    for _ in range(3):
        out = f(xp.array(x))
        for got, expected in zip(out, fn(x), strict=True):
            np.testing.assert_allclose(got.get(), expected, rtol=1e-6)


def test_control_flow_waits_for_its_conditions(device):
    @pf.jit
    def f(x):
        return pf.cond(x.sum() > 0, lambda: np.exp(x) + 1, lambda: x * 2 - 1)

    x = np.abs(host(4, 8))
    for value in (x, x, x, -x):
        expected = np.exp(value) + 1 if value.sum() > 0 else value * 2 - 1
        np.testing.assert_allclose(f(xp.array(value)).get(), expected, rtol=1e-6)
    assert counts(f, "device_syncs")[0] >= 4


def test_an_index_out_of_range_raises_as_in_numpy(device):
    x, good, bad = host(5), np.array([4, 0, 1]), np.array([4, 0, 7])
    f = pf.jit(lambda x, k: np.take(x, k) * 2)
    for _ in range(3):
        np.testing.assert_allclose(f(xp.array(x), xp.array(good)).get(), x[good] * 2)
    with pytest.raises(IndexError):
        f(xp.array(x), xp.array(bad))
    np.testing.assert_allclose(f(xp.array(x), xp.array(good)).get(), x[good] * 2)


def test_ops_without_a_kernel_are_counted_between_kernels(device):
    def fn(x):
        return modulus(x * 2) + 1

    x = host(3, 9)
    f = warmed(fn, xp.array(x))
    names = ("evaluated_ops", "kernel_launches", "copies_to_host", "copies_to_device")
    before = counts(f, *names)
    np.testing.assert_allclose(f(xp.array(x)).get(), fn(x), rtol=1e-6)
    assert [b - a for a, b in zip(before, counts(f, *names), strict=True)] == [2, 2, 1, 1]
    assert any("complex" in reason for reason in f.state().reasons)


def test_guards_know_devices(device):
    device.devices = 2
    f = pf.jit(lambda x, y: x * y + 1)
    x = host(4, 8)
    one, two = xp.array(x), xp.array(x, device=1)
    for _ in range(2):
        f(one, one)
        f(two, two)
    launches = device.log[-1:]
    assert launches[0][0].startswith("launch")
    assert counts(f, "compiles", "traces", "guard_misses") == [2, 2, 0]
    guards = [s.guard for s in f.state().specializations]
    assert ["cuda:0" in g for g in guards] == [True, False]
    assert ["cuda:1" in g for g in guards] == [False, True]


def test_host_calls_have_graphs_of_their_own(device):
    f = pf.jit(lambda x: x * 2 + 1)
    x = host(4)
    for _ in range(3):
        f(xp.array(x))
        assert type(f(x)) is np.ndarray
    assert counts(f, "traces", "guard_misses", "copies_to_host") == [2, 0, 1]


def test_mixed_devices_split_the_graph_with_a_reason(device):
    def fn(x, y):
        a = x * 2 + 1
        b = y * 3 - 1
        return a + b

    x, y = host(4, 8), host(4, 8)
    f = pf.jit(fn)
    for _ in range(3):
        np.testing.assert_allclose(f(xp.array(x), y).get(), fn(x, y), rtol=1e-6, atol=1e-6)
    assert any("on different devices: cpu, cuda:0" in r for r in f.state().reasons)
    guards = [s.guard for s in f.state().specializations]
    assert sorted("cuda:0" in g for g in guards) == [False, True]
    assert "pass all arrays on one device" in f.explain()


def test_a_spec_keyed_function(device, profiling_off):
    f = pf.jit(kernels.softmax)
    for shape in ((4, 8), (6, 20)):
        x = host(*shape)
        np.testing.assert_allclose(f(xp.array(x)).get(), kernels.softmax(x), rtol=1e-5)
        np.testing.assert_allclose(f(x), kernels.softmax(x), rtol=1e-5)
    assert counts(f, "compiles", "evaluated_ops") == [2, 0]


def test_a_loaded_graph(device, tmp_path):
    path = Path(tmp_path, "graph.mlir")
    path.write_text("""
func.func @graph(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}""")
    f = pf.load(str(path))
    x = host(4, 8)
    for _ in range(3):
        np.testing.assert_allclose(f(xp.array(x), xp.array(x)).get(), np.exp(x * x), rtol=1e-5)
        np.testing.assert_allclose(f(x, x), np.exp(x * x), rtol=1e-5)
    assert counts(f, "compiles", "guard_misses", "calls") == [2, 0, 6]


def test_tracing_and_profiling_import_no_driver_binding():
    assert "cuda.bindings" not in sys.modules


def test_captured_device_arrays_stay_where_they_are(device):
    w, b = host(8, 4), host(4)
    on_device = xp.array(w), xp.array(b)

    def fn(x):
        weights, bias = on_device
        y = np.maximum(x @ weights, bias)
        return np.concatenate([y, weights]), y + np.where(y > 0, bias, 0)

    x = host(3, 8)
    expected = np.maximum(x @ w, b)
    f = warmed(fn, xp.array(x))
    before = counts(f, "copies_to_device", "copies_to_host")
    for _ in range(2):
        joined, added = f(xp.array(x))
        np.testing.assert_allclose(joined.get(), np.concatenate([expected, w]), rtol=1e-5)
        np.testing.assert_allclose(added.get(), expected + np.where(expected > 0, b, 0), rtol=1e-5)
    assert counts(f, "copies_to_device", "copies_to_host") == before


def test_device_arrays_are_not_captured_by_host_calls(device):
    weights = xp.array(host(8))
    f = pf.jit(lambda x: x * weights)
    with pytest.raises(pf.TraceError, match="closes over an array on cuda:0"):
        f(host(8))
    np.testing.assert_allclose(f(xp.array(np.ones(8, np.float32))).get(), weights.get())


def test_calls_inside_of_calls(device):
    inner = pf.jit(lambda x, n: np.exp(x) * n)
    outer = pf.jit(lambda x: inner(x, 2.0) + inner(x * 2, 3.0))
    x = host(4, 8)
    for _ in range(3):
        got = outer(xp.array(x)).get()
    np.testing.assert_allclose(got, np.exp(x) * 2 + np.exp(x * 2) * 3, rtol=1e-5)
    assert counts(outer, "kernel_launches") == [2]


def test_nested_arguments_and_results(device):
    f = pf.jit(lambda tree: {"sum": tree["a"][0] + tree["b"], "same": [tree["b"] * 1]})
    a, b = host(4), host(4)
    for _ in range(3):
        out = f({"a": (xp.array(a), 3), "b": xp.array(b)})
    np.testing.assert_allclose(out["sum"].get(), a + b)
    np.testing.assert_allclose(out["same"][0].get(), b)
    assert counts(f, "kernel_launches") == [2]


def test_into_is_for_host_arrays_and_donation_too(device):
    x = xp.array(host(4, 8))
    f = warmed(lambda x: np.tanh(x) * 2, x, donate="x")
    with pytest.raises(pf.ArgumentError, match="into is for host arrays"):
        f.into(host(4, 8), x)
    assert f(x).pointer != x.pointer
    assert counts(f, "donated_results") == [0]
