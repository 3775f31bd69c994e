"""Matrix products through the library: which call is made for which layout."""

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from ml_dtypes import bfloat16
from profuse.executor.cuda.launching.library_products import gemm_of
from profuse.executor.cuda.nvidia.driver_api import DriverError
from profuse.lowering.gpu.launch_plan import LibraryProduct, Matrix
from support import counts, host, warmed

PRODUCTS = {
    "matmul": (lambda a, b: a @ b + 1, (5, 7), (7, 3)),
    "batch": (lambda a, b: a @ b + 1, (4, 5, 7), (4, 7, 3)),
    "matvec": (lambda a, b: a @ b + 1, (5, 7), (7,)),
    "vecmat": (lambda a, b: a @ b + 1, (7,), (7, 3)),
    "dot": (lambda a, b: a @ b + 1, (7,), (7,)),
    "left transposed": (lambda a, b: a.T @ b + 1, (7, 5), (7, 3)),
    "right transposed": (lambda a, b: a @ b.T + 1, (5, 7), (3, 7)),
    "both transposed": (lambda a, b: a.T @ b.T + 1, (7, 5), (3, 7)),
    "one row": (lambda a, b: a @ b + 1, (1, 7), (7, 3)),
    "one column": (lambda a, b: a @ b + 1, (5, 7), (7, 1)),
    "nothing in common": (lambda a, b: a @ b + 1, (5, 0), (0, 3)),
    "no rows": (lambda a, b: a @ b + 1, (0, 7), (7, 3)),
}


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_values(device, name, strategy):
    fn, left, right = PRODUCTS[name]
    a, b = host(*left), host(*right)
    f = pf.jit(fn, strategy=[(strategy, 1)])
    for _ in range(3):
        got = f(xp.array(a), xp.array(b)).get()
    np.testing.assert_allclose(got, fn(a, b), rtol=1e-5, atol=1e-5)
    assert counts(f, "device_fallbacks", "compile_failures", "guard_misses")[:2] == [0, 0]


def test_a_product_is_one_call_between_kernels(device):
    a, b = host(5, 7), host(7, 3)
    f = pf.jit(lambda a, b: np.tanh(a * 2 @ b) + 1)
    for _ in range(2):
        f(xp.array(a), xp.array(b))
    device.log.clear()
    f(xp.array(a), xp.array(b))
    kinds = [what.split()[0] for what, _ in device.log if what != "to_device"]
    assert kinds == ["launch", "product", "launch"]
    assert counts(f, "library_calls") == [2]


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_dtypes(device, dtype):
    a, b = host(5, 7, dtype=dtype), host(7, 3, dtype=dtype)
    f = pf.jit(lambda a, b: a @ b + 1)
    for _ in range(3):
        got = f(xp.array(a), xp.array(b)).get()
    np.testing.assert_allclose(got, a @ b + 1, rtol=2e-3 if dtype == np.float16 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_halves_are_multiplied_as_they_are(device, dtype):
    a, b = host(5, 7).astype(dtype), host(7, 3).astype(dtype)
    f = warmed(lambda a, b: np.tanh(a @ b), a, b, device="cuda")
    device.log.clear()
    got = f(a, b)
    kinds = [what.split()[0] for what, _ in device.log if not what.startswith("to_")]
    assert kinds == ["product", "launch"]
    wanted = np.tanh(a @ b)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got.astype("f4"), wanted.astype("f4"), rtol=2e-3, atol=2e-3)


def product(left, right=None, **options):
    whole = Matrix(("input", 0), "0", ("4", "4"), ("4", "1"))
    return LibraryProduct("matmul", options.pop("dtype", "f32"), left, right or whole, whole, **options)


def test_layouts_without_a_dense_axis_are_refused():
    gaps = Matrix(("input", 0), "0", ("4", "4"), ("8", "2"))
    with pytest.raises(DriverError, match=r"left operand .* strides \(8, 2\)"):
        gemm_of(product(gaps), int, lambda argument: 0)


def test_dtypes_without_a_product_are_refused():
    whole = Matrix(("input", 0), "0", ("4", "4"), ("4", "1"))
    with pytest.raises(DriverError, match="no library product of i32"):
        gemm_of(product(whole, dtype="i32"), int, lambda argument: 0)


def test_accumulation_and_offsets():
    whole = Matrix(("input", 0), "3", ("4", "4"), ("4", "1"))
    made = gemm_of(product(whole, accumulate=True), int, lambda argument: 64)
    assert made.beta == 1.0
    assert (made.a, made.b, made.c) == (64, 64 + 12, 64)
