"""cuBLASLt through ctypes: products that add a bias in their epilogue.

A plan contains all that a product needs except its pointers: descriptors, and the algorithm that
the library's heuristic chooses for them. All sums, also partial ones, are computed in f32 or f64
and in a fixed order: there is no TF32, and no partial sum in halves.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import field
from typing import Any, NamedTuple

from ....dialect.dataclass import dataclass
from .cublas import COMPUTE, TYPES, check, factor, load
from .driver_api import DriverError, NoEpilogueError
from .gemm import ITEMSIZE, Gemm

# Values of cublasLt.h; there, the names begin with CUBLASLT_.
MATRIX_LAYOUT_BATCH_COUNT = 5
MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
MATMUL_DESC_TRANSA = 3
MATMUL_DESC_TRANSB = 4
MATMUL_DESC_EPILOGUE = 7
MATMUL_DESC_BIAS_POINTER = 8
MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
MATMUL_PREF_REDUCTION_SCHEME_MASK = 3
MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5
MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6
MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7
MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
REDUCTION_SCHEME_COMPUTE_TYPE = 2
EPILOGUE_BIAS = 4

_SCALE = {68: TYPES["f32"], 70: TYPES["f64"]}  # compute type -> type of the factors
_REFUSED = frozenset((7, 8, 15))  # CUBLAS_STATUS_{INVALID_VALUE, ARCH_MISMATCH, NOT_SUPPORTED}
_MOST_WORKSPACE = 32 << 20  # NVIDIA's suggestion for sm_90; algorithms ask for what they need
_MOST_ALIGNMENT = 256
_MOST_PLANS = 256

_int, _size, _pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
_attribute = (_pointer, _int, _pointer, _size)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_pointer,),
    "cublasLtMatmulDescCreate": (_pointer, _int, _int),
    "cublasLtMatmulDescSetAttribute": _attribute,
    "cublasLtMatmulDescDestroy": (_pointer,),
    "cublasLtMatrixLayoutCreate": (_pointer, _int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64),
    "cublasLtMatrixLayoutSetAttribute": _attribute,
    "cublasLtMatrixLayoutDestroy": (_pointer,),
    "cublasLtMatmulPreferenceCreate": (_pointer,),
    "cublasLtMatmulPreferenceSetAttribute": _attribute,
    "cublasLtMatmulPreferenceDestroy": (_pointer,),
    "cublasLtMatmulAlgoGetHeuristic": (*(_pointer,) * 7, _int, _pointer, _pointer),
    "cublasLtMatmul": (*(_pointer,) * 14, _size, _pointer),
}


class HeuristicResult(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``; the algorithm comes first."""

    _fields_ = [
        ("algo", ctypes.c_uint64 * 8),
        ("workspaceSize", _size),
        ("state", _int),
        ("wavesCount", ctypes.c_float),
        ("reserved", _int * 4),
    ]


class Described(NamedTuple):
    """The descriptors of a product."""

    operation: ctypes.c_void_p
    a: ctypes.c_void_p
    b: ctypes.c_void_p
    c: ctypes.c_void_p
    preference: ctypes.c_void_p


@dataclass(eq=False)
class ProductPlan:
    """The library's method for products of certain sizes, dtypes, layouts and alignments on a device.

    Attributes:
        handle: the library's handle for the device.
        described: the descriptors of the product.
        result: the result of the heuristic.
        lock: held while ``described`` contains the bias pointer of one call.
    """

    handle: ctypes.c_void_p
    described: Described
    result: HeuristicResult
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def workspace(self) -> int:
        """Bytes of device memory that a product needs while it runs."""
        return self.result.workspaceSize


class CublasLt:
    """The library, a handle per device, and plans; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: dict[int, ctypes.c_void_p] = {}
        # (device, shape, alignments) -> the plan, or the reason why there is none.
        self._plans: OrderedDict[tuple, ProductPlan | str] = OrderedDict()
        self._library: Any = None
        self._absent = ""
        try:
            self._library = load("cublasLt")
        except DriverError as error:
            self._absent = error.what
            return
        for name, types in SIGNATURES.items():
            getattr(self._library, name).argtypes = types

    def plan(self, device: int, product: Gemm) -> ProductPlan:
        """The plan of a product with a bias; the device's context must be current.

        Raises NoEpilogueError if the library is missing or does not support the product.
        """
        if self._library is None:
            raise NoEpilogueError(self._absent)
        key = (device, *product.shape, *alignments(product))
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plans[key] = self._made(device, product)
                while len(self._plans) > _MOST_PLANS:
                    self._plans.popitem(last=False)
            else:
                self._plans.move_to_end(key)
        if isinstance(plan, str):
            raise NoEpilogueError(plan)
        return plan

    def start(self, plan: ProductPlan, product: Gemm, workspace: int, stream: int) -> None:
        """Start a product by its plan.

        ``workspace``: address of ``plan.workspace`` bytes of device memory; 0 = none. Raises
        NoEpilogueError if the library refuses the product after all, DriverError if it fails.
        """
        one, zero = factor(product, 1.0), factor(product, 0.0)
        operation, a, b, c, _ = plan.described
        with plan.lock:
            self._set("MatmulDesc", operation, MATMUL_DESC_BIAS_POINTER, _pointer(product.bias))
            status = self._library.cublasLtMatmul(
                plan.handle,
                operation,
                ctypes.byref(one),
                product.a,
                a,
                product.b,
                b,
                ctypes.byref(zero),
                product.c,
                c,
                product.c,
                c,
                ctypes.byref(plan.result.algo),
                workspace or None,
                plan.workspace,
                stream,
            )
        if status in _REFUSED:
            raise NoEpilogueError(f"cuBLASLt refuses the product with status {status}")
        check(status, "cuBLASLt")

    def describe(self, stack: ExitStack, product: Gemm) -> Described:
        """Descriptors of a product, which ``stack`` destroys when it is closed; needs no device."""
        p, compute = product, COMPUTE[product.dtype]
        operation = self._created(stack, "MatmulDesc", compute, _SCALE[compute])
        self._set("MatmulDesc", operation, MATMUL_DESC_TRANSA, _int(p.trans_a))
        self._set("MatmulDesc", operation, MATMUL_DESC_TRANSB, _int(p.trans_b))
        self._set("MatmulDesc", operation, MATMUL_DESC_EPILOGUE, ctypes.c_uint32(EPILOGUE_BIAS))
        # The heuristic reads the bias's alignment from its pointer.
        self._set("MatmulDesc", operation, MATMUL_DESC_BIAS_POINTER, _pointer(p.bias))
        a = self._layout(stack, p.dtype, p.m, p.k, p.trans_a, p.lda, p.stride_a, p.batch)
        b = self._layout(stack, p.dtype, p.k, p.n, p.trans_b, p.ldb, p.stride_b, p.batch)
        c = self._layout(stack, p.output, p.m, p.n, False, p.ldc, p.stride_c, p.batch)
        preference = self._created(stack, "MatmulPreference")
        of_a, of_b, of_c, _ = alignments(product)
        for attribute, value in (
            (MATMUL_PREF_MAX_WORKSPACE_BYTES, ctypes.c_uint64(_MOST_WORKSPACE)),
            (MATMUL_PREF_REDUCTION_SCHEME_MASK, ctypes.c_uint32(REDUCTION_SCHEME_COMPUTE_TYPE)),
            (MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, ctypes.c_uint32(of_a)),
            (MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, ctypes.c_uint32(of_b)),
            (MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ctypes.c_uint32(of_c)),
            (MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ctypes.c_uint32(of_c)),
        ):
            self._set("MatmulPreference", preference, attribute, value)
        return Described(operation, a, b, c, preference)

    def _made(self, device: int, product: Gemm) -> ProductPlan | str:
        """A plan, or the reason why the library has none.

        Raises NoEpilogueError if a later call may get a plan.
        """
        if not product.k:
            return "cuBLASLt has no products of nothing"
        try:
            with ExitStack() as stack:
                plan = self._planned(device, self.describe(stack, product))
                # The descriptors live as long as the plan: a thread may still start a plan that is
                # not in `_plans` any more.
                weakref.finalize(plan, stack.pop_all().close).atexit = False
                return plan
        except DriverError as error:
            if error.transient:
                raise NoEpilogueError(error.what) from error
            return error.what

    def _planned(self, device: int, described: Described) -> ProductPlan:
        handle, result, count = self._handle(device), HeuristicResult(), _int()
        operation, a, b, c, preference = described
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            handle, operation, a, b, c, c, preference, 1, ctypes.byref(result), ctypes.byref(count)
        )
        if status in _REFUSED or (not status and not count.value):
            raise DriverError("cuBLASLt has no algorithm for it", "epilogue")
        check(status or result.state, "cuBLASLt")
        return ProductPlan(handle, described, result)

    def _handle(self, device: int) -> ctypes.c_void_p:
        if device not in self._handles:
            handle = _pointer()
            check(self._library.cublasLtCreate(ctypes.byref(handle)), "cuBLASLt")
            self._handles[device] = handle
        return self._handles[device]

    def _layout(
        self, stack: ExitStack, dtype: str, rows: int, columns: int, swapped: bool, step: int, stride: int, batch: int
    ) -> ctypes.c_void_p:
        """The layout descriptor of a matrix; ``swapped``: it is stored transposed."""
        stored = (columns, rows) if swapped else (rows, columns)
        layout = self._created(stack, "MatrixLayout", TYPES[dtype], *stored, step)
        if batch > 1:
            for attribute, value in (
                (MATRIX_LAYOUT_BATCH_COUNT, ctypes.c_int32(batch)),
                (MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, ctypes.c_int64(stride)),
            ):
                self._set("MatrixLayout", layout, attribute, value)
        return layout

    def _created(self, stack: ExitStack, kind: str, *fields: int) -> ctypes.c_void_p:
        descriptor = _pointer()
        check(getattr(self._library, f"cublasLt{kind}Create")(ctypes.byref(descriptor), *fields), "cuBLASLt")
        stack.callback(getattr(self._library, f"cublasLt{kind}Destroy"), descriptor)
        return descriptor

    def _set(self, kind: str, descriptor: ctypes.c_void_p, attribute: int, value: Any) -> None:
        change = getattr(self._library, f"cublasLt{kind}SetAttribute")
        check(change(descriptor, attribute, ctypes.byref(value), ctypes.sizeof(value)), "cuBLASLt")


def alignments(product: Gemm) -> tuple[int, int, int, int]:
    """Alignments of a, b, c and the bias in bytes; for a batch, that of all its matrices.

    Each is the largest power of two, up to `_MOST_ALIGNMENT`, that divides the addresses.
    """
    p, size, result = product, ITEMSIZE[product.dtype], ITEMSIZE[product.output]
    strides = (p.stride_a * size, p.stride_b * size, p.stride_c * result, 0)
    if p.batch == 1:
        strides = (0, 0, 0, 0)
    a, b, c, bias = (
        _lowest_bit(pointer | stride | _MOST_ALIGNMENT)
        for pointer, stride in zip((p.a, p.b, p.c, p.bias), strides, strict=True)
    )
    return a, b, c, bias


def _lowest_bit(number: int) -> int:
    return number & -number
