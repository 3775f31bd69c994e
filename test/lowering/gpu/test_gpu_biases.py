"""Products on GPUs that take in a bias compute what products and additions do."""

import numpy as np
import pytest
from emulation import Emulated
from graphs import Graph, tensor
from needs import needs_ptxas
from profuse.dialect.ir.dtypes import BF16, F16, F32, F64
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.gpu.artifact import GpuArtifact
from profuse.lowering.gpu.gpu_module import emit_gpu
from profuse.lowering.gpu.gpu_stages import compile_gpu
from profuse.lowering.gpu.launch_plan import LibraryProduct
from simt import parse, run

SIZES = {"n": 6, "m": 9}
RNG = np.random.default_rng(5)


def random(dtype, *shapes):
    shapes = [[SIZES.get(n, n) for n in shape] for shape in shapes]
    return [RNG.standard_normal(shape).astype(dtype.numpy) for shape in shapes]


def linear(*shapes, dtype=F32, bias=None):
    """``x @ w + b``."""
    g = Graph(*[tensor(*s, dtype=dtype) for s in shapes[:2]], tensor(*shapes[2], dtype=bias or dtype))
    x, w, b = g.inputs
    return g.returning(g.add(g.matmul(x, w), b))


def check(program, args, tolerance=1e-6):
    kernels = Emulated(program)
    exact = Evaluator(program)([a.astype(np.float64) for a in args])
    plain = Evaluator(program)(args)
    for mine, wanted, numpy in zip(kernels(*args), exact, plain, strict=True):
        assert (mine.dtype, mine.shape) == (np.asarray(numpy).dtype, np.asarray(numpy).shape)
        np.testing.assert_allclose(mine.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
    return kernels


SHAPES = {
    "static": [(5, 7), (7, 3), (3,)],
    "dynamic": [("n", 7), (7, "m"), ("m",)],
    "one row": [(1, 7), (7, 3), (3,)],
    "row of rank 2": [("n", 7), (7, "m"), (1, "m")],
    "rows of a batch": [(2, "n", 7), (7, "m"), ("m",)],
    "batches of batches": [(2, 3, "n", 7), (7, 4), (4,)],
    "batch": [(2, "n", 7), (2, 7, "m"), ("m",)],
}


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_one_step(name, dtype):
    kernels = check(linear(*SHAPES[name], dtype=dtype), random(dtype, *SHAPES[name]))
    (step,) = kernels.plan.steps
    assert (step.dtype, step.bias.argument, step.output.argument) == (str(dtype), ("input", 2), ("output", 0))


def test_sums_of_nothing_are_the_bias():
    shapes = [("n", 0), (0, 3), (3,)]
    kernels = check(linear(*shapes), random(F32, *shapes))
    assert not any(isinstance(step, LibraryProduct) for step in kernels.plan.steps)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_halves_with_a_sum_in_f32(dtype):
    """NumPy multiplies bf16 in f32; f16 have to be asked to."""
    g = Graph(tensor(5, 7, dtype=dtype), tensor(7, 3, dtype=dtype), tensor(3))
    x, w, b = g.inputs
    program = g.returning(g.add(g.matmul(*(g.cast(v, dtype=F32) for v in (x, w))), b))
    args = [*random(dtype, (5, 7), (7, 3)), *random(F32, (3,))]
    (step,) = check(program, args, 1e-5).plan.steps
    assert (step.dtype, step.output_dtype, step.bias.argument) == (str(dtype), "f32", ("input", 2))


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", ["static", "dynamic", "row of rank 2", "rows of a batch", "batch"])
def test_halves_whose_sum_is_rounded(name, dtype):
    """As mixed precision is written: in f32 until the result."""
    shapes = SHAPES[name]
    g = Graph(*[tensor(*shape, dtype=dtype) for shape in shapes])
    x, w, b = (g.cast(v, dtype=F32) for v in g.inputs)
    program = g.returning(g.cast(g.add(g.matmul(x, w), b), dtype=dtype))
    (step,) = check(program, random(dtype, *shapes), 1e-2).plan.steps
    assert (step.dtype, step.output_dtype, step.bias.argument) == (str(dtype), str(dtype), ("input", 2))


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_a_rounded_sum_is_rounded_once(dtype):
    """The product alone would be rounded to even, up, and the bias lost in it."""
    one = 2.0 ** (11 if dtype is F16 else 8)  # from here on neighbours are 2 apart
    g = Graph(*[tensor(*shape, dtype=dtype) for shape in [(1, 2), (2, 2), (2,)]])
    x, w, b = (g.cast(v, dtype=F32) for v in g.inputs)
    kernels = Emulated(g.returning(g.cast(g.add(g.matmul(x, w), b), dtype=dtype)))
    args = [[[one, 3]], [[1, 1], [1, 1]], [-0.5, 0.5]]
    (found,) = kernels(*(np.array(v, dtype.numpy) for v in args))
    assert found.astype(float).tolist() == [[one + 2, one + 4]]
    assert kernels.used == {"matmul"}


def test_a_bias_of_another_half_is_added_by_a_kernel():
    g = Graph(tensor(5, 7, dtype=BF16), tensor(7, 3, dtype=BF16), tensor(3, dtype=F16))
    x, w, b = (g.cast(v, dtype=F32) for v in g.inputs)
    program = g.returning(g.cast(g.add(g.matmul(x, w), b), dtype=BF16))
    kernels = check(program, [*random(BF16, (5, 7), (7, 3)), *random(F16, (3,))], 1e-2)
    (product,) = [s for s in kernels.plan.steps if isinstance(s, LibraryProduct)]
    assert (product.wide, product.bias) == (True, None)


def test_a_bias_that_is_read_wide_as_well():
    g = Graph(*[tensor(*shape, dtype=BF16) for shape in [(5, 7), (7, 3), (3,)]])
    x, w, b = (g.cast(v, dtype=F32) for v in g.inputs)
    program = g.returning(g.cast(g.add(g.matmul(x, w), b), dtype=BF16), g.tanh(b))
    kernels = check(program, random(BF16, (5, 7), (7, 3), (3,)), 1e-2)
    (product,) = [s for s in kernels.plan.steps if isinstance(s, LibraryProduct)]
    assert (product.output_dtype, product.bias.argument) == ("bf16", ("input", 2))


def test_a_bias_of_another_dtype_is_converted_first():
    kernels = check(linear((5, 7), (7, 3), (3,), dtype=BF16), random(BF16, (5, 7), (7, 3), (3,)))
    assert kernels.used == {"kernel_nest0", "matmul"}
    assert kernels.plan.steps[-1].bias.argument == ("workspace", "0", "f32")


def test_f16_is_rounded_before_the_bias_is_added():
    """2048 + 1 is 2048 in f16, and then 2047 with -1; at once it would be 2048."""
    program = linear((1, 2), (2, 1), (1,), dtype=F16)
    args = [np.array(v, np.float16) for v in ([[2048, 1]], [[1], [1]], [-1])]
    kernels = Emulated(program)
    assert kernels(*args)[0].item() == Evaluator(program)(args)[0].item() == 2047
    (product,) = [s for s in kernels.plan.steps if isinstance(s, LibraryProduct)]
    assert product.bias is None


def test_biases_of_any_layout():
    """With gaps, backwards, or strides that calls decide: copied, by a kernel of their size."""
    wide = np.arange(24, dtype=np.float32)
    for stride, bias in (("3", wide[:9:3]), ("-1", wide[:3][::-1]), ("?", wide[::5][:3]), ("?", wide[:3])):
        g = Graph(tensor(5, 7), tensor(7, 3), tensor(3, strides=(stride,)))
        x, w, b = g.inputs
        program = g.returning(g.add(g.matmul(x, w), b))
        kernels = check(program, [*random(F32, (5, 7), (7, 3)), bias], 1e-5)
        assert kernels.used == {"kernel_nest0", "matmul"}


def test_a_row_of_a_matrix_is_read_where_it_is():
    g = Graph(tensor(5, 7), tensor(7, 3), tensor(4, 3))
    x, w, rows = g.inputs
    program = g.returning(g.add(g.matmul(x, w), g.pick(rows, axis=0, index=2)))
    (step,) = check(program, random(F32, (5, 7), (7, 3), (4, 3)), 1e-5).plan.steps
    assert (step.bias.argument, step.bias.offset) == (("input", 2), "6")


def test_constants_are_stored():
    g = Graph(tensor(5, 7), tensor(7, 3))
    bias = g.constant(value=np.arange(3, dtype=np.float32))
    kernels = check(g.returning(g.add(g.matmul(*g.inputs), bias)), random(F32, (5, 7), (7, 3)), 1e-5)
    assert kernels.plan.steps[-1].bias.argument == ("workspace", "0", "f32")


def test_layers_and_a_bias_made_after_the_product():
    """The second bias is a sum over the first layer, which the order of steps has to heed."""
    g = Graph(tensor("n", 4), tensor(4, 4), tensor(4))
    x, w, b = g.inputs
    first = g.add(g.matmul(x, w), b)
    second = g.matmul(first, w)
    program = g.returning(g.add(second, g.sum(first, axes=(0,), keepdims=False)))
    kernels = check(program, random(F32, ("n", 4), (4, 4), (4,)), 1e-5)
    products = [s for s in kernels.plan.steps if isinstance(s, LibraryProduct)]
    assert [p.bias is not None for p in products] == [True, True]


def test_what_else_reads_the_product():
    g = Graph(tensor(5, 7), tensor(7, 3), tensor(3))
    x, w, b = g.inputs
    product = g.matmul(x, w)
    kernels = check(g.returning(g.add(product, b), product), random(F32, (5, 7), (7, 3), (3,)), 1e-5)
    assert [s.bias for s in kernels.plan.steps if isinstance(s, LibraryProduct)] == [None]


def test_a_sum_that_is_also_read_by_a_kernel():
    g = Graph(tensor(5, 7), tensor(7, 3), tensor(3))
    x, w, b = g.inputs
    y = g.add(g.matmul(x, w), b)
    kernels = check(g.returning(y, g.tanh(y)), random(F32, (5, 7), (7, 3), (3,)), 1e-5)
    product, _ = kernels.plan.steps
    assert (product.bias.argument, product.output.argument) == (("input", 2), ("output", 0))


def test_nan_and_infinity_of_a_bias_stay_in_their_columns():
    args = [*random(F32, (5, 7), (7, 3)), np.array([np.nan, np.inf, 1], np.float32)]
    (found,) = Emulated(linear((5, 7), (7, 3), (3,)))(*args)
    assert np.isnan(found[:, 0]).all() and np.isposinf(found[:, 1]).all()
    assert np.isfinite(found[:, 2]).all()


ACCUMULATED = """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @kernel(%a: tensor<5x3xf64>, %b: tensor<3x4xf64>, %c: tensor<5x4xf64>, %v: tensor<4xf64>)
    -> tensor<5x4xf64> {
  %r = linalg.matmul ins(%a, %b : tensor<5x3xf64>, tensor<3x4xf64>)
    outs(%c : tensor<5x4xf64>) -> tensor<5x4xf64>
  %e = tensor.empty() : tensor<5x4xf64>
  %s = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d1)>, #id],
    iterator_types = ["parallel", "parallel"]}
    ins(%r, %v : tensor<5x4xf64>, tensor<4xf64>) outs(%e : tensor<5x4xf64>) {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %z = arith.addf %x, %y : f64
    linalg.yield %z : f64
  } -> tensor<5x4xf64>
  return %s : tensor<5x4xf64>
}"""


def test_a_product_onto_an_accumulator_keeps_its_kernel():
    linalg = parse(ACCUMULATED)
    with linalg.context:
        module, plan = emit_gpu(linalg.body.operations[0].operation)
    a, b, c, v = random(F64, (5, 3), (3, 4), (5, 4), (4,))
    np.testing.assert_allclose(run(module, plan, [a, b, c, v])[0], a @ b + c + v, rtol=1e-12)
    (product,) = [s for s in plan.steps if isinstance(s, LibraryProduct)]
    assert (product.accumulate, product.bias) == (True, None)


@needs_ptxas
def test_code_without_a_kernel_is_code():
    made = compile_gpu(linear((5, 7), (7, 3), (3,)), "sm_90")
    assert (made.code[:4], made.usage, made.library_calls) == (b"\x7fELF", {}, 1)


def test_artifacts_keep_biases():
    made = compile_gpu(linear(("n", 7), (7, "m"), ("m",)), "sm_90", until="gpu")
    assert made.plan.steps[0].bias is not None
    assert GpuArtifact.from_header(made.header(), b"").plan == made.plan
