"""cuBLAS through ctypes: one function, for batches of products; halves are summed up in f32."""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from pathlib import Path

from .driver_api import DriverError
from .gemm import Gemm

# Values of cudaDataType and cublasComputeType_t; plain f32 stays f32, without TF32.
TYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 14}
COMPUTE = {"f32": 68, "f64": 70, "f16": 68, "bf16": 68}
_MAJOR = 13
_FULL_SUMS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
_SUCCESS = 0
_ALLOC_FAILED = 3


class Cublas:
    """The library, and a handle per thread and device: a handle serves one stream at a time.

    Raises DriverError if the library is missing.
    """

    def __init__(self) -> None:
        self._library = load("cublas")
        self._local = threading.local()

    def product(self, device: int, product: Gemm, stream: int) -> None:
        """Start a product; the device's context must be current. Raises DriverError."""
        handle = self._handle(device)
        check(self._library.cublasSetStream_v2(handle, ctypes.c_void_p(stream)))
        alpha, beta = factor(product, 1.0), factor(product, product.beta)
        type_, output = TYPES[product.dtype], TYPES[product.output]
        int_, long_, pointer = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
        check(
            self._library.cublasGemmStridedBatchedEx(
                handle,
                int_(product.trans_a),
                int_(product.trans_b),
                int_(product.m),
                int_(product.n),
                int_(product.k),
                ctypes.byref(alpha),
                pointer(product.a),
                int_(type_),
                int_(product.lda),
                long_(product.stride_a),
                pointer(product.b),
                int_(type_),
                int_(product.ldb),
                long_(product.stride_b),
                ctypes.byref(beta),
                pointer(product.c),
                int_(output),
                int_(product.ldc),
                long_(product.stride_c),
                int_(product.batch),
                int_(COMPUTE[product.dtype]),
                int_(-1),
            )
        )

    def _handle(self, device: int) -> ctypes.c_void_p:
        handles = self._local.__dict__.setdefault("handles", {})
        if device not in handles:
            handle = ctypes.c_void_p()
            check(self._library.cublasCreate_v2(ctypes.byref(handle)))
            # Without this mode, parts of long sums of halves might be added up in halves.
            check(self._library.cublasSetMathMode(handle, ctypes.c_int(_FULL_SUMS)))
            handles[device] = handle
        return handles[device]


def factor(product: Gemm, value: float) -> ctypes.c_double | ctypes.c_float:
    """A factor of a product, in the type in which the product is summed up."""
    return ctypes.c_double(value) if product.dtype == "f64" else ctypes.c_float(value)


def check(status: int, library: str = "cuBLAS") -> None:
    """Raise DriverError unless a call of a library succeeded."""
    if status != _SUCCESS:
        no_memory = status == _ALLOC_FAILED
        raise DriverError(f"{library} fails with status {status}", "cublas", transient=no_memory)


def load(stem: str) -> ctypes.CDLL:
    """A library of the ``nvidia-cublas`` wheel, else the system's; DriverError if there is neither.

    Args:
        stem: ``"cublas"`` or ``"cublasLt"``.
    """
    for name in (*_installed(f"lib{stem}.so.{_MAJOR}"), f"lib{stem}.so.{_MAJOR}", f"lib{stem}.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DriverError(f"there is no {stem}; install profuse[cuda]", "absent")


def _installed(name: str) -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or ()) if spec else ()
    paths = [Path(root, f"cu{_MAJOR}", "lib", name) for root in roots]
    return [str(path) for path in paths if path.exists()]
