"""Rows in shared memory on the emulator, which finds races: values, launches, bank conflicts."""

import numpy as np
import pytest
import simt.memory
from emulation import Emulated, aligned, misaligned
from fused_graphs import FUSED, ROWS
from graphs import Graph, random_program, tensor
from needs import needs_ptxas
from profuse.dialect.ir.dtypes import BF16, F16, F32, F64, I8
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.gpu.chip import shared_bytes
from profuse.lowering.gpu.gpu_stages import compile_gpu
from profuse.lowering.gpu.kernels import row_kernel as rows_module
from profuse.lowering.gpu.launch_plan import Choice
from test_gpu_fused import check

NORMS = ["softmax", "log_sum_exp", "layernorm", "rmsnorm"]
names = pytest.mark.parametrize("name", NORMS)
BANKS, BANK = 32, 4  # of four bytes each
WARP, PHASE = 32, 128  # bytes that a warp accesses at a time


class Accesses:
    """What is done to dynamic shared memory: bytes per access, and the worst bank conflict."""

    def __init__(self):
        self.bytes_, self.worst = set(), 0

    def note(self, access):
        buffer = access.memref.buffer
        if buffer.name != "dynamic workgroup memory":
            return
        size = max(access.count, 1) * access.memref.dtype.itemsize
        self.bytes_.add(size)
        together = min(WARP, PHASE // size)
        words = access.start[:, None] // BANK + np.arange(-(-size // BANK))
        for group in np.unique(access.active.lanes // together):
            here = np.unique(words[access.active.lanes // together == group])
            self.worst = max(self.worst, np.bincount(here % BANKS).max())


@pytest.fixture
def accesses(monkeypatch):
    found = Accesses()
    original = simt.memory.Access.__post_init__

    def noting(access):
        original(access)
        found.note(access)

    monkeypatch.setattr(simt.memory.Access, "__post_init__", noting)
    return found


def launches(kernels, *args):
    """Kernels and the shared memory that they ask for, of a call."""
    sizes = kernels.plan.abi.sizes(lambda k, axis: args[k].shape[axis])
    return [
        (step.kernel, step.shared)
        for step in kernels.plan.launches(sizes, lambda k, count: args[k].ctypes.data % count == 0)
    ]


# A block per row: registers of 1024 threads hold 16 elements each, of half as many tensors.
@pytest.mark.sampled(8)
@pytest.mark.parametrize("rows, columns", [(2, 20_000), (3, 17_001), (1, 32_768)])
@names
def test_long_rows(accesses, name, rows, columns):
    fused = FUSED[name]
    kernels = Emulated(fused.build(F32, rows, columns))
    args = fused.arguments(np.random.default_rng(columns), rows, columns)
    if rows == 1:
        # A single row of this length is not one block's work, but that of many.
        assert all(shared == "0" for _, shared in launches(kernels, *map(aligned, args)))
        return
    bytes_ = -(-columns * 4 // 16) * 16
    assert launches(kernels, *map(aligned, args))[0][1] == str(bytes_)
    check(kernels, fused, [*map(aligned, args)])
    assert accesses.bytes_ == {4 if columns % 4 else 16}
    check(kernels, fused, [*map(misaligned, args)])
    assert accesses.worst == 1
    assert len(kernels.used) == (1 if columns % 4 else 2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
@names
def test_other_floats(accesses, name, dtype):
    fused = FUSED[name]
    columns = 20_000
    kernels = Emulated(fused.build(dtype, 2, columns))
    args = fused.arguments(np.random.default_rng(0), 2, columns, dtype.numpy)
    check(kernels, fused, [*map(aligned, args)], dtype)
    assert accesses.bytes_ == {16}
    check(kernels, fused, [*map(misaligned, args)], dtype)
    assert accesses.worst == 1


@pytest.mark.sampled(2)
@names
def test_rows_of_any_size(accesses, name):
    """One plan for all: whole vectors, ragged, single elements, no rows, and what does not fit."""
    fused = FUSED[name]
    kernels = Emulated(fused.build())
    for rows, columns in [(5, 1024), (3, 1003), (7, 1), (2, 2), (0, 8)]:
        args = fused.arguments(np.random.default_rng(columns), rows, columns)
        for place in (aligned, misaligned):
            given = [*map(place, args)]
            check(kernels, fused, given)
            assert {int(s) for _, s in sized(kernels, *given)} <= {-(-columns * 4 // 16) * 16}
    assert kernels.used == {f"{name}_nest0", f"{name}_nest0_general"}
    assert accesses.bytes_ == {4, 16}
    assert accesses.worst == 1


def sized(kernels, *args):
    """`launches` with shared memory as numbers, for the sizes of a call."""
    from profuse.dialect.ir.size_algebra import parse_dim
    from profuse.dialect.ir.symbolic import evaluate

    sizes = kernels.plan.abi.sizes(lambda k, axis: args[k].shape[axis])
    return [(n, evaluate(parse_dim(s), sizes)) for n, s in launches(kernels, *args)]


@names
def test_rows_that_do_not_fit_are_read_again(name):
    fused = FUSED[name]
    kernels = Emulated(fused.build())
    (step,) = kernels.plan.steps
    assert isinstance(step, Choice)
    (condition,) = step.conditions
    combined = 256 // WARP * 4 * {"rmsnorm": 1}.get(name, 2)  # a sum per warp and reduction
    assert condition.number == shared_bytes("sm_90", 256) - combined + 1
    most = (condition.number - 1) // 16 * 4
    for columns, suffix in [(most, ""), (most + 4, "_large"), (most + 5, "_large_general")]:
        args = fused.arguments(np.random.default_rng(1), 1, columns)
        kernels.used.clear()
        check(kernels, fused, [*map(aligned, args)])
        assert kernels.used == {f"{name}_nest0{suffix}"}


def test_a_row_too_long_for_any_chip_asks_for_nothing():
    kernels = Emulated(FUSED["softmax"].build(F32, 2, 100_000))
    (step,) = kernels.plan.steps
    assert {launch.shared for launch in (*step.then, *step.otherwise)} == {"0"}


def many(rows, columns, count):
    """A normalised sum: more tensors than registers hold a row of."""
    g = Graph(*[tensor(rows, columns)] * count)
    total = g.inputs[0]
    for value in g.inputs[1:]:
        total = g.add(total, value)
    each = [g.sub(g.exp(x), g.mean(g.mul(x, total), **ROWS)) for x in g.inputs]
    return g.returning(*each)


def same(program, args, tolerance=1e-4):
    kernels = Emulated(program)
    for mine, wanted in zip(kernels(*args), Evaluator(program)(args), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=tolerance, atol=tolerance)
    return kernels


@pytest.mark.parametrize("rows", [8, 5])
def test_a_warp_per_row(accesses, rows):
    """Rows of one block share its memory, and none waits for another."""
    columns = 512
    args = [np.random.default_rng(k).standard_normal((rows, columns)).astype(np.float32) for k in range(3)]
    program = many(rows, columns, 3)
    kernels = same(program, [*map(aligned, args)])
    (launch,) = kernels.plan.launches({}, lambda k, count: True)
    assert launch.block == ("32", "4", "1")
    assert int(launch.shared) == 4 * 3 * columns * 4
    assert accesses.bytes_ == {16}
    same(program, [*map(misaligned, args)])
    assert accesses.worst == 1


def test_elements_of_several_sizes(accesses):
    """Where one access of the widest type is several of shared memory, no bank is skipped."""
    g = Graph(tensor("n", "m", dtype=I8), tensor("n", "m"))
    x, y = g.inputs
    program = g.returning(g.sub(g.mul(x, y), g.mean(g.add(x, y), **ROWS)))
    rng = np.random.default_rng(0)
    for columns in (4096, 1027):
        args = [rng.integers(-9, 9, (3, columns)).astype(np.int8), rng.standard_normal((3, columns)).astype(np.float32)]
        same(program, [*map(aligned, args)])
    assert accesses.bytes_ >= {16}
    assert accesses.worst == 1


@pytest.mark.sampled(8, each=())
@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@names
def test_registers(name, chip):
    """Nothing is spilled; static shared memory is what reductions exchange."""
    for dtype, sizes in [(F32, (64, 20_000)), (BF16, (64, 40_000)), (F32, ("n", "m"))]:
        artifact = compile_gpu(FUSED[name].build(dtype, *sizes), chip)
        for kernel, usage in artifact.usage.items():
            assert usage.spilled == usage.stack == 0, kernel
            assert usage.registers <= 64, kernel
            assert usage.shared <= 32 * 4 * 2, kernel


@pytest.mark.parametrize("chip, takes", [("sm_90", True), ("sm_80", True), ("sm_89", False)])
def test_what_fits_depends_on_the_chip(chip, takes):
    plan = compile_gpu(FUSED["softmax"].build(F32, 8, 30_000), chip, until="gpu").plan
    (launch,) = plan.launches({}, lambda k, count: True)
    assert launch.shared == ("120000" if takes else "0")
    assert shared_bytes(chip, 1024) <= {"sm_90": 227, "sm_80": 163, "sm_89": 99}[chip] * 1024
    assert shared_bytes(chip, 256) < shared_bytes(chip, 1024) // 4


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(monkeypatch, accesses, seed):
    """Whatever registers would hold is in shared memory."""
    monkeypatch.setattr(rows_module, "MOST", 0)
    rng = np.random.default_rng(seed)
    sizes = {"a": 3, "b": 36, "c": 2}
    program, args = random_program(rng, sizes, ("a", "b")[: seed % 3], steps=12)
    same(program, args, 3e-4)
    assert accesses.worst <= 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUSED)
def test_every_size_without_registers(monkeypatch, name):
    monkeypatch.setattr(rows_module, "MOST", 0)
    fused = FUSED[name]
    for sizes in [(5, 1024), (33, 64), (3, 1000), (7, 33), (300, 5), (1, 1)]:
        args = fused.arguments(np.random.default_rng(1), *sizes)
        check(Emulated(fused.build(F32, *sizes)), fused, [*map(aligned, args)])
