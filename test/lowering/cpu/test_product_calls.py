"""Products as calls of the library: as few as there are threads, with the bits of one call."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import product_bits
import pytest
from every_case import EVERY_CASE
from graphs import Graph, tensor
from internals import library_symbols
from native import built, kernel_of
from pools import needs_pool, one_thread_around  # noqa: F401
from profuse.dialect.ir.dtypes import F64
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.loader import set_library_threads
from profuse.lowering.cpu.pool_block import block
from profuse.lowering.thread_pool import COLUMNS

pytestmark = needs_pool

# Kernels of the library, and what a CPU must have for them.
KERNELS = {
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Sandybridge": {"avx"},
    "Nehalem": {"sse4_2"},
}
USUAL = ("Haswell", "SkylakeX")


@pytest.fixture(autouse=True)
def library_on_one_thread():
    set_library_threads(1)


def flags():
    """What the CPU has, as Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    found = next((line for line in lines if line.startswith("flags")), "")
    return set(found.partition(":")[2].split())


@pytest.mark.parametrize("name", KERNELS if EVERY_CASE else USUAL)
def test_bits_with_each_kernel_of_the_library(name):
    """Parts have the bits of the whole, and kernels those of one call on any number of threads."""
    if not KERNELS[name] <= flags():
        pytest.skip("not for this CPU")
    here = Path(product_bits.__file__)
    counts = ("1000", "24") if EVERY_CASE else ("30", "4")
    environment = os.environ | {"OPENBLAS_CORETYPE": name, "PYTHONPATH": os.pathsep.join([*sys.path, str(here.parent)])}
    done = subprocess.run([sys.executable, str(here), *counts], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1][-1] == f"kernels: {name}"
    assert done.stdout.strip() == f"kernels: {name}", "differences"


GEMM = ctypes.CFUNCTYPE(
    None,
    *[ctypes.c_int] * 6,
    ctypes.c_double,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_double,
    ctypes.c_void_p,
    ctypes.c_int,
)


@pytest.fixture
def calls(monkeypatch):
    """(rows, columns) of the calls of the library by kernels that the test loads, if any."""
    found = []

    def noted(*args):
        if 0 in args[3:5]:
            return
        found.append(args[3:5])
        product_bits.LIBRARY.scipy_cblas_dgemm(
            *args[:6],
            ctypes.c_double(args[6]),
            ctypes.c_void_p(args[7]),
            args[8],
            ctypes.c_void_p(args[9]),
            args[10],
            ctypes.c_double(args[11]),
            ctypes.c_void_p(args[12]),
            args[13],
        )

    callback = GEMM(noted)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    monkeypatch.setitem(library_symbols(), "scipy_cblas_dgemm", address)
    yield found
    del callback


def product(*dims):
    rows, shared, columns = dims
    g = Graph(tensor(rows, shared, dtype=F64), tensor(shared, columns, dtype=F64))
    return built(g.returning(g.matmul(*g.inputs)))


SIZES = ((1000, 300, 280), (53, 300, 500), (30, 300, 2000), (30, 300, 2003))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_one_thread_makes_one_call(sizes, symbolic, calls):
    """Columns that are no multiple are apart; rows are cut by nobody."""
    kernel = product(*("nkm" if symbolic else sizes))
    assert kernel.artifact.shared_steps
    x, y = (np.random.default_rng(0).standard_normal(s) for s in (sizes[:2], sizes[1:]))
    found = kernel(x, y)[0]
    np.testing.assert_allclose(found, x @ y, rtol=1e-12, atol=1e-10)
    rows, _, columns = sizes
    cut = columns if rows >= 48 or columns % 16 == 0 else columns // 16 * 16
    assert calls == [(rows, cut), *([(rows, columns - cut)] if cut < columns else [])]


def test_two_threads_take_their_shares(calls):
    """The first call is for half of the rows; all of them have the bits of one."""
    kernel = product(1000, 300, 280)
    x, y = (np.random.default_rng(0).standard_normal(s) for s in ((1000, 300), (300, 280)))
    alone = kernel(x, y)[0]
    calls.clear()
    assert kernel_threads.use_threads(2)
    shared = kernel(x, y)[0]
    assert sum(rows for rows, _ in calls) == 1000
    assert 2 <= len(calls) <= 5
    assert max(rows for rows, _ in calls) >= 480
    assert alone.tobytes() == shared.tobytes()


@pytest.mark.parametrize("symbolic", [False, True])
def test_chunks_are_not_small_products(symbolic, calls):
    """The library has other code for fewer than a million multiplications, with other bits."""
    kernel = product(*("nkm" if symbolic else (72, 200, 120)))
    assert kernel_threads.use_threads(2)
    x, y = np.ones((72, 200)), np.ones((200, 120))
    assert (kernel(x, y)[0] == 200).all()
    assert calls == [(72, 120)]


def test_columns_that_some_kernels_add_up_in_blocks_have_calls_of_their_own():
    """The same kernel joins them, or not, as the library's kernels ask for."""
    g = Graph(tensor(30, 400), tensor(400, 2000))
    kernel = built(g.returning(g.matmul(*g.inputs)))
    assert kernel.artifact.shared_steps
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 400), np.float32), rng.standard_normal((400, 2000), np.float32)
    before = block()[COLUMNS]
    cut = np.empty((30, 2000), np.float32)
    for start in range(0, 2000, 640):
        end = start + 640 if start < 1280 else 2000
        if start < end and start <= 1280:
            product_bits.call(x, y[:, start:end], cut[:, start:end])
    try:
        block()[COLUMNS] = 1
        results = []
        for count in product_bits.THREADS:
            assert kernel_threads.use_threads(count)
            results.append(kernel(x, y)[0].tobytes())
    finally:
        block()[COLUMNS] = before
    assert set(results) == {cut.tobytes()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dims", [(1, 700, 1200), (1200, 700, 1)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_one_row_or_column_is_a_product_with_a_vector(dims, symbolic):
    """The library has a function for these; loops add up rows (`test_row_sums`)."""
    rows, shared, columns = dims
    given = (dims[0], "k", "m") if rows == 1 else ("n", "k", dims[2])
    kernel = product(*(given if symbolic else dims))
    assert ("scipy_cblas_dgemv" in kernel.stages["loops"]) == (columns == 1)
    assert "scipy_cblas_dgemm" not in kernel.stages["loops"]
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, shared)), rng.standard_normal((shared, columns))
    results = []
    for count in product_bits.THREADS:
        assert kernel_threads.use_threads(count)
        results.append(kernel(x, y)[0])
    np.testing.assert_allclose(results[0], x @ y, rtol=1e-12, atol=1e-10)
    assert len({r.tobytes() for r in results}) == 1


def test_sums_into_a_result_have_the_bits_of_one_call():
    kernel = kernel_of("""
    func.func @into(%a: tensor<500x300xf64>, %b: tensor<300x251xf64>, %c: tensor<500x251xf64>)
        -> tensor<500x251xf64> {
      %0 = linalg.matmul ins(%a, %b : tensor<500x300xf64>, tensor<300x251xf64>)
          outs(%c : tensor<500x251xf64>) -> tensor<500x251xf64>
      return %0 : tensor<500x251xf64>
    }""")
    assert kernel.artifact.shared_steps
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s) for s in ((500, 300), (300, 251), (500, 251)))
    wanted = product_bits.whole(a, b, 1.0, c).tobytes()
    for count in product_bits.THREADS:
        assert kernel_threads.use_threads(count)
        assert kernel(a, b, c)[0].tobytes() == wanted
