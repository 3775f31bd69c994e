"""Graphs of IR text some of whose ops have attributes that callers give (R3.5): right on every way of a call."""

from __future__ import annotations

import pickle

import numpy as np
import profuse as pf
import pytest

KEEP = """
func.func @late(%x: !profuse.tensor, %keep: i1) -> !profuse.tensor {
  %n = "profuse.constant"() {value = 0 : i64} : () -> i64
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.late"(%0, %n, %keep) {op = "sum", names = ["axes", "keepdims"]} :
    (!profuse.tensor, i64, i1) -> !profuse.tensor
  %2 = "profuse.exp"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.add"(%2, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}
"""
AXES = """
func.func @late(%x: !profuse.tensor, %axes: !profuse.ints, %mode: !profuse.str) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.late"(%0, %axes) {op = "sum", names = ["axes"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %2 = "profuse.exp"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.add"(%2, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}
"""
SIZES = """
func.func @like(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.ints, !profuse.tensor) {
  %0 = "profuse.sizes"(%y) : (!profuse.tensor) -> !profuse.ints
  %1 = "profuse.late"(%x, %0) {op = "reshape", names = ["shape"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  return %0, %1 : !profuse.ints, !profuse.tensor
}
"""
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


def load(tmp_path, text):
    path = tmp_path / "graph.mlir"
    path.write_text(text)
    return pf.load(str(path))


def expected(axes, keepdims=False, x=X):
    return 2 * np.exp(np.tanh(x).sum(axes, keepdims=keepdims))


def check(result, wanted):
    assert result.shape == wanted.shape and result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_r3_5_keepdims_that_varies(tmp_path):
    """What is behind the op has a guard of its own: no result is that of another value."""
    f = load(tmp_path, KEEP)
    for k in range(24):
        check(f(X, bool(k % 3)), expected(0, keepdims=bool(k % 3)))
        f.wait()
    counters = f.state().counters
    assert counters["kernel_launches"] > 24 and counters["guard_misses"] > 0
    assert "Calls are dispatched in Python: profuse.late" in f.explain()


@pytest.mark.parametrize("executor_mode", [True, False])
def test_lists_and_strings_are_arguments(tmp_path, executor_mode):
    before = pf.set_executor_mode(executor_mode)
    try:
        f = load(tmp_path, AXES)
        for k in range(12):
            axes = [(0,), (1,), None, (0, 1)][k % 4]
            check(f(X, axes, "tanh"), expected(axes))
            f.wait()
        check(f(X, [1], ""), expected((1,)))
    finally:
        pf.set_executor_mode(before)


@pytest.mark.parametrize("axes", [(0.5,), 1, np.zeros(3), (True,), "0", (2**70,), [0] * 300, {}])
def test_other_arguments_are_errors(tmp_path, axes):
    f = load(tmp_path, AXES)
    with pytest.raises(pf.ArgumentError, match=r"@late: argument 1 (must be a list of integers|has 300 items)"):
        f(X, axes, "tanh")


def test_errors_of_values_name_the_line(tmp_path):
    f = load(tmp_path, AXES)
    with pytest.raises(pf.ProfuseError, match="axis 5 is out of bounds") as caught:
        f(X, (5,), "tanh")
    assert caught.value.loc is not None and caught.value.loc.line == 4
    with pytest.raises(pf.ArgumentError, match="takes 3 arguments"):
        f(X, (5,))


def test_sizes_are_results(tmp_path):
    f = load(tmp_path, SIZES)
    for shape in ((4, 8), (4, 8), (8, 4), (32,), (2, 2, 8)):
        sizes, y = f(X, np.zeros(shape))
        f.wait()
        assert sizes == shape
        np.testing.assert_array_equal(y, X.reshape(shape))


def test_traces_make_the_op_of_it(tmp_path):
    """R3.5: what is constant in a trace is a constant, and what is a number of the caller is guarded."""
    f, g = load(tmp_path, AXES), load(tmp_path, KEEP)
    h = pf.jit(lambda x, keep: f(x, (1,), "tanh") * 2 + g(x, keep).sum())
    for k in range(6):
        keep = bool(k % 2)
        check(h(X, keep), expected((1,)) * 2 + expected(0, keep).sum())
        h.wait()
    assert h.state().counters["kernel_launches"] > 0
    assert "profuse.late" not in h.ir("graph")


def test_numbers_of_the_caller_are_guarded_in_traces(tmp_path):
    f = load(tmp_path, AXES.replace("!profuse.ints", "i64"))
    h = pf.jit(lambda x, axis: f(x, axis, "tanh") + 1)
    for axis in (0, 1, 0, -1, 1, 0):
        check(h(X, axis), expected(axis) + 1)
        h.wait()
    assert h.state().counters["traces"] == 3 and h.state().counters["kernel_launches"] > 0


def test_a_trace_without_the_value_is_pythons(tmp_path):
    f = load(tmp_path, SIZES)
    h = pf.jit(lambda x, y: f(x, y)[1] + 1, unsupported="python")
    for _ in range(3):
        np.testing.assert_array_equal(h(X, np.zeros((8, 4))), X.reshape(8, 4) + 1)
        h.wait()
    assert "cannot be traced" in h.explain()


def gradient(x, axes):
    return expected(axes, True, x) * (1 - np.tanh(x) ** 2)


def test_gradients(tmp_path):
    f = load(tmp_path, AXES)
    traced = pf.grad(lambda x: f(x, (0,), "tanh").sum())
    for _ in range(3):
        np.testing.assert_allclose(traced(X), gradient(X, 0), rtol=1e-5)
    for axes in ((0,), (1,), (0,), None):
        x = pf.array(X, requires_grad=True)
        f(x, axes, "tanh").sum().backward()
        np.testing.assert_allclose(x.grad, gradient(X, axes), rtol=1e-5)
        f.wait()


def test_gradients_of_what_only_a_run_tells_are_errors(tmp_path):
    f = load(tmp_path, SIZES)
    with pytest.raises(pf.TraceError, match="cannot be traced"):
        pf.grad(lambda x: f(x, x)[1].sum())(X)


def test_files_and_copies(tmp_path):
    f = load(tmp_path, AXES)
    for _ in range(3):
        f(X, (0,), "tanh")
        f.wait()
    path = tmp_path / "late.pf"
    f.save(str(path))
    for copy in (pf.load(str(path)), pickle.loads(pickle.dumps(f))):
        check(copy(X, (0,), "tanh"), expected((0,)))
        check(copy(X, (1,), "tanh"), expected((1,)))
    out = np.empty(8, np.float32)
    check(f.into(out, X, (0,), "tanh"), expected((0,)))
