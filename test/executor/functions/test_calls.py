"""What goes in and comes out of a jitted function: structure, ownership, layout, errors."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import profuse as pf
import pytest
from internals import last_executor


def thrice(f, *args):
    """The results of three calls: profiled, first native, steady."""
    return [f(*args) for _ in range(3)]


def test_nested_arguments_and_results():
    @pf.jit
    def f(tree, scale):
        return {"sum": tree["a"][0] + tree["a"][1], "pair": (tree["b"] * scale, [scale + 1])}

    a, b, c = np.ones((2, 3)), np.arange(3.0), np.float32(2)
    for out in thrice(f, {"a": [a, b], "b": c}, 2.5):
        np.testing.assert_array_equal(out["sum"], a + b)
        assert out["pair"][0] == np.float32(5)
        assert out["pair"][1] == [3.5]


def test_python_numbers_are_runtime_values():
    @pf.jit
    def f(x, k):
        return x * k + 1

    x = np.ones(5, np.float32)
    for k in (1.0, 2.0, 3.0, 4.5):
        out = f(x, k)
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, x * np.float32(k) + 1)
    assert f.state().counters["traces"] == 1
    assert f.state().counters["compiles"] == 1


def test_outputs_are_fresh():
    @pf.jit
    def f(x):
        return x, x.T, x[1:], x + 1

    x = np.arange(6.0).reshape(2, 3)
    for out in thrice(f, x):
        for leaf in out:
            assert not np.shares_memory(leaf, x)
        out[0][:] = -1
    np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))


def test_outputs_of_interpreted_groups_are_fresh(monkeypatch):
    """Op by op, a group gives views of its operands out, which a kernel never does."""
    monkeypatch.setattr("profuse.executor.plans.processor.Processor.runner", lambda *given: given[-1])
    f = pf.jit(lambda x: (x.T, x.T * 2 + 1), background=False)
    x = np.arange(6.0).reshape(2, 3)
    for view, _ in thrice(f, x):
        assert not np.shares_memory(view, x)
        np.testing.assert_array_equal(view, x.T)
    assert f.state().counters["kernel_launches"] == 0


def test_constant_results_are_fresh():
    table = np.arange(100.0)
    f = pf.jit(lambda x: (np.exp(x) + 1, np.zeros(3), np.full((2, 2), 7.0), table))
    for out in thrice(f, np.ones(2)):
        np.testing.assert_array_equal(out[1], np.zeros(3))
        np.testing.assert_array_equal(out[2], np.full((2, 2), 7.0))
        np.testing.assert_array_equal(out[3], np.arange(100.0))
        for leaf in out:
            leaf += 1


def test_results_of_kernels_are_not_copied():
    f = pf.jit(lambda x: np.exp(x) + 1)
    x = np.ones((300, 300))
    thrice(f, x)
    assert last_executor(f).optimized.fresh == (True,)


def test_results_of_one_call_survive_the_next():
    f = pf.jit(lambda x: np.exp(x) * 2)
    x, y = np.zeros(4), np.ones(4)
    f(x)
    first = f(x)
    f(y)
    np.testing.assert_array_equal(first, np.full(4, 2.0))


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.asfortranarray(x),
        lambda x: x[:0],
        lambda x: x[:1, :1],
        lambda x: x[..., None][:, :, 0],
    ],
)
def test_layouts_are_read_in_place(layout):
    f = pf.jit(lambda x: np.tanh(x) + x.sum(axis=0), strategy=[("static", 1), ("dynamic", 1)])
    base = np.linspace(-2, 2, 48, dtype=np.float32).reshape(6, 8)
    for data in (base, base, base[:4, :6], base[:4, :6], base[1:, 1:], layout(base), layout(base)):
        x = layout(data) if data.size > 1 and data.ndim == 2 else data
        np.testing.assert_allclose(f(x), np.tanh(x) + x.sum(axis=0), rtol=1e-5, atol=1e-6)
    assert f.state().counters["input_copies"] == 0


@pytest.mark.parametrize("strategy", [[("static", 1)], [("dynamic", 1)]])
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1], lambda x: x[:, ::-1]])
def test_a_layout_that_was_not_profiled_misses(strategy, layout):
    """R1.39, R1.40: sizes that fit do not make up for strides that do not."""
    f = pf.jit(lambda x: np.tanh(x) + x.sum(axis=0), strategy=strategy)
    base = np.linspace(-2, 2, 48, dtype=np.float32).reshape(6, 8)
    for x in (base, base, layout(base), base):
        np.testing.assert_allclose(f(x), np.tanh(x) + x.sum(axis=0), rtol=1e-5, atol=1e-6)
    (spec,) = f.state().specializations
    assert (spec.hits, spec.misses) == (2, 1)


def test_foreign_byte_order_and_misaligned_arrays_are_copied_and_counted():
    f = pf.jit(lambda x: np.sqrt(x) + 1)
    raw = np.frombuffer(bytes(1) + np.arange(8.0).tobytes(), np.uint8)[1:]
    odd = raw.view(np.float64)
    assert not odd.flags.aligned
    for x in (np.arange(8.0), np.arange(8.0), np.arange(8.0).astype(">f8"), odd):
        out = f(x)
        assert out.dtype == np.dtype("f8")
        np.testing.assert_allclose(out, np.sqrt(np.arange(8.0)) + 1)
    assert f.state().counters["input_copies"] == 2


def test_read_only_and_memory_mapped_arrays(tmp_path):
    f = pf.jit(lambda x: x * 2 + 1)
    x = np.arange(5.0)
    x.flags.writeable = False
    for out in thrice(f, x):
        np.testing.assert_array_equal(out, x * 2 + 1)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(f(np.load(tmp_path / "x.npy", mmap_mode="r")), x * 2 + 1)


def test_rank_0_results_are_numpy_scalars():
    f = pf.jit(lambda x: (x.sum(), x.max() * 2))
    for out in thrice(f, np.arange(4, dtype=np.float32)):
        assert [type(leaf) for leaf in out] == [np.float32, np.float32]
        assert out == (6, 6)


def test_closed_over_arrays_are_inputs():
    w = np.arange(3.0)
    f = pf.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(np.ones(3)), w)
    w[:] = 7
    for out in thrice(f, np.ones(3)):
        np.testing.assert_array_equal(out, w)


def test_wrong_arity():
    f = pf.jit(lambda x, y: x + y)
    with pytest.raises(pf.ArgumentError, match="missing a required argument: 'y'"):
        f(np.ones(3))
    with pytest.raises(TypeError):
        f(np.ones(3), np.ones(3), np.ones(3))


@pytest.mark.parametrize("bad", [np.array([object()]), np.array(["a"]), np.ma.ones(3)])
def test_unsupported_arguments(bad):
    f = pf.jit(lambda x: x + 1)
    with pytest.raises(pf.ProfuseError):
        f(bad)
    with pytest.raises(TypeError):
        f(bad)


def test_mismatched_shapes_raise_what_numpy_raises():
    """On every tier: while profiling, behind a guard, in a fallback."""
    f = pf.jit(lambda x, y: np.exp(x) + y)
    good, bad = (np.ones((2, 3)), np.ones(3)), (np.ones((2, 3)), np.ones(4))
    with pytest.raises(ValueError, match=r"broadcast together with shapes \(2,3\) \(4,?\)"):
        f(*bad)
    for _ in range(4):
        f(*good)
        with pytest.raises(ValueError, match=r"broadcast together with shapes \(2,3\) \(4,?\)"):
            f(*bad)


def test_errors_do_not_spoil_later_calls():
    f = pf.jit(lambda x, y: np.exp(x) + y)
    for _ in range(3):
        with pytest.raises(pf.ShapeError):
            f(np.ones((2, 3)), np.ones(4))
    for out in thrice(f, np.ones((2, 3)), np.ones(3)):
        np.testing.assert_allclose(out, np.exp(np.ones((2, 3))) + 1)


def test_no_floating_point_warnings_on_any_tier():
    f = pf.jit(lambda x: np.log(x) / x)
    for out in thrice(f, np.zeros(3, np.float32)):
        assert np.isneginf(out).all()


def test_threads_share_one_compilation():
    """R1.7: racing threads get one compilation and right results."""
    f = pf.jit(lambda x: np.exp(x).sum(axis=1))
    x = np.linspace(0, 1, 600).reshape(20, 30)
    expected = np.exp(x).sum(axis=1)
    failures = []

    def work():
        for _ in range(50):
            out = f(x)
            if not np.allclose(out, expected):
                failures.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert f.state().counters["compiles"] == 1


def test_explain_names_the_argument_that_missed():
    f = pf.jit(lambda x: np.exp(x) + 1)
    x = np.ones((2, 3), np.float32)
    f(x), f(x), f(np.ones((4, 3), np.float32))
    text = f.explain()
    assert "static guard on f32[2, 3]" in text
    assert "x: size of dimension 0 is 4, specialised for 2" in text


def test_ir_of_every_stage():
    f = pf.jit(lambda x: np.tanh(x) + 1, name="half")
    x = np.ones((2, 3), np.float32)
    with pytest.raises(pf.ArgumentError, match="no IR yet"):
        f.ir()
    f(x)
    assert "profuse.tanh" in f.ir("graph")
    assert "profiled_type = tensor<2x3xf32" in f.ir("profiled")
    with pytest.raises(pf.ArgumentError, match="call it again"):
        f.ir("optimized")
    f(x)
    assert "profuse.type_check" in f.ir("optimized")
    assert "linalg.generic" in f.ir("linalg")
    assert "llvm" in f.ir("llvm")
    with pytest.raises(pf.ArgumentError, match="no stage 'ptx'") as info:
        f.ir("ptx")
    assert info.value.hint.count("graph") == 1


def test_a_graph_without_kernels_has_no_kernel_stages():
    f = pf.jit(lambda z: np.arcsin(z))
    f(np.ones(3) + 1j), f(np.ones(3) + 1j)
    with pytest.raises(pf.ArgumentError, match="no llvm: this graph has no kernel"):
        f.ir("llvm")


@pytest.mark.parametrize("name", ["größe", "日本", "2nd", 'a "b"\n', "a\\", "\0", ""])
def test_functions_of_any_name_compile(name):
    """Python's identifiers may have letters of any script, those of IR may not."""
    f = pf.jit(lambda x: np.tanh(x) * 2, name=name)
    x = np.ones(3, np.float32)
    for result in thrice(f, x):
        np.testing.assert_allclose(result, np.tanh(x) * 2, rtol=1e-6)
    assert f.state().reasons == ()
    assert f.state().counters["kernel_launches"] == 2


def loaded(tmp_path, function=lambda x, y: np.tanh(x) + y):
    """A graph of MLIR text, as `pf.load` gives it."""
    f, x = pf.jit(function), np.linspace(0, 1, 8, dtype=np.float32)
    f(x, x)
    path = tmp_path / "graph.mlir"
    path.write_text(f.ir("graph"))
    return pf.load(path), x


def test_graphs_of_text_are_dispatched_in_emitted_code(tmp_path):
    f, x = loaded(tmp_path)
    for _ in range(4):
        np.testing.assert_allclose(f(x, x), np.tanh(x) + x, rtol=1e-6)
    assert f.state().emitted and f.state().tier == "optimized"
    long = np.linspace(0, 1, 9)
    for _ in range(3):
        np.testing.assert_allclose(f(long, long), np.tanh(long) + long)
    assert len(f._executors()) == 1 and f.state().counters["calls"] == 7
    out = np.empty_like(x)
    assert f.into(out, x, x) is out and out[0] == 0


def test_graphs_of_text_say_what_they_take(tmp_path):
    f, x = loaded(tmp_path)
    assert list(inspect.signature(f).parameters) == ["arg0", "arg1"]
    assert f.__doc__.startswith(f"The graph @{f.__name__}: it takes (")
    with pytest.raises(pf.ArgumentError, match=r"takes 2 arguments \(arg0: .*\), 1 given: \(f32\[\?\]\)"):
        f(x)
    with pytest.raises(pf.ArgumentError, match=r"takes positional arguments only \(arg0: .*\), not y"):
        f(x, y=x)
