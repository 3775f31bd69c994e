"""Launch plans on the emulator: arguments, sizes, workspace, library products."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from profuse.lowering.abi import KernelABI, TensorSpec
from simt import KernelFault, SimtError, run
from simt import samples as k


@dataclass
class Plan:
    """A launch plan without choices."""

    abi: KernelABI
    steps: list

    def launches(self, values, aligned):
        return iter(self.steps)


def launch(kernel, grid, block, *arguments, shared="0"):
    return SimpleNamespace(
        kernel=kernel, grid=(*grid, "1", "1")[:3], block=(*block, "1", "1")[:3], arguments=arguments, shared=shared
    )


def matrix(argument, dims, strides, offset="0"):
    return SimpleNamespace(argument=argument, offset=offset, dims=dims, strides=strides)


def product(dtype, left, right, output, accumulate=False, bias=None):
    return SimpleNamespace(
        kind="matmul",
        dtype=dtype,
        left=left,
        right=right,
        output=output,
        accumulate=accumulate,
        output_dtype=dtype,
        bias=bias,
    )


def column_sum_plan(part="4*m", dtype="f64"):
    sizes = (("size", "4"), ("size", "m"))
    return Plan(
        KernelABI(
            inputs=(TensorSpec("tensor", "f64", ("n", "m")),),
            outputs=(TensorSpec("tensor", "f64", ("m",)),),
            symbols={"n": (0, 0, 1), "m": (0, 1, 1)},
            strides=(),
            workspace=f"64 + 8*({part})",
        ),
        [
            launch(
                "partial",
                ("(m + 31) // 32", "4"),
                ("32",),
                ("input", 0),
                ("workspace", "64", dtype),
                ("size", "n"),
                ("size", "m"),
            ),
            launch("total", ("(m + 31) // 32",), ("32",), ("workspace", "64", dtype), ("output", 0), *sizes),
        ],
    )


@pytest.mark.parametrize("shape", [(1, 1), (9, 40), (2, 33)])
def test_two_steps_through_the_workspace(shape):
    x = np.random.default_rng(0).normal(size=shape)
    (got,) = run(k.module(k.COLUMN_SUM), column_sum_plan(), [x])
    np.testing.assert_allclose(got, x.sum(axis=0), rtol=1e-12, atol=1e-13)


def test_workspace_too_small():
    with pytest.raises(KernelFault, match="out of bounds of the workspace") as caught:
        run(k.module(k.COLUMN_SUM), column_sum_plan(part="3*m"), [np.ones((9, 40))])
    assert (caught.value.block, caught.value.thread) == ((0, 3, 0), (0, 0, 0))


def test_workspace_that_a_step_forgot():
    plan = column_sum_plan()
    del plan.steps[0]
    with pytest.raises(KernelFault, match=r"reads index 0 of the workspace .* nothing has written"):
        run(k.module(k.COLUMN_SUM), plan, [np.ones((9, 40))])


def test_output_that_no_step_wrote():
    plan = column_sum_plan()
    del plan.steps[1]
    with pytest.raises(KernelFault, match="40 of 40 elements of output 0 were never written"):
        run(k.module(k.COLUMN_SUM), plan, [np.ones((9, 40))])


def test_argument_of_another_type():
    with pytest.raises(SimtError, match=r"argument 1 of @partial is memref<.xf64>"):
        run(k.module(k.COLUMN_SUM), column_sum_plan(dtype="f32"), [np.ones((9, 40))])


SCALE = """
gpu.func @scale(%x: memref<?xf32>, %out: memref<?xi8>, %s: f64, %k: i64, %stride: i64) kernel {
  %f = arith.truncf %s : f64 to f32
  %t = gpu.thread_id x
  %step = arith.index_cast %stride : i64 to index
  %i = arith.muli %t, %step : index
  %v = memref.load %x[%i] : memref<?xf32>
  %p = arith.mulf %v, %f : f32
  %kf = arith.sitofp %k : i64 to f32
  %c = arith.cmpf olt, %p, %kf : f32
  %b = arith.extui %c : i1 to i8
  memref.store %b, %out[%t] : memref<?xi8>
  gpu.return
}"""


def test_numbers_strides_and_bool():
    abi = KernelABI(
        inputs=(
            TensorSpec("tensor", "f32", ("n",), ("?",)),
            TensorSpec("scalar", "f64", ()),
            TensorSpec("scalar", "i64", ()),
        ),
        outputs=(TensorSpec("tensor", "bool", ("n",)),),
        symbols={"n": (0, 0, 1)},
        strides=((0, 0),),
        workspace="0",
    )
    arguments = (("input", 0), ("output", 0), ("scalar", 1), ("scalar", 2), ("stride", 0, 0))
    plan = Plan(abi, [launch("scale", ("1",), ("n",), *arguments)])
    x = np.arange(10, dtype=np.float32)[::-2]
    (got,) = run(k.module(SCALE), plan, [x, 0.5, 2])
    assert got.dtype == bool
    np.testing.assert_array_equal(got, x * 0.5 < 2)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_library_products(dtype):
    """A transposed operand, a product through the workspace, and one that is added to."""
    abi = KernelABI(
        inputs=(TensorSpec("tensor", dtype, ("k", "n")), TensorSpec("tensor", dtype, ("k", "m"))),
        outputs=(TensorSpec("tensor", dtype, ("n", "n")),),
        symbols={"k": (0, 0, 1), "n": (0, 1, 1), "m": (1, 1, 1)},
        strides=(),
        workspace="8*n*m",
    )
    a = matrix(("input", 0), ("n", "k"), ("1", "n"))
    b = matrix(("input", 1), ("k", "m"), ("m", "1"))
    middle = matrix(("workspace", "0", dtype), ("n", "m"), ("m", "1"))
    turned = matrix(("workspace", "0", dtype), ("m", "n"), ("1", "m"))
    out = matrix(("output", 0), ("n", "n"), ("n", "1"))
    steps = [
        product(dtype, a, b, middle),
        product(dtype, middle, turned, out),
        product(dtype, middle, turned, out, accumulate=True),
    ]
    from profuse.dialect.ir.dtypes import dtype_named

    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, s).astype(dtype_named(dtype).numpy) for s in ((3, 4), (3, 5)))
    (got,) = run(k.module(), Plan(abi, steps), [x, y])
    wide = x.T.astype(float) @ y.astype(float)
    np.testing.assert_array_equal(got.astype(float), (2 * wide @ wide.T).astype(got.dtype))
    with pytest.raises(SimtError, match="a library product reads the workspace"):
        run(k.module(), Plan(abi, steps[1:]), [x, y])


def test_unknown_kernel():
    plan = column_sum_plan()
    plan.steps[0].kernel = "other"
    with pytest.raises(SimtError, match="the module has no kernel @other"):
        run(k.module(k.COLUMN_SUM), plan, [np.ones((2, 2))])


def test_inputs_that_the_plan_does_not_take():
    plan = column_sum_plan()
    with pytest.raises(SimtError, match=r"input 0 is float32\[2, 2\]; the plan takes f64\[2, 2\]"):
        run(k.module(k.COLUMN_SUM), plan, [np.ones((2, 2), np.float32)])
    with pytest.raises(SimtError, match=r"input 0 has strides \(8, 16\), not contiguous"):
        run(k.module(k.COLUMN_SUM), plan, [np.ones((2, 2)).T])
