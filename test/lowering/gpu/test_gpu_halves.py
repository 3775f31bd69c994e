"""Products of f16 and bf16 on GPUs: the library's, of the halves themselves."""

import numpy as np
import pytest
from emulation import Emulated
from graphs import Graph, tensor
from profuse.dialect.ir.dtypes import BF16, F16, F32
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.gpu.artifact import GpuArtifact
from profuse.lowering.gpu.gpu_stages import compile_gpu
from profuse.lowering.gpu.launch_plan import LibraryProduct

halves = pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
SHAPES = {
    "matmul": [("n", 7), (7, "m")],
    "matvec": [(5, 7), (7,)],
    "vecmat": [(7,), (7, 3)],
    "dot": [(7,), (7,)],
    "batch_matmul": [(4, 5, 7), (4, 7, 3)],
    "one matrix for a batch": [(4, 5, 7), (7, 3)],
    "a batch for one matrix": [(5, 7), (4, 7, 3)],
}
SIZES = {"n": 6, "m": 9}


def random(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal([SIZES.get(n, n) for n in s]).astype(dtype.numpy) for s in shapes]


def products(plan):
    return [step for step in plan.steps if isinstance(step, LibraryProduct)]


def check(program, args):
    kernels = Emulated(program)
    for mine, wanted in zip(kernels(*args), Evaluator(program)(args), strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine.astype(np.float32), wanted.astype(np.float32), rtol=2e-3, atol=2e-3)
    return kernels


@pytest.mark.sampled(3)
@halves
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_is_converted_for_a_product(name, dtype):
    g = Graph(*[tensor(*shape, dtype=dtype) for shape in SHAPES[name]])
    program = g.returning(g.tanh(g.matmul(*g.inputs)))
    kernels = check(program, random(dtype, *SHAPES[name]))
    product, _ = kernels.plan.steps
    assert product.dtype == str(dtype)


@halves
def test_transposed_operands_are_read_where_they_are(dtype):
    g = Graph(tensor(5, 7, dtype=dtype), tensor(3, 7, dtype=dtype))
    x, y = g.inputs
    program = g.returning(g.matmul(x, g.transpose(y, perm=(1, 0))))
    kernels = check(program, random(dtype, (5, 7), (3, 7)))
    (product,) = kernels.plan.steps
    assert product.right.strides == ("1", "7")


@pytest.mark.parametrize("dtype, result", [(F16, "f16"), (BF16, "f32")], ids=str)
def test_results_have_the_dtype_that_numpy_gives_them(dtype, result):
    """NumPy has no product of bf16: it is one of f32."""
    g = Graph(tensor(5, 7, dtype=dtype), tensor(7, 3, dtype=dtype))
    (product,) = Emulated(g.returning(g.matmul(*g.inputs))).plan.steps
    assert (product.output_dtype, product.output.argument[0]) == (result, "output")


@pytest.mark.parametrize("to", [F16, BF16], ids=str)
@halves
def test_results_are_rounded_to_what_operands_are(dtype, to):
    """To the other half, a kernel does it."""
    g = Graph(tensor(5, 7, dtype=dtype), tensor(7, 3, dtype=dtype))
    wide = g.matmul(*[g.cast(v, dtype=F32) for v in g.inputs])
    kernels = check(g.returning(g.cast(wide, dtype=to)), random(dtype, (5, 7), (7, 3)))
    (product,) = products(kernels.plan)
    assert (product.dtype, product.wide) == (str(dtype), dtype is not to)
    assert len(kernels.plan.steps) == (1 if dtype is to else 2)


@halves
def test_sums_are_of_f32(dtype):
    """Ones added to 4096, one after the other, would be lost in halves."""
    g = Graph(tensor(1, 4112, dtype=dtype), tensor(4112, 1, dtype=dtype))
    kernels = Emulated(g.returning(g.matmul(*g.inputs)))
    (found,) = kernels(np.ones((1, 4112), dtype.numpy), np.ones((4112, 1), dtype.numpy))
    assert float(found[0, 0]) == 4112


def test_a_half_and_a_float_are_multiplied_as_floats():
    g = Graph(tensor(5, 7, dtype=F16), tensor(7, 3))
    kernels = check(g.returning(g.matmul(*g.inputs)), [*random(F16, (5, 7)), *random(F32, (7, 3))])
    assert [p.dtype for p in products(kernels.plan)] == ["f32"]


def test_what_else_reads_the_sum_gets_all_of_it():
    """The f32 product has a reader besides the one that rounds it."""
    g = Graph(tensor(5, 7, dtype=F16), tensor(7, 3, dtype=F16))
    wide = g.matmul(*[g.cast(v, dtype=F32) for v in g.inputs])
    kernels = check(g.returning(g.cast(wide, dtype=F16), g.square(wide)), random(F16, (5, 7), (7, 3)))
    (product,) = products(kernels.plan)
    assert (product.dtype, product.wide) == ("f16", True)


def test_artifacts_keep_products_and_nested_choices():
    g = Graph(tensor("n", "m", dtype=BF16), tensor("m", "m", dtype=BF16))
    y = g.matmul(*g.inputs)
    program = g.returning(g.sub(g.exp(y), g.mean(g.exp(y), axes=(1,), keepdims=True)))
    made = compile_gpu(program, "sm_90", until="gpu")
    assert products(made.plan)[0].wide
    assert GpuArtifact.from_header(made.header(), b"").plan == made.plan
