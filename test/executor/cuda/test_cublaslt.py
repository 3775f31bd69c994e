"""What cuBLASLt is asked for, and what its answers become; the library where there is one."""

import ctypes
import gc
import itertools
import re
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from driver_api import Status
from internals import few_product_plans
from profuse.executor.cuda.nvidia import cublaslt as lt
from profuse.executor.cuda.nvidia.cublas import load
from profuse.executor.cuda.nvidia.driver_api import DriverError, NoEpilogueError
from profuse.executor.cuda.nvidia.gemm import Gemm


class Library:
    """As much of cuBLASLt as is used.

    Attributes:
        statuses: function -> what it returns; 0 unless given.
        found, workspace: what the heuristic answers: algorithms, and bytes that they need.
        calls: (function, arguments), in order.
        values: (descriptor, attribute) -> what it was last set to.
        biases: of the products that were started.
        slow: functions in which another thread gets its turn.
    """

    def __init__(self):
        self.statuses, self.found, self.workspace = {}, 1, 0
        self.calls, self.values, self.biases, self.slow = [], {}, [], set()
        self._serial = itertools.count(1000)

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, args))
            if name in self.slow:
                time.sleep(1e-4)
            status = self.statuses.get(name, 0)
            if name.endswith("Create") and not status:
                args[0]._obj.value = next(self._serial)
            elif name.endswith("SetAttribute"):
                descriptor, attribute, value, size = args
                assert size == ctypes.sizeof(value._obj)
                self.values[descriptor.value, attribute] = value._obj.value
            elif name == "cublasLtMatmulAlgoGetHeuristic":
                args[8]._obj.workspaceSize, args[9]._obj.value = self.workspace, self.found
            elif name == "cublasLtMatmul":
                time.sleep(0)
                self.biases.append(self.values[args[1].value, lt.MATMUL_DESC_BIAS_POINTER])
            return status

        return call

    def names(self, part):
        return [name for name, _ in self.calls if part in name]

    def given(self, name):
        """The arguments of the latest call of a function."""
        return next(args for called, args in reversed(self.calls) if called == name)


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(lt, "load", lambda stem: made)
    return made


def product(**changes):
    fields = {
        "dtype": "f32",
        "output": "f32",
        "trans_a": False,
        "trans_b": True,
        "m": 8,
        "n": 6,
        "k": 4,
        "a": 0x1000,
        "lda": 9,
        "b": 0x2000,
        "ldb": 7,
        "c": 0x4000,
        "ldc": 8,
        "bias": 0x8000,
    }
    return Gemm(**fields | changes)


def test_a_product_is_planned_once_and_started_with_its_pointers(driver, library, api):
    driver.product(0, product(), 7)
    driver.product(0, product(a=0x1100, b=0x2200, c=0x4400, bias=0x8800), 8)
    assert len(library.names("Heuristic")) == len(library.names("cublasLtCreate")) == 1
    assert library.biases == [0x8000, 0x8800]
    args = library.given("cublasLtMatmul")
    a, b, c, d = (args[k] for k in (3, 5, 8, 10))
    assert (a, b, c, d, args[13], args[15]) == (0x1100, 0x2200, 0x4400, 0x4400, None, 8)
    alpha, beta = (args[k]._obj for k in (2, 7))
    assert (alpha.value, beta.value, type(alpha)) == (1, 0, ctypes.c_float)
    assert api.context == 11  # the caller's again
    driver.product(1, product(), 7)  # handles are of one device, and so are plans
    assert len(library.names("Heuristic")) == len(library.names("cublasLtCreate")) == 2


@pytest.mark.parametrize(
    "dtype, output, computed, scaled, types",
    [
        ("f32", "f32", 68, 0, [0, 0, 0]),
        ("f64", "f64", 70, 1, [1, 1, 1]),
        ("bf16", "f32", 68, 0, [14, 14, 0]),
        ("f16", "f16", 68, 0, [2, 2, 2]),
    ],
)
def test_descriptors(library, dtype, output, computed, scaled, types):
    with ExitStack() as made:
        found = lt.CublasLt().describe(made, product(dtype=dtype, output=output))
        assert not library.names("Destroy")
    (operation,) = [args for name, args in library.calls if name == "cublasLtMatmulDescCreate"]
    assert operation[1:] == (computed, scaled)
    layouts = [args[1:] for name, args in library.calls if name == "cublasLtMatrixLayoutCreate"]
    # Type, rows and columns as they are stored, and elements from column to column.
    assert layouts == [(types[0], 8, 4, 9), (types[1], 6, 4, 7), (types[2], 8, 6, 8)]
    values = {a: v for (d, a), v in library.values.items() if d == found.operation.value}
    assert values == {
        lt.MATMUL_DESC_TRANSA: 0,
        lt.MATMUL_DESC_TRANSB: 1,
        lt.MATMUL_DESC_EPILOGUE: lt.EPILOGUE_BIAS,
        lt.MATMUL_DESC_BIAS_POINTER: 0x8000,
    }
    assert len(library.names("Destroy")) == 5


def test_batches_and_alignments(library):
    batch = product(a=0x1010, stride_a=36, stride_b=6, stride_c=48, batch=3, bias=0x8004)
    with ExitStack() as made:
        found = lt.CublasLt().describe(made, batch)
    for layout, stride in zip(found[1:4], (36, 6, 48), strict=True):
        assert library.values[layout.value, lt.MATRIX_LAYOUT_BATCH_COUNT] == 3
        assert library.values[layout.value, lt.MATRIX_LAYOUT_STRIDED_BATCH_OFFSET] == stride
    told = {a: v for (d, a), v in library.values.items() if d == found.preference.value}
    # In bytes; each matrix of a batch counts: the second of b starts at 24.
    assert told == {
        lt.MATMUL_PREF_MAX_WORKSPACE_BYTES: 32 << 20,
        lt.MATMUL_PREF_REDUCTION_SCHEME_MASK: lt.REDUCTION_SCHEME_COMPUTE_TYPE,
        lt.MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: 16,
        lt.MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: 8,
        lt.MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: 64,
        lt.MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: 64,
    }
    assert lt.alignments(batch) == (16, 8, 64, 4)


@pytest.mark.parametrize("moved", ["a", "b", "c", "bias"])
def test_alignment_is_part_of_what_a_plan_is_for(driver, library, moved):
    driver.product(0, product(), 7)
    driver.product(0, product(**{moved: 0x10004}), 7)
    driver.product(0, product(**{moved: 0x2000C}), 7)
    assert len(library.names("Heuristic")) == 2


def test_workspace_is_the_streams(driver, library, api):
    library.workspace = 1 << 20
    driver.product(0, product(), 7)
    assert [(name, args) for name, args, _ in api.calls if name.endswith("Async")] == [
        ("cuMemAllocAsync", (1 << 20, 7)),
        ("cuMemFreeAsync", (4096, 7)),
    ]
    assert library.given("cublasLtMatmul")[13:] == (4096, 1 << 20, 7)
    library.statuses["cublasLtMatmul"] = 13
    with pytest.raises(DriverError):
        driver.product(0, product(), 7)
    assert api.names().count("cuMemFreeAsync") == 2


def test_without_memory_for_a_workspace(driver, library, api):
    library.workspace = 1 << 20
    api.fails["cuMemAllocAsync"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(NoEpilogueError, match="there is no workspace: cuMemAllocAsync fails"):
        driver.product(0, product(), 7)
    api.fails.clear()
    driver.product(0, product(), 7)
    assert library.biases == [0x8000]
    api.fails["cuMemAllocAsync"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(DriverError) as lost:
        driver.product(0, product(), 7)
    assert lost.value.sticky and not isinstance(lost.value, NoEpilogueError)


@pytest.mark.parametrize("status, found", [(0, 0), (7, 0), (8, 0), (15, 0)])
def test_products_that_no_algorithm_takes_are_asked_for_once(driver, library, status, found):
    library.found, library.statuses["cublasLtMatmulAlgoGetHeuristic"] = found, status
    for _ in range(3):
        with pytest.raises(NoEpilogueError, match="cuBLASLt has no algorithm for it"):
            driver.product(0, product(), 7)
    assert len(library.names("Heuristic")) == 1
    assert len(library.names("Destroy")) == 5
    assert not library.biases


@pytest.mark.parametrize("function", ["cublasLtCreate", "cublasLtMatrixLayoutCreate"])
@pytest.mark.parametrize("status, tries", [(1, 1), (3, 2)])
def test_plans_that_fail(driver, library, function, status, tries):
    """What failed for lack of memory is tried again."""
    library.statuses[function] = status
    for _ in range(2):
        with pytest.raises(NoEpilogueError, match=f"cuBLASLt fails with status {status}"):
            driver.product(0, product(), 7)
    assert len(library.names(function)) == tries
    made = [name for name in library.names("Create") if name != "cublasLtCreate"]
    failed = tries if function != "cublasLtCreate" else 0
    assert len(library.names("Destroy")) == len(made) - failed
    library.statuses.clear()
    if tries == 2:
        driver.product(0, product(), 7)
        assert library.biases == [0x8000]


def test_sums_of_nothing_are_not_asked_for(driver, library):
    with pytest.raises(NoEpilogueError, match="no products of nothing"):
        driver.product(0, product(k=0), 7)
    assert not library.names("Heuristic")


@pytest.mark.parametrize("status", [7, 8, 15])
def test_products_that_are_refused_as_they_start(driver, library, status):
    library.statuses["cublasLtMatmul"] = status
    with pytest.raises(NoEpilogueError, match=f"refuses the product with status {status}"):
        driver.product(0, product(), 7)


@pytest.mark.parametrize("status, transient", [(3, True), (13, False)])
def test_products_that_fail(driver, library, status, transient):
    library.statuses["cublasLtMatmul"] = status
    with pytest.raises(DriverError, match=f"cuBLASLt fails with status {status}") as caught:
        driver.product(0, product(), 7)
    assert not isinstance(caught.value, NoEpilogueError)
    assert caught.value.transient == transient


def test_a_process_without_cublaslt(driver, monkeypatch):
    asked = []

    def missing(stem):
        asked.append(stem)
        raise DriverError(f"there is no {stem}")

    monkeypatch.setattr(lt, "load", missing)
    for _ in range(2):
        with pytest.raises(NoEpilogueError, match="there is no cublasLt"):
            driver.product(0, product(), 7)
    assert asked == ["cublasLt"]


def test_plans_that_are_not_kept_free_their_descriptors(driver, library, monkeypatch):
    few_product_plans(monkeypatch, 2)
    for m in (8, 9, 10):
        driver.product(0, product(m=m, lda=m, ldc=m), 7)
    gc.collect()
    assert len(library.names("Destroy")) == 5
    driver.product(0, product(m=9, lda=9, ldc=9), 7)
    assert len(library.names("Heuristic")) == 3


def test_threads_share_a_plan_and_keep_their_biases(driver, library):
    library.slow = {"cublasLtMatmul"}

    def work(number):
        for _ in range(20):
            driver.product(0, product(bias=0x10000 * number), number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    streams = [args[15] for name, args in library.calls if name == "cublasLtMatmul"]
    assert len(library.names("Heuristic")) == 1
    assert sorted(library.biases) == sorted(0x10000 * stream for stream in streams)


# --- the library itself ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed():
    try:
        return load("cublasLt")
    except DriverError as error:
        pytest.skip(error.what)


@pytest.fixture(scope="module")
def header(installed):
    """The text of ``cublasLt.h``, beside the library."""
    path = Path(installed._name).parent.parent / "include" / "cublasLt.h"
    if not path.exists():
        pytest.skip(f"the library has no header at {path}")
    return path.read_text()


def test_values_are_those_of_the_header(header):
    names = [name for name in vars(lt) if re.fullmatch(r"(MATRIX|MATMUL|REDUCTION|EPILOGUE)_\w+", name)]
    assert len(names) == 14
    for name in names:
        (value,) = re.findall(rf"^  CUBLASLT_{name} = (\w+),", header, re.MULTILINE)
        assert int(value, 0) == getattr(lt, name), name


def test_signatures_are_those_of_the_header(header):
    kinds = {
        "size_t": ctypes.c_size_t,
        "int": ctypes.c_int,
        "uint64_t": ctypes.c_uint64,
        "int64_t": ctypes.c_int64,
        "cudaDataType": ctypes.c_int,
        "cudaDataType_t": ctypes.c_int,
        "cublasComputeType_t": ctypes.c_int,
        "cublasLtHandle_t": ctypes.c_void_p,
        "cublasLtMatmulDesc_t": ctypes.c_void_p,
        "cublasLtMatrixLayout_t": ctypes.c_void_p,
        "cublasLtMatmulPreference_t": ctypes.c_void_p,
        "cudaStream_t": ctypes.c_void_p,
    }

    def kind(parameter):
        type_, _ = parameter.replace("const ", "").strip().rsplit(" ", 1)
        if "*" in parameter or parameter.endswith("[]"):
            return ctypes.c_void_p
        return ctypes.c_int if type_.endswith(("Attribute_t", "Attributes_t")) else kinds[type_]

    for name, types in lt.SIGNATURES.items():
        (listed,) = re.findall(rf"^cublasStatus_t CUBLASWINAPI {name}\(([^;]*)\);", header, re.MULTILINE)
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", listed)
        assert tuple(kind(" ".join(p.split())) for p in plain.split(",")) == types, name
    (members,) = re.findall(r"typedef struct \{([^}]*)\} cublasLtMatmulHeuristicResult_t;", header)
    fields = re.findall(r"(\w+)(?:\[\d+\])?;", re.sub(r"/\*.*?\*/", "", members, flags=re.DOTALL))
    assert fields == [name for name, _ in lt.HeuristicResult._fields_]
    assert ctypes.sizeof(lt.HeuristicResult) == 96


READ = {
    "MatmulDesc": {
        0: ctypes.c_int32,
        1: ctypes.c_int32,
        lt.MATMUL_DESC_TRANSA: ctypes.c_int32,
        lt.MATMUL_DESC_TRANSB: ctypes.c_int32,
        lt.MATMUL_DESC_EPILOGUE: ctypes.c_uint32,
        lt.MATMUL_DESC_BIAS_POINTER: ctypes.c_void_p,
    },
    "MatrixLayout": {
        0: ctypes.c_uint32,
        2: ctypes.c_uint64,
        3: ctypes.c_uint64,
        4: ctypes.c_int64,
        lt.MATRIX_LAYOUT_BATCH_COUNT: ctypes.c_int32,
        lt.MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: ctypes.c_int64,
    },
    "MatmulPreference": {
        lt.MATMUL_PREF_MAX_WORKSPACE_BYTES: ctypes.c_uint64,
        lt.MATMUL_PREF_REDUCTION_SCHEME_MASK: ctypes.c_uint32,
        lt.MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: ctypes.c_uint32,
        lt.MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: ctypes.c_uint32,
    },
}


def test_the_library_takes_the_descriptors(installed):
    """Made, and read back, without a device."""

    def read(kind, descriptor):
        found = []
        for attribute, type_ in READ[kind].items():
            value, written = type_(), ctypes.c_size_t()
            status = getattr(installed, f"cublasLt{kind}GetAttribute")(
                descriptor, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(written)
            )
            assert (status, written.value) == (0, ctypes.sizeof(value))
            found.append(value.value)
        return found

    whole = product(dtype="bf16", stride_a=48, stride_b=28, stride_c=48, batch=5, b=0x2010)
    with ExitStack() as made:
        found = lt.CublasLt().describe(made, whole)
        assert read("MatmulDesc", found.operation) == [68, 0, 0, 1, lt.EPILOGUE_BIAS, 0x8000]
        assert [read("MatrixLayout", x) for x in (found.a, found.b, found.c)] == [
            [14, 8, 4, 9, 5, 48],
            [14, 6, 4, 7, 5, 28],
            [0, 8, 6, 8, 5, 48],
        ]
        assert read("MatmulPreference", found.preference) == [32 << 20, 2, 32, 64]


def test_the_library_without_a_device(installed):
    """Its handles need one; that is a reason for products without a bias, and no more."""
    handle = ctypes.c_void_p()
    if not installed.cublasLtCreate(ctypes.byref(handle)):
        installed.cublasLtDestroy(handle)
        pytest.skip("there is a device")
    with pytest.raises(NoEpilogueError, match="cuBLASLt fails with status 1"):
        lt.CublasLt().plan(0, product())
