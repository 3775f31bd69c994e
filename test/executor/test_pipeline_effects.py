"""What the named pipelines do to functions that run: same values, and the passes' effect."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.dialect.errors import IRError, ShapeError


def sum_of_products(a, b, c, d):
    return (a @ b + c @ d) + ((b.T @ a.T).T + a @ d)


def factors(dtype, rows, inner, columns):
    rng = np.random.default_rng(rows + inner)
    sizes = ((rows, inner), (inner, columns), (rows, inner), (inner, columns))
    return [rng.integers(-3, 4, s).astype(dtype) for s in sizes]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1", "?"])
@pytest.mark.parametrize(("inner", "library_calls"), [(4, 1), (64, 4)])
def test_products_are_batched_where_that_pays(dtype, inner, library_calls):
    """R1.47: one wide product for flat shapes, one by one for deep ones; NumPy's values."""
    f = pf.jit(sum_of_products)
    args = factors(dtype, 16, inner, 16)
    wanted = sum_of_products(*args)
    for _ in range(3):
        found = f(*args)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)  # small integers add up exactly
    assert '"profuse.mm_tree"' in executor_of(f).result.ir
    assert f.state().counters["kernel_launches"] == 2
    if dtype in ("f4", "f8", "f2"):
        assert f.state().counters["library_calls"] == 2 * library_calls


def test_batched_products_follow_the_shapes_of_the_call():
    """R1.47: a fallback of the specialised sum decides anew, sum by sum."""
    f = pf.jit(lambda a, b, c, d, e: a @ b + a @ c + a @ d + a @ e, strategy=[("static", 2)])
    rng = np.random.default_rng(0)

    def check(rows, inner, last):
        a, b, _, d = factors("f4", rows, inner, 16)
        args = (a, b, d, b, rng.integers(-3, 4, last).astype("f4"))
        np.testing.assert_array_equal(f(*args), a @ b + a @ d + a @ b + a @ args[-1])

    for _ in range(2):
        check(16, 4, (4, 16))
        check(8, 64, (64, 16))
        check(8, 4, (4, 1))  # the last product is a column: it broadcasts
    assert f.state().remaining_depth == 0


def test_wide_products_are_exact_for_depth_0():
    """R1.47: tier 0 decides the same way; a transposed sum keeps NumPy's order of addition."""
    from profuse.dialect.ir.op import op_named

    tree = op_named("mm_tree")
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 8, 64)), rng.standard_normal((2, 64, 8))
    attrs = {"adds": (0, 1), "transposed": (True, False)}
    args = (*a, *b)
    assert np.array_equal(tree.evaluate(attrs, *args), (a[0] @ b[0]).T + a[1] @ b[1])
    wide = (a[0][:, :2], a[1][:, :2], b[0][:2], b[1][:2])
    expected = (wide[0] @ wide[2]).T + wide[1] @ wide[3]
    np.testing.assert_allclose(tree.evaluate(attrs, *wide), expected, rtol=1e-13)


@pytest.mark.parametrize("trips", [0, 1, 5, 63, 64, 70])
def test_unrolled_loops_compute_the_same(trips):
    """R1.47: constant trip counts, below and above the limit of full unrolling."""

    def step(i, x):
        return x + i

    f = pf.jit(lambda x: pf.fori_loop(0, trips, step, x))
    x = np.arange(4.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x + sum(range(trips)))
    assert ("scf.for" in executor_of(f).result.ir) == (trips >= 64)


def test_loops_of_unknown_trip_count_are_unrolled_by_eight():
    """R1.47: eight trips at a time, then a loop for the rest, whatever the count is.

    The product keeps the loop out of kernels.
    """
    f = pf.jit(lambda n, a, x: pf.fori_loop(0, n, lambda i, y: a @ y - i, x))
    a, x = np.diag(np.full(3, 2, np.float32)), np.ones(3, np.float32)
    for n in (0, 3, 3, 8, 9, 17, 0):
        expected = x
        for i in range(n):
            expected = expected * 2 - i
        np.testing.assert_array_equal(f(n, a, x), expected)
    assert executor_of(f).result.ir.count("scf.for") == 2


def test_loops_in_kernels_are_not_unrolled_before():
    """R1.47: LLVM sees such a loop whole."""
    f = pf.jit(lambda n, x: pf.fori_loop(0, n, lambda i, y: y * 2 - i, x))
    x = np.ones(3, np.float32)
    for n in (0, 3, 3, 8, 9, 17, 0):
        expected = x
        for i in range(n):
            expected = expected * 2 - i
        np.testing.assert_array_equal(f(n, x), expected)
    assert executor_of(f).result.ir.count("scf.for") == 2  # in the group, and in its fallback


def test_equal_ops_merge_behind_their_observers():
    """R1.24: common subexpressions are found with the observers in place."""
    f = pf.jit(lambda x: (np.exp(x) + 1) * (np.exp(x) + 1))
    x = np.ones(4, np.float32)
    for _ in range(2):
        np.testing.assert_allclose(f(x), (np.exp(x) + 1) ** 2, rtol=1e-6)
    text = executor_of(f).result.ir
    assert executor_of(f).request.ir.count('"profuse.exp"') == 2
    assert text.count('"profuse.exp"') == 2  # one in the kernel, one in the fallback


def load(tmp_path, text):
    path = tmp_path / "graph.mlir"
    path.write_text(text)
    return pf.load(str(path))


def test_loaded_graphs_may_call_and_hold_gradient_blocks(tmp_path):
    """R1.8, R1.24: calls are inlined and gradient blocks lowered before anything runs."""
    f = load(
        tmp_path,
        """
func.func private @square(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func @main(%x: !profuse.tensor, %g: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %a = func.call @square(%x) : (!profuse.tensor) -> !profuse.tensor
  %z = "profuse.autograd_zero"() : () -> !profuse.tensor
  %0 = "profuse.grad_of"(%g, %z) ({
    %1 = "profuse.mul"(%g, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    "profuse.yield"(%1) : (!profuse.tensor) -> ()
  }) {forward = "mul"} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %n = "profuse.grad_of"(%z) ({
    %1 = "profuse.exp"(%z) : (!profuse.tensor) -> !profuse.tensor
    "profuse.yield"(%1) : (!profuse.tensor) -> ()
  }) {forward = "exp"} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.autograd_add"(%0, %n) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %a, %s : !profuse.tensor, !profuse.tensor
}
""",
    )
    x, g = np.arange(6.0).reshape(2, 3), np.full((2, 3), 2.0)
    for _ in range(3):
        squared, gradient = f(x, g)
        np.testing.assert_array_equal(squared, x * x)
        np.testing.assert_array_equal(gradient, g * x)
    # The block of which no gradient arrives is gone, with its addition.
    assert "profuse.exp" not in f.ir("optimized") and "autograd_add" not in f.ir("optimized")


def test_a_call_of_itself_cannot_be_loaded(tmp_path):
    """R1.24: located, and no endless inlining."""
    with pytest.raises(IRError, match="@main calls itself") as caught:
        load(
            tmp_path,
            """
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = func.call @main(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
""",
        )
    assert caught.value.loc is not None and caught.value.loc.line == 3


LISTS = """
func.func @main(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  "profuse.list_append"(%l, %y) : (!profuse.list, !profuse.tensor) -> ()
  %u:2 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor)
  %s = "profuse.sub"(%u#1, %u#0) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %s : !profuse.tensor
}
"""


def test_lists_go_before_anything_is_fused(tmp_path):
    """R1.26, R1.36: a grown list becomes one list, that list its items, these the group's."""
    f = load(tmp_path, LISTS)
    x, y = np.arange(4.0), np.ones(4)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, y), y - x)
    assert "list" not in f.ir("optimized")
    assert f.state().counters["kernels_compiled"] == 1


def test_a_list_of_another_length_is_refused_where_it_is_unpacked(tmp_path):
    f = load(tmp_path, LISTS.replace('  "profuse.list_append"', '  // "profuse.list_append"'))
    for _ in range(3):
        with pytest.raises(ShapeError, match="list_unpack gives 1 values where the graph has 2"):
            f(np.ones(4), np.ones(4))


def test_a_branch_that_only_chooses_is_no_branch():
    """R1.45: in the final plan it is an op; what it returns is the caller's own."""
    f = pf.jit(lambda c, x, y: pf.cond(c > 0, lambda a, b: a, lambda a, b: b, x, y))
    x, y = np.ones(3), np.zeros(3)
    for c in (1, 1, -1):
        found = f(np.float64(c), x, y)
        np.testing.assert_array_equal(found, x if c > 0 else y)
        assert not np.shares_memory(found, x) and not np.shares_memory(found, y)
    text = executor_of(f).result.ir
    assert '"profuse.if_then_else"' in text and text.count("scf.if") <= text.count("type_check")


# --- rewrites that need types ------------------------------------------------------------------


def ops_of(f, function: str) -> list[str]:
    """Names of the ops in a function of the optimised graph."""
    program = executor_of(f).result.module.functions[function]
    return [instr.op.name for instr in program.body.walk()]


@pytest.mark.parametrize(
    ("fn", "fused", "plain"),
    [
        (lambda x, y: x.std(), ["var", "sqrt"], ["std"]),
        (lambda x, y: (x.std(axis=1), x.var(axis=1)), ["var", "sqrt"], ["std", "var"]),
        (lambda x, y: x + -y, ["sub"], ["neg", "add"]),
        (lambda x, y: x - -y, ["add"], ["neg", "sub"]),
        (lambda x, y: (x * np.float32(2)) * 2, ["constant", "mul", "mul"], ["constant", "mul", "constant", "mul"]),
        (lambda x, y: x + np.broadcast_to(y, (3, 4)), ["add"], ["broadcast_to", "add"]),
    ],
)
def test_rewrites_that_need_types_happen_in_groups(fn, fused, plain):
    """R1.24, R1.26, R1.47: once types are known, and where a guard makes facts of them.

    The fallback keeps the ops as they were written: it is right for other sizes.
    """
    f = pf.jit(fn)
    x, y = np.linspace(-2, 3, 12, dtype="f4").reshape(3, 4), np.arange(4, dtype="f4")
    for a, b in ((x, y), (x, y), (x[:1], y), (x[:1], y[:1]), (x, y)):
        ours, wanted = f(a, b), fn(a, b)
        for found, numpy in zip(np.atleast_1d(ours), np.atleast_1d(wanted), strict=True):
            np.testing.assert_allclose(found, numpy, rtol=1e-6)
        assert np.shape(ours) == np.shape(wanted)
    assert ops_of(f, "fusion_0") == fused
    assert ops_of(f, "fallback_0") == plain
    assert f.state().counters["kernel_launches"] >= 2


HALF = """
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %two = "profuse.constant"() {value = dense<2.0> : tensor<f32>} : () -> !profuse.tensor
  %0 = "profuse.mul"(%x, %two) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
"""


def test_a_0d_constant_still_promotes_where_the_dtype_is_another(tmp_path):
    """R1.47: f32 by f32 may as well be by a number; f16 by f32 is f32."""
    f = load(tmp_path, HALF)
    for dtype in ("f4", "f4", "f2", "f2"):
        x = np.arange(4, dtype=dtype)
        found = f(x)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, x * np.float32(2))
    assert f.state().counters["guard_misses"] == 2
