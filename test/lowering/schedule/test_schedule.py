"""Kernels compute what tier 0 computes, for every way of laying out loops and memory."""

import re

import numpy as np
import pytest
from graphs import Graph, random_program, tensor
from native import Kernel, kernel_of
from profuse.dialect.errors import LoweringError
from profuse.dialect.ir.dtypes import F64, I64
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.cpu.cpu_stages import STAGES, compile_program
from profuse.lowering.stages import KernelCompile, run
from profuse.lowering.target import host_target

RNG = np.random.default_rng(11)
SIZES = [(33, 48), (1, 1), (1, 7), (5, 1), (0, 4), (4, 0), (3, 5000), (300, 1100)]


def build(program):
    return Kernel(compile_program(program, host_target(), keep_stages=True))


def as_double(args):
    return [a.astype(np.float64) if np.asarray(a).dtype == np.float32 else a for a in args]


def check(program, *args, kernel=None):
    """Within 4 times NumPy's own float32 error, or a few units in the last place."""
    kernel = kernel or build(program)
    evaluate = Evaluator(program)
    plain, exact = evaluate(args), evaluate(as_double(args))
    for found, numpy, true in zip(kernel(*args), plain, exact, strict=True):
        true = np.asarray(true)
        assert found.shape == true.shape
        if true.dtype.kind in "biu":
            np.testing.assert_array_equal(found, true)
            continue
        np.testing.assert_array_equal(np.isnan(found), np.isnan(true))
        finite = np.isfinite(true)
        scale = np.abs(true[finite]).max(initial=1e-30)
        error = np.abs(found[finite] - true[finite]).max(initial=0) / scale
        own = np.abs(np.asarray(numpy)[finite] - true[finite]).max(initial=0) / scale
        assert error <= 4 * own + 1e-6
    return kernel


# --- the functions that matter -------------------------------------------------------------------


def softmax(n, m):
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(1,), keepdims=True)))
    return g.returning(g.div(e, g.sum(e, axes=(1,), keepdims=True)))


def column_softmax(n, m):
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(0,), keepdims=True)))
    return g.returning(g.div(e, g.sum(e, axes=(0,), keepdims=True)))


def batch_norm(n, m):
    g = Graph(tensor(n, m), tensor(m), tensor(m))
    x, weight, bias = g.inputs
    d = g.sub(x, g.mean(x, axes=(0,), keepdims=True))
    v = g.mean(g.square(d), axes=(0,), keepdims=True)
    return g.returning(g.add(g.mul(g.div(d, g.sqrt(g.add(v, g.number(1e-5)))), weight), bias))


def gelu(n, m):
    g = Graph(tensor(n, m), tensor(m))
    x, b = g.inputs
    y = g.add(x, b)
    inner = g.add(y, g.mul(g.number(0.044715), g.mul(y, g.mul(y, y))))
    t = g.tanh(g.mul(g.number(0.7978845608), inner))
    return g.returning(g.mul(g.mul(g.number(0.5), y), g.add(g.number(1.0), t)))


def layernorm(n, m):
    g = Graph(tensor(n, m), tensor(m), tensor(m))
    x, weight, bias = g.inputs
    d = g.sub(x, g.mean(x, axes=(1,), keepdims=True))
    v = g.mean(g.square(d), axes=(1,), keepdims=True)
    y = g.div(d, g.sqrt(g.add(v, g.number(1e-5))))
    return g.returning(g.add(g.mul(y, weight), bias))


def rmsnorm(n, m):
    g = Graph(tensor(n, m), tensor(m))
    x, weight = g.inputs
    s = g.mean(g.square(x), axes=(1,), keepdims=True)
    return g.returning(g.mul(g.div(x, g.sqrt(g.add(s, g.number(1e-6)))), weight))


def cross_entropy(n, m):
    g = Graph(tensor(n, m), tensor(n, dtype=I64))
    x, labels = g.inputs
    top = g.max(x, axes=(1,), keepdims=True)
    total = g.sum(g.exp(g.sub(x, top)), axes=(1,))
    lse = g.add(g.log(total), g.squeeze(top, axes=(1,)))
    picked = g.squeeze(g.gather(x, g.expand_dims(labels, axes=(1,)), axis=1), axes=(1,))
    return g.returning(g.mean(g.sub(lse, picked)))


def column_sum(n, m):
    g = Graph(tensor(n, m))
    return g.returning(g.sum(g.square(g.inputs[0]), axes=(0,)))


def total(n, m):
    g = Graph(tensor(n, m))
    return g.returning(g.sum(g.inputs[0]))


def adam(n, m):
    g = Graph(*[tensor(n, m)] * 4, tensor(1), tensor(1))
    p, grad, m1, v1, rate, correction = g.inputs
    m2 = g.add(g.mul(g.number(0.9), m1), g.mul(g.number(0.1), grad))
    v2 = g.add(g.mul(g.number(0.999), g.abs(v1)), g.mul(g.number(0.001), g.square(grad)))
    scale = g.sub(g.number(1.5), g.tanh(correction))
    root = g.add(g.sqrt(g.div(v2, scale)), g.number(1e-8))
    step = g.div(g.mul(rate, g.div(m2, scale)), root)
    return g.returning(g.sub(p, step), m2, v2)


def transposed(n, m):
    g = Graph(tensor(n, m), tensor(m, n))
    x, y = g.inputs
    return g.returning(g.add(g.transpose(x, perm=(1, 0)), g.tanh(y)))


def joined(n, m):
    g = Graph(tensor(n, m), tensor(n, m))
    x, y = g.inputs
    both = g.concatenate(g.tanh(x), y, axis=1)
    return g.returning(g.sum(both, axes=(1,)), both)


FUNCTIONS = (
    softmax,
    column_softmax,
    batch_norm,
    gelu,
    layernorm,
    rmsnorm,
    cross_entropy,
    column_sum,
    total,
    adam,
    transposed,
    joined,
)
ONE_NEST = (softmax, gelu, layernorm, rmsnorm, column_sum, total, adam, transposed)


def arguments(program, n, m):
    sizes = {"n": n, "m": m}
    rng = np.random.default_rng(11)  # the same numbers whatever has run before
    args = []
    for value in program.inputs:
        type_ = program.type_of(value)
        shape = [sizes.get(str(d), d) for d in type_.shape]
        if type_.dtype is I64:
            args.append(rng.integers(0, max(m, 1), shape))
        else:
            args.append(rng.standard_normal([int(s) for s in shape]).astype(np.float32))
    return args


def has_no_maximum(function, size):
    over = {softmax: 1, cross_entropy: 1, column_softmax: 0}
    return function in over and size[over[function]] == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", SIZES)
def test_static(function, size):
    if has_no_maximum(function, size):
        pytest.skip("maximum of nothing")
    program = function(*size)
    check(program, *arguments(program, *size))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_dynamic(function):
    program = function("n", "m")
    kernel = build(program)
    for size in SIZES:
        if has_no_maximum(function, size):
            continue
        check(program, *arguments(program, *size), kernel=kernel)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", ONE_NEST)
def test_one_nest_and_no_full_size_temporary(function):
    kernel = build(function(64, 96))
    assert kernel.stages["loops"].count("func.func @") == 2  # the entry and one nest
    assert kernel.artifact.abi.workspace == "0"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("batch", [(1, 3), (3, 1), (1, 1), (3, 2)])
def test_axes_of_size_1_keep_nothing_apart(batch):
    """A batch of one array is normalised in one nest, as other batches are."""
    g = Graph(tensor(*batch, 64, 96))
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(3,), keepdims=True)))
    program = g.returning(g.div(e, g.sum(e, axes=(3,), keepdims=True)))
    kernel = check(program, np.random.default_rng(0).standard_normal((*batch, 64, 96), np.float32))
    assert kernel.stages["loops"].count("func.func @") == 2
    assert kernel.artifact.abi.workspace == "0"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", [(64, 96), ("n", "m")])
@pytest.mark.parametrize("function", [column_softmax, batch_norm, column_sum])
def test_rows_stay_innermost_where_columns_are_reduced(function, sizes):
    """Also in operations that read the reductions' results: no inner loop strides over rows."""
    loops = build(function(*sizes)).stages["loops"]
    innermost = re.findall(r"scf\.for (%\w+) = [^{]*\{([^{}]*llvm\.load[^{}]*)\}", loops)
    assert innermost
    for counter, body in innermost:
        assert not re.search(rf"arith\.muli .*{counter}\b", body), body


# --- layouts -------------------------------------------------------------------------------------

LAYOUTS = {
    "transposed": lambda a: np.asfortranarray(a),
    "sliced": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("function", [softmax, layernorm, column_sum, transposed])
def test_strides(function, layout, known):
    n, m = 37, 50
    array = LAYOUTS[layout](RNG.standard_normal((n, m)).astype(np.float32))
    strides = tuple(s // 4 for s in array.strides) if known else (None, None)
    program = function(n, m)
    first = program.inputs[0]
    program.types[first] = tensor(n, m, strides=strides)
    check(program, array, *arguments(program, n, m)[1:])


# --- accuracy ------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1 << 20,), (3, 1 << 18), (1 << 18, 3), (64, 64, 64)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_long_sums_are_as_close_as_numpys(shape, symbolic):
    g = Graph(tensor(*("abc"[k] if symbolic else s for k, s in enumerate(shape))))
    (x,) = g.inputs
    program = g.returning(g.sum(x), g.sum(x, axes=(len(shape) - 1,)), g.mean(g.square(x)))
    check(program, RNG.random(shape).astype(np.float32))


def test_nan_and_infinity_propagate():
    program = softmax(4, 40)
    x = RNG.standard_normal((4, 40)).astype(np.float32)
    x[1, 7], x[2, 3], x[3, 0] = np.nan, -np.inf, np.inf
    check(program, x)
    g = Graph(tensor(5, 33))
    program = g.returning(*(getattr(g, f)(g.inputs[0], axes=(1,)) for f in ("max", "min", "sum")))
    y = np.zeros((5, 33), np.float32)
    y[0, 32], y[1, 0], y[2, 5], y[3, 31] = np.nan, np.inf, -np.inf, -np.nan
    check(program, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("divisor", [1.5, 3e38, 1e-39, 0.0, -0.0, np.inf, np.nan, -2.5, 1e-30])
def test_division_by_a_row_value(divisor):
    """Reciprocals are used only where the quotient comes out the same."""
    g = Graph(tensor(3, 200), tensor(3, 1))
    program = g.returning(g.div(*g.inputs))
    x = RNG.standard_normal((3, 200)).astype(np.float32)
    x[:, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-20]
    rows = np.array([[divisor], [7.0], [-0.3]], np.float32)
    (found,) = build(program)(x, rows)
    with np.errstate(all="ignore"):
        expected = x / rows
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


# --- random graphs -------------------------------------------------------------------------------


@pytest.mark.sampled(12, each=())
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    rng = np.random.default_rng(1000 + seed)
    sizes = {a: int(rng.choice([1, 2, 3, 5, 16, 33, 64])) for a in "abc"[: rng.integers(1, 4)]}
    symbolic = [a for a in sizes if rng.random() < 0.4]
    program, args = random_program(rng, sizes, symbolic, steps=int(rng.integers(2, 14)))
    check(program, *args)


# --- products ------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "left, right",
    [
        ((5, 7), (7, 3)),
        ((7,), (7, 3)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        ((2, 5, 17), (2, 17, 3)),
        ((2, 5, 7), (7, 3)),
        ((1, 1), (1, 1)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 4)),
    ],
)
def test_products(left, right, dtype):
    kind = F64 if dtype is np.float64 else tensor().dtype
    g = Graph(tensor(*left, dtype=kind), tensor(*right, dtype=kind))
    program = g.returning(g.matmul(*g.inputs))
    a, b = RNG.standard_normal(left).astype(dtype), RNG.standard_normal(right).astype(dtype)
    kernel = build(program)
    # Nothing to sum up is a fill, and rows in f64 are added up by loops.
    is_call = left[-1] > 0 and not (len(left) == 1 < len(right) and dtype is np.float64)
    assert kernel.artifact.library_calls == is_call
    np.testing.assert_allclose(kernel(a, b)[0], a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["plain", *LAYOUTS])
def test_product_operands_of_any_layout(layout):
    a = RNG.standard_normal((6, 8)).astype(np.float32)
    a = LAYOUTS[layout](a) if layout != "plain" else a
    b = RNG.standard_normal((9, 8)).astype(np.float32)
    g = Graph(tensor(6, 8, strides=tuple(s // 4 for s in a.strides)), tensor(9, 8))
    x, y = g.inputs
    product = g.matmul(x, g.transpose(y, perm=(1, 0)))
    kernel = build(g.returning(g.tanh(product)))
    np.testing.assert_allclose(kernel(a, b)[0], np.tanh(a @ b.T), rtol=1e-5, atol=1e-5)


# --- linalg written by hand ----------------------------------------------------------------------


def test_affine_maps_and_captured_scalars():
    """Strided and constant indices, a scalar computed outside, two results, an inner branch."""
    kernel = kernel_of("""
      func.func @f(%x: tensor<9x12xf32> {profuse.strides = "contiguous"},
                   %k: tensor<f64> {profuse.scalar}) -> (tensor<4x12xf32>, tensor<4x12xf32>) {
        %v = tensor.extract %k[] : tensor<f64>
        %w = arith.truncf %v : f64 to f32
        %e = tensor.empty() : tensor<4x12xf32>
        %a, %b = linalg.generic {
            indexing_maps = [affine_map<(i, j) -> (i * 2 + 1, j)>, affine_map<(i, j) -> (0, j)>,
                             affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
            iterator_types = ["parallel", "parallel"]}
            ins(%x, %x : tensor<9x12xf32>, tensor<9x12xf32>)
            outs(%e, %e : tensor<4x12xf32>, tensor<4x12xf32>) {
          ^bb0(%p: f32, %q: f32, %o0: f32, %o1: f32):
            %s = arith.mulf %p, %w : f32
            %i = linalg.index 0 : index
            %j = linalg.index 1 : index
            %six = arith.constant 6 : index
            %low = arith.cmpi ult, %j, %six : index
            %r = scf.if %low -> f32 {
              %t = arith.addi %j, %six : index
              %y = tensor.extract %x[%i, %t] : tensor<9x12xf32>
              scf.yield %y : f32
            } else {
              scf.yield %q : f32
            }
            linalg.yield %s, %r : f32, f32
        } -> (tensor<4x12xf32>, tensor<4x12xf32>)
        return %a, %b : tensor<4x12xf32>, tensor<4x12xf32>
      }""")
    x = RNG.standard_normal((9, 12)).astype(np.float32)
    first, second = kernel(x, 2.5)
    np.testing.assert_array_equal(first, x[1:8:2] * np.float32(2.5))
    expected = np.where(np.arange(12) < 6, np.roll(x[:4], -6, axis=1), x[0])
    np.testing.assert_array_equal(second, expected)


def test_what_cannot_be_scheduled_is_refused():
    for body in (
        "%r = tensor.pad %x low[1] high[1] { ^bb0(%i: index): %c = arith.constant 0.0 : f32 "
        "tensor.yield %c : f32 } : tensor<4xf32> to tensor<6xf32>",
        "%r = tensor.cast %x : tensor<4xf32> to tensor<?xf32>",
    ):
        with pytest.raises(LoweringError):
            kernel_of(f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{{body}\n return %x : tensor<4xf32> }}")


def test_product_onto_an_accumulator():
    kernel = kernel_of("""
      func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>)
          -> (tensor<3x5xf32>, tensor<3x5xf32>) {
        %r = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>)
                           outs(%c : tensor<3x5xf32>) -> tensor<3x5xf32>
        %s = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>)
                           outs(%r : tensor<3x5xf32>) -> tensor<3x5xf32>
        return %r, %s : tensor<3x5xf32>, tensor<3x5xf32>
      }""")
    a, b, c = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5), (3, 5)))
    once, twice = kernel(a, b, c)
    np.testing.assert_allclose(once, c + a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(twice, c + 2 * (a @ b), rtol=1e-5, atol=1e-5)


def test_stages_that_are_none_are_named():
    with pytest.raises(LoweringError, match=r"(?s)no stage 'ptx' here.*use one of graph, linalg, loops, llvm, object"):
        run(STAGES, None, KernelCompile(), at="ptx")
