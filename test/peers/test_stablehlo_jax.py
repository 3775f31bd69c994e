"""StableHLO modules that jax writes, against jax: values, dtypes, shapes, gradients, symbolic sizes.

What runs is listed in `stablehlo_functions.txt`, which may only grow; skipped without jax.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.errors import ProfuseError, ShapeError, TraceError

jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402
from jax_functions import FUNCTIONS, GRADIENTS  # noqa: E402
from random_lax import MAKERS, checked, different  # noqa: E402

LIST = Path(__file__).with_name("stablehlo_functions.txt")
RUNS = LIST.read_text(encoding="utf-8").split()
QUICK = ("mlp", "attention", "lstm", "conv_t", "index", "at_set", "sort", "random", "intdiv", "maxpool", "while2")
QUICK += ("lu", "qr", "conv3d", "conv_empty")
DIMENSION = jax.ShapeDtypeStruct


@pytest.mark.parametrize("name", RUNS if EVERY_CASE else QUICK)
def test_a_function_of_jax(name, tmp_path):
    function, *args = FUNCTIONS[name]
    difference, ours = checked(function, tuple(args), tmp_path, calls=3)
    assert difference == ""
    state = ours.state()
    assert state.tier == "optimized" and state.counters.get("python_calls", 0) == 0


def test_loops_between_numbers_of_the_module_read_none_in_a_run(tmp_path):
    function, *args = FUNCTIONS["runge_kutta"]
    difference, ours = checked(function, tuple(args), tmp_path, calls=3)
    assert difference == "" and "profuse.item" not in ours.ir("graph")
    assert ours.state().counters["kernel_launches"] == 2  # the whole loop is one kernel


def test_what_runs_is_listed_and_nothing_that_does_not():
    assert set(QUICK) <= set(RUNS) == set(FUNCTIONS)
    assert len(RUNS) >= 123


@pytest.mark.parametrize("name", GRADIENTS if EVERY_CASE else GRADIENTS[:3])
def test_gradients_are_those_of_jax(name, tmp_path):
    """Those of our function, and the module that jax writes of its own."""
    function, *args = FUNCTIONS[name]
    places = [k for k, x in enumerate(args) if x.dtype == np.float32]
    outputs = jax.tree.leaves(jax.eval_shape(function, *args))
    are_floats = [o.dtype == np.float32 for o in outputs]
    weights = [np.linspace(-1, 1, max(int(np.prod(o.shape)), 1)).reshape(o.shape).astype(np.float32) for o in outputs]

    def total(np_, function):
        def summed(*floats):
            full = list(args)
            for k, x in zip(places, floats, strict=True):
                full[k] = x
            results = jax.tree.leaves(function(*full)) if np_ is jnp else function(*full)
            results = results if isinstance(results, (tuple, list)) else (results,)
            return sum(np_.sum(r * w) for r, w, counts in zip(results, weights, are_floats, strict=True) if counts)

        return summed

    floats = [args[k] for k in places]
    numbers = tuple(range(len(places)))
    difference, ours = checked(function, tuple(args), tmp_path)
    assert difference == ""
    wanted = jax.jit(jax.grad(total(jnp, function), numbers))(*floats)
    gradient = pf.jit(pf.grad(total(np, ours), numbers), background=False)
    for _ in range(2):
        assert different(gradient(*floats), wanted) == ""
    difference, _ = checked(jax.grad(total(jnp, function), numbers), tuple(floats), tmp_path)
    assert difference == ""


def saved(tmp_path, function, *types):
    path = tmp_path / "symbolic.mlir"
    path.write_bytes(export.export(jax.jit(function))(*types).mlir_module_serialized)
    return pf.load(path, background=False)


SYMBOLIC = {
    "softmax": (lambda x, w: jax.nn.softmax(jnp.tanh(x @ w)), "b, 8", "8, 3"),
    "attention": (jax.nn.dot_product_attention, "b, n, 2, 4", "b, n, 2, 4", "b, n, 2, 4"),
    "moments": (lambda x: (x.mean(), x.std(0), x - x.mean(1, keepdims=True)), "b, n"),
    "concatenate": (lambda x, y: jnp.concatenate([x, y]), "b, 4", "n, 4"),
    "arange": (lambda x: x + jnp.arange(x.shape[0], dtype=np.float32)[:, None], "b, 4"),
    "slices": (lambda x: x[1:] - x[:-1], "b, 4"),
    "halves": (lambda x: x.reshape(x.shape[0] // 2, 2, 4).sum(1), "2*b, 4"),
}


@pytest.mark.parametrize("name", SYMBOLIC if EVERY_CASE else ("softmax", "halves"))
def test_one_graph_serves_all_sizes(name, tmp_path):
    function, *shapes = SYMBOLIC[name]
    scope = export.SymbolicScope()
    types = [DIMENSION(export.symbolic_shape(shape, scope=scope), np.float32) for shape in shapes]
    ours = saved(tmp_path, function, *types)
    rng = np.random.default_rng(0)
    for b, n in ((2, 3), (3, 5), (6, 4), (4, 2)):
        numbers = [eval(f"({shape},)", {"b": b, "n": n}) for shape in shapes]
        args = [rng.standard_normal(shape).astype(np.float32) for shape in numbers]
        wanted = jax.tree.leaves(jax.jit(function)(*args))
        for _ in range(2):
            found = ours(*args)
            assert different(found if isinstance(found, tuple) else (found,), wanted) == ""
    assert ours.state().counters["traces"] == 1


def test_what_a_module_asserts_of_sizes_is_an_error(tmp_path):
    ours = saved(tmp_path, SYMBOLIC["halves"][0], DIMENSION(export.symbolic_shape("2*b, 4"), np.float32))
    with pytest.raises(ShapeError, match="Division had remainder 1"):
        ours(np.ones((3, 4), np.float32))


def test_other_forms_of_a_module(tmp_path):
    """Text as jax prints it, and what is no module."""
    exported = export.export(jax.jit(jnp.tanh))(DIMENSION((3,), np.float32))
    path = tmp_path / "text.mlir"
    path.write_text(exported.mlir_module(), encoding="utf-8")
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(pf.load(path)(x), np.tanh(x), rtol=1e-6)
    path.write_bytes(exported.mlir_module_serialized[:60])
    with pytest.raises(ProfuseError, match="is no module of StableHLO"):
        pf.load(path)


def test_what_is_refused_is_named(tmp_path):
    matrix = np.eye(3, dtype=np.float32)
    calls = {"lapack_sgeev_ffi": jnp.linalg.eig, "lapack_sgees_ffi": jax.scipy.linalg.schur}
    for text, function in calls.items():
        with pytest.raises(TraceError, match=re.escape(text)):
            checked(function, (matrix,), tmp_path)


@pytest.mark.parametrize("number", range(60 if EVERY_CASE else 6))
def test_random_ops(number, tmp_path):
    rng = np.random.default_rng([3, number])
    name, function, args = MAKERS[number * 3 % len(MAKERS)](rng)
    try:
        jax.jit(function)(*args)
    except (TypeError, ValueError):
        return  # jax refuses these numbers
    difference, _ = checked(function, args, tmp_path)
    assert difference == "", name


def test_bytecode_that_is_cut_short(tmp_path, capfd):
    """The error names the file and the reason, which MLIR would write to stderr."""
    exported = export.export(jax.jit(lambda x: x + 1))(DIMENSION((2,), jnp.float32))
    path = tmp_path / "model.mlirbc"
    path.write_bytes(exported.mlir_module_serialized[:-20])
    with pytest.raises(ProfuseError, match="attempting to parse") as info:
        pf.load(path)
    assert str(path) in info.value.what and info.value.hint
    assert "attempting" not in capfd.readouterr().err


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32], ids=lambda dtype: dtype.__name__)
def test_nan_is_sorted_last(dtype, tmp_path):
    def ordered(x):
        return jnp.sort(x), jnp.argsort(x), -jnp.sort(-x), jax.lax.top_k(x, 3)[0]

    x = jnp.asarray([3.0, np.nan, -np.inf, 1.0, 0.0, np.inf, np.nan], dtype)
    exported = export.export(jax.jit(ordered))(DIMENSION(x.shape, dtype))
    (tmp_path / "ordered.mlir").write_bytes(exported.mlir_module_serialized)
    f = pf.load(tmp_path / "ordered.mlir", background=False)
    for _ in range(3):
        for ours, theirs in zip(f(np.asarray(x)), ordered(x), strict=True):
            np.testing.assert_array_equal(np.asarray(ours, np.float64), np.asarray(theirs, np.float64))
            assert ours.dtype == theirs.dtype
