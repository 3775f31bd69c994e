"""The bits of products: parts of them against one call of the library, and kernels on threads.

As a program, ``product_bits.py CASES`` prints each difference that it finds; `test_product_calls`
starts it with `OPENBLAS_CORETYPE` set, which decides on the kernels of the library.
"""

import ctypes
import os
import sys

import numpy as np
import scipy_openblas32
from graphs import Graph, tensor
from native import built
from profuse.dialect.ir.dtypes import F32, F64
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.loader import set_library_threads
from profuse.lowering.cpu.pool_block import block
from profuse.lowering.schedule.library_calls import ELEMENTS, FEW, ROWS
from profuse.lowering.thread_pool import COLUMNS

THREADS = (1, 2, 3, 4, 7)
_FOLDER = scipy_openblas32.get_lib_dir()
_NAME = next(n for n in sorted(os.listdir(_FOLDER)) if n.startswith("libscipy_openblas"))
LIBRARY = ctypes.CDLL(os.path.join(_FOLDER, _NAME))
_LETTERS = {"f": ("s", ctypes.c_float), "d": ("d", ctypes.c_double)}
# Type of elements, which operands are transposed, whether the right one is a vector.
PRODUCTS = (
    ("f8", (0, 0), False),
    ("f4", (0, 0), False),
    ("f4", (1, 0), True),
    ("f8", (1, 0), True),
    ("f4", (1, 1), False),
    ("f8", (0, 1), False),
    ("f4", (0, 0), True),
    ("f8", (1, 0), False),
    ("f4", (0, 1), False),
    ("f8", (0, 0), True),
    ("f4", (1, 0), False),
    ("f8", (1, 1), False),
)
_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112


def _layout(matrix):
    rows, columns = (s // matrix.itemsize for s in matrix.strides)
    if columns == 1 or matrix.shape[1] == 1:
        return _NO_TRANS, max(rows, matrix.shape[1], 1)
    return _TRANS, max(columns, matrix.shape[0], 1)


def call(left, right, out, beta=0.0):
    """One call of the library: ``out = left @ right + beta * out``; ``right`` may be a vector."""
    letter, number = _LETTERS[left.dtype.char]
    flag, leading = _layout(left)
    one, beta = number(1.0), number(beta)
    a, b, c = (ctypes.c_void_p(x.ctypes.data) for x in (left, right, out))
    rows, shared = left.shape
    if right.ndim == 1:
        sizes = (rows, shared) if flag == _NO_TRANS else (shared, rows)
        function = getattr(LIBRARY, f"scipy_cblas_{letter}gemv")
        function(_ROW_MAJOR, flag, *sizes, one, a, leading, b, 1, beta, c, 1)
        return
    other, width = _layout(right)
    function = getattr(LIBRARY, f"scipy_cblas_{letter}gemm")
    sizes = rows, right.shape[1], shared
    target = out.strides[0] // out.itemsize
    function(_ROW_MAJOR, flag, other, *sizes, one, a, leading, b, width, beta, c, target)


def whole(left, right, beta=0.0, into=None):
    """The result of one call."""
    shape = left.shape[:1] + right.shape[1:]
    out = np.empty(shape, left.dtype) if into is None else into.copy()
    call(left, right, out, beta)
    return out


def with_rest(left, right):
    """The result of a call for as many columns as `ELEMENTS` divides, and one for the rest."""
    out = np.empty((len(left), right.shape[1]), left.dtype)
    cut = right.shape[1] // ELEMENTS * ELEMENTS
    for part in (slice(0, cut), slice(cut, None)):
        call(left, right[:, part], out[:, part])
    return out


def matrix(rng, rows, columns, dtype, turned):
    """Random numbers; ``turned``: the rows are contiguous in memory, not the columns."""
    shape = (columns, rows) if turned else (rows, columns)
    made = rng.standard_normal(shape).astype(dtype)
    return made.T if turned else made


def _size(rng, low, high):
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _cut(rng, size, unit):
    """Where two parts meet, each of at least ``unit``."""
    return unit * int(rng.integers(1, max(size // unit, 2)))


def parts(cases, seed=0):
    """Differences between calls for two parts of a product and one call, on random sizes."""
    rng, found, done = np.random.default_rng(seed), [], 0
    while done < cases:
        dtype, turned = rng.choice(["f4", "f8"]), rng.integers(0, 2, 2) == 1
        rows, shared, columns = (_size(rng, *b) for b in ((50, 700), (5, 1500), (5, 700)))
        a, b = (matrix(rng, rows, shared, dtype, turned[0]), matrix(rng, shared, columns, dtype, turned[1]))
        cut, beta = _cut(rng, rows, ROWS), float(rng.integers(0, 2))
        if rows - cut < ROWS or min(cut, rows - cut) * shared * columns <= FEW:
            continue
        done += 1
        into = rng.standard_normal((rows, columns)).astype(dtype)
        one, two = whole(a, b, beta, into), into.copy()
        call(a[:cut], b, two[:cut], beta)
        call(a[cut:], b, two[cut:], beta)
        if one.tobytes() != two.tobytes():
            found.append(f"rows {cut} of {dtype} {a.shape} @ {b.shape}, transposed {turned}, {beta}")
        # Of a vector, and of columns, what is no multiple stays apart.
        x, size = rng.standard_normal(shared).astype(dtype), rows
        if turned[0] and dtype == "f4":
            size = rows // ELEMENTS * ELEMENTS
        cut = _cut(rng, size, ELEMENTS)
        one, two = whole(a[:size], x), np.empty(size, dtype)
        call(a[:cut], x, two[:cut])
        call(a[cut:size], x, two[cut:])
        if one.tobytes() != two.tobytes():
            found.append(f"elements {cut} of {dtype} {a[:size].shape} @ {x.shape}, {turned[0]}")
        if dtype == "f4" and block()[COLUMNS]:
            continue
        a = a[: int(rng.integers(1, 2 * ROWS))]
        width = columns // ELEMENTS * ELEMENTS
        cut = _cut(rng, width, ELEMENTS)
        if min(cut, width - cut) * a.size > FEW:
            one, two = whole(a, b[:, :width]), np.empty((len(a), width), dtype)
            call(a, b[:, :cut], two[:, :cut])
            call(a, b[:, cut:width], two[:, cut:])
            if one.tobytes() != two.tobytes():
                found.append(f"columns {cut} of {dtype} {a.shape} @ {b[:, :width].shape}, {turned}")
    return found


def kernel(dtype, turned, vector=False):
    """A kernel of unknown sizes: a product of two matrices, or of a matrix and a vector."""
    dims = [("n", "k"), ("k", "m")]
    shapes = [d[::-1] if t else d for d, t in zip(dims, turned, strict=True)]
    if vector:
        shapes[1] = ("k",)
    g = Graph(*(tensor(*s, dtype=F32 if dtype == "f4" else F64) for s in shapes))
    given = [g.transpose(v) if t else v for v, t in zip(g.inputs, turned, strict=True)]
    return built(g.returning(g.matmul(*given)))


def one_call(a, b):
    """What a kernel promises: the result of one call; None = the bits of no such call."""
    is_turned = a.strides[1] != a.itemsize
    if b.ndim == 1 and not is_turned:
        return whole(a, b)
    if b.ndim == 1 and a.dtype == np.float64:
        return None  # loops add up the rows
    if b.ndim == 1:
        cut = len(a) // ELEMENTS * ELEMENTS
        return np.concatenate([whole(a[:cut], b), whole(a[cut:], b)])
    if len(a) >= 2 * ROWS:
        return whole(a, b)
    joined = a.dtype == np.float64 or not block()[COLUMNS]
    return with_rest(a, b) if joined else None


def on_threads(cases, seed=0):
    """Differences between kernels on several numbers of threads, and one call."""
    rng, found = np.random.default_rng(seed), []
    for number in range(cases):
        dtype, turned, vector = PRODUCTS[number % len(PRODUCTS)]
        made = kernel(dtype, turned, vector)
        for _ in range(4):
            rows = _size(rng, 700, 3000) if vector else int(rng.choice([9, 47, 48, 61, 300, 901]))
            shared = _size(rng, 300, 900)
            columns = _size(rng, 1500, 3000) if rows < 2 * ROWS else _size(rng, 150, 700)
            a = matrix(rng, rows, shared, dtype, turned[0])
            b = matrix(rng, shared, columns, dtype, turned[1])
            b = b[:, 0].copy() if vector else b
            given = [x if x.flags.c_contiguous else x.T for x in (a, b)]
            results = []
            for count in THREADS:
                kernel_threads.use_threads(count)
                results.append(made(*given)[0])
            kernel_threads.use_threads(1)
            what = f"{dtype} {a.shape} @ {b.shape}, transposed {turned}"
            if len({r.tobytes() for r in results}) > 1:
                found.append(f"threads: {what}")
            wanted = one_call(a, b)
            if wanted is not None and results[0].tobytes() != wanted.tobytes():
                found.append(f"not one call: {what}")
    return found


if __name__ == "__main__":
    set_library_threads(1)
    print(*parts(int(sys.argv[1])), *on_threads(int(sys.argv[2])), sep="\n")
    LIBRARY.scipy_openblas_get_corename.restype = ctypes.c_char_p
    print("kernels:", LIBRARY.scipy_openblas_get_corename().decode())
