"""Graphs that users want fused, on the emulator: values, accuracy, launches; and ptxas' report."""

import numpy as np
import pytest
from emulation import Emulated, aligned, misaligned
from fused_graphs import FUSED
from needs import needs_ptxas
from profuse.dialect.ir.dtypes import BF16, F16, F32, F64
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.gpu.gpu_stages import compile_gpu

names = pytest.mark.parametrize("name", FUSED)

# Whole vectors, ragged rows, more than registers hold, single elements, nothing.
SIZES = [(5, 1024), (33, 64), (3, 1000), (7, 33), (2, 20_000), (1, 5000), (300, 5), (2048, 8), (1, 1), (0, 8), (4, 0)]
EPSILON = {F16: 2.0**-11, BF16: 2.0**-8, F32: 2.0**-24, F64: 2.0**-53}


def errors(outputs, exact):
    """Largest errors, relative to the largest results."""
    pairs = [(np.asarray(o, np.float64), np.asarray(e, np.float64)) for o, e in zip(outputs, exact, strict=True)]
    return [np.abs(o - e).max(initial=0) / max(np.abs(e).max(initial=0), 1e-30) for o, e in pairs]


def exact(fused, args, rows, columns):
    """Results in f64 of arguments in any dtype."""
    wide = [a if a.dtype == np.int64 else a.astype(np.float64) for a in args]
    return Evaluator(fused.build(F64, rows, columns))(wide)


def check(kernels, fused, args, dtype=F32):
    """As near to exact results as NumPy is, within a factor of four."""
    rows, columns = args[0].shape
    outputs = kernels(*args)
    wanted = exact(fused, args, rows, columns)
    in_numpy = Evaluator(fused.build(dtype, rows, columns))(args)
    assert [o.dtype for o in outputs] == [n.dtype for n in in_numpy]
    assert [o.shape for o in outputs] == [n.shape for n in in_numpy]
    found = zip(errors(outputs, wanted), errors(in_numpy, wanted), strict=True)
    assert all(mine <= 4 * max(numpys, EPSILON[dtype]) for mine, numpys in found)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("rows, columns", SIZES)
@names
def test_static_sizes(name, rows, columns):
    fused = FUSED[name]
    if columns == 0 and name in ("softmax", "log_sum_exp", "cross_entropy"):
        pytest.skip("NumPy has no maximum of nothing")
    if rows == 0 and name == "cross_entropy":
        pytest.skip("the mean of nothing is nan")
    kernels = Emulated(fused.build(F32, rows, columns))
    args = fused.arguments(np.random.default_rng(columns), rows, columns)
    check(kernels, fused, [*map(aligned, args)])
    check(kernels, fused, [*map(misaligned, args)])


@pytest.mark.sampled(8)
@names
def test_symbolic_sizes(name):
    """One plan for all sizes; both its kernels run."""
    fused = FUSED[name]
    kernels = Emulated(fused.build())
    for rows, columns in SIZES:
        if rows and 0 < columns < 20_000:
            args = fused.arguments(np.random.default_rng(columns), rows, columns)
            check(kernels, fused, [*map(aligned, args)])
            check(kernels, fused, [*map(misaligned, args)])
    assert any(k.endswith("_nest0") for k in kernels.used)
    assert any(k.endswith("_nest0_general") for k in kernels.used)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
@names
def test_other_floats(name, dtype):
    fused = FUSED[name]
    static, symbolic = fused.build(dtype, 6, 256), fused.build(dtype, "n", "m")
    for program, place, sizes in [(static, aligned, (6, 256)), (symbolic, misaligned, (5, 31))]:
        args = fused.arguments(np.random.default_rng(0), *sizes, dtype.numpy)
        check(Emulated(program), fused, [*map(place, args)], dtype)


LAYOUTS = {
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("known", [True, False], ids=["known", "run-time"])
@pytest.mark.parametrize("layout", LAYOUTS)
@names
def test_strided_inputs(name, layout, known):
    fused = FUSED[name]
    rows, columns = 9, 68
    args = fused.arguments(np.random.default_rng(1), rows, columns)
    args = [LAYOUTS[layout](a) if a.ndim == 2 else a for a in args]
    strides = tuple(s // 4 for s in args[0].strides)
    if known:
        program = fused.build(F32, rows, columns, strides)
    else:
        program = fused.build(F32, "n", "m", (None, None))
    check(Emulated(program), fused, args)


# At the sizes of the test below. Labels are checked, and rows summed up, by kernels of their own;
# sums in chunks take a second kernel.
KERNELS = {"cross_entropy": (3, 3, 5), "column_sum": (2, 1, 2)}


@pytest.mark.sampled(3)
@names
def test_kernels_launched(name):
    """All stages of a row are one kernel."""
    fused = FUSED[name]
    found = []
    for sizes in [(1024, 1024), (64, 8192), ("n", "m")]:
        rows, columns = (s if isinstance(s, int) else 1024 for s in sizes)
        args = fused.arguments(np.random.default_rng(0), rows, columns)
        found.append(len(Emulated(fused.build(F32, *sizes)).launched(*map(aligned, args))))
    assert tuple(found) == KERNELS.get(name, (1, 1, 1))


@pytest.mark.parametrize("name", ["softmax", "log_sum_exp", "layernorm", "rmsnorm"])
def test_a_single_row_is_one_kernel_if_one_block_can_hold_it(name):
    fused = FUSED[name]
    for columns, is_one in [(4096, True), (1 << 14, True), (1 << 17, False)]:
        args = fused.arguments(np.random.default_rng(0), 1, columns)
        launched = Emulated(fused.build(F32, 1, columns)).launched(*map(aligned, args))
        assert (len(launched) == 1) == is_one


@pytest.mark.sampled(9, each=("chip",))
@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@names
def test_registers(name, chip):
    """Nothing is spilled, and half of a multiprocessor's threads fit at least."""
    for dtype, sizes in [(F32, (1024, 1024)), (BF16, (512, 16_384)), (F32, ("n", "m"))]:
        artifact = compile_gpu(FUSED[name].build(dtype, *sizes), chip)
        assert artifact.code[:4] == b"\x7fELF"
        for kernel, usage in artifact.usage.items():
            assert usage.spilled == usage.stack == 0, kernel
            assert usage.registers <= 64, kernel
            assert usage.shared <= 16 * 1024, kernel
