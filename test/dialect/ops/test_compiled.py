"""Kernels of every op against NumPy, over dtypes, shape classes and layouts, static and dynamic.

Everything comes out of `cases`, so that a new op needs nothing here but, if kernels refuse some of
its operands, an entry in REFUSED.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Hashable, Iterator
from functools import cache, lru_cache

import numpy as np
import pytest
from cases import Case, all_suites, cases_of, edge_values
from compiled import Call, dynamic_call, run_batches, static_call
from compiling import quick_code
from every_case import EVERY_CASE
from profuse.dialect.ir.device import HOST
from profuse.dialect.ir.dtypes import DType, dtype_of
from profuse.dialect.ir.op import Fusion, op_named
from profuse.dialect.ir.types import ScalarType, TensorType, Type
from profuse.dialect.ops.elementwise.families import Elementwise

pytestmark = pytest.mark.optimised  # as users get them

NAMES = tuple(dict.fromkeys(name for name, _ in all_suites()))
each_op = pytest.mark.parametrize("name", NAMES, ids=lambda n: n.removeprefix("profuse."))

# Dtype kinds for which some operands are refused, besides complex.
REFUSED: dict[str, str] = {
    # Python or NumPy raises for some values, which a kernel cannot.
    "shift_left": "b",
    "shift_right": "b",
    "reciprocal": "biu",
    # What they give decides on the control flow of Python code.
    "item": "bfiu",
    "truth": "bfiu",
    "count": "i",
    # Left to `decompose`.
    "addmm": "bfiu",
}

# Ops that take no complex operands at all.
REFUSED_COMPLEX = {
    "item",
    "truth",
    "max",
    "min",
    "argmax",
    "argmin",
    "sum_to",
    "absorbing_mul",
    "stop_gradient",
    "flat_at_zero",
    "clip",
    "rsqrt",
    "erf",
    "relu",
    "sign",
    "exp2",
    "expm1",
    "log2",
    "log10",
    "log1p",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "rint",
    "round",
    "index_add",
    "gather_add",
    "matmul",
    "addmm",
    "mm_tree",
    "var",
    "std",
    "cumsum",
    "cumprod",
    "index_put",
    "index_multiply",
}
# Ops that refuse some: Python numbers alone, for which Python may raise; complex numbers as real
# ones, of which NumPy warns; powers but for a few.
REFUSED_SOME_COMPLEX = {"pow", "select", "cast", "abs"}
# Functions of Python's `math` and `cmath`, which raise; only kernels of loops have them.
for _name in NAMES:
    if _name.startswith("profuse.cmath_"):
        REFUSED_COMPLEX.add(_name.removeprefix("profuse."))
    elif _name.startswith("profuse.math_"):
        REFUSED[_name.removeprefix("profuse.")] = "bfi"

# The same for symbolic sizes that fit some values only.
REFUSED_DYNAMIC: dict[str, str] = dict.fromkeys(
    ["reshape", "squeeze", "broadcast_to", "full", "split", "chunk", "slice_scatter"], "bfiu"
)
REFUSED_DYNAMIC["gather_add"] = "fiu"
# The sizes of their attributes hold for literal sizes alone.
REFUSED_DYNAMIC |= dict.fromkeys(
    ["native_layer_norm", "native_layer_norm_backward", "native_group_norm", "sum_to_size"], "f"
)
REFUSED_DYNAMIC |= dict.fromkeys(["reshape_copy", "squeeze_copy", "broadcasting_chunk"], "fi")


# Elementwise ops share all that reads and writes elements: of these widths meet layouts.
ADDRESSING = {"add", "lt", "neg", "cast", "select"}
SOME = 8  # by default one pair of a width, a layout and a set of attributes in so many occurs


def is_complex(case: Case) -> bool:
    """True if an operand or a result is."""
    values = case.reference if isinstance(case.reference, tuple) else (case.reference,)
    return any(np.asarray(x).dtype.kind == "c" for x in (*case.args, *values))


@lru_cache(maxsize=2)
def calls_of(name: str, *, dynamic: bool) -> tuple[Call, ...]:
    """Every case of an op that NumPy computes, as a kernel would be asked for it."""
    cases = [c for n, dtype in all_suites() if n == name for c in cases_of(name, dtype)]
    cases = [c for c in cases if not isinstance(c.reference, Exception)]
    calls = [static_call(c) for c in cases]
    if dynamic:
        calls = [c for s in calls if not s.refusal() and (c := dynamic_call(s.case))]
    return tuple(calls)


def selected(name: str, *, dynamic: bool) -> list[Call]:
    """The calls to compile: in all, or so many that all `aspects` of them occur."""
    calls = [c for c in calls_of(name, dynamic=dynamic) if not c.refusal()]
    if EVERY_CASE:
        return calls
    # In an order in which the dtypes are mixed.
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(calls))
    return smallest_cover([(calls[k], set(aspects(calls[k], dynamic=dynamic))) for k in order])


def smallest_cover(given: list[tuple[Call, set[Hashable]]]) -> list[Call]:
    """Few calls with all aspects: always the one with most that none before has, the first such."""
    missing = set().union(*(found for _, found in given))
    # What a call adds only falls: the heap has the call that adds most on top, or says so too soon.
    heap = [(-len(found), k) for k, (_, found) in enumerate(given)]
    heapq.heapify(heap)
    chosen = []
    while missing:
        _, k = heapq.heappop(heap)
        adds = len(given[k][1] & missing)
        if heap and (-adds, k) > heap[0]:
            heapq.heappush(heap, (-adds, k))
            continue
        missing -= given[k][1]
        chosen.append(k)
    return [given[k][0] for k in sorted(chosen)]


def aspects(call: Call, *, dynamic: bool) -> Iterator[Hashable]:
    """What a call tests: each dtype at its edges, width, layout and attribute, and of their pairs one in `SOME`."""
    op, attrs = call.case.op, call.case.attrs
    given = {t.dtype for t in call.types}
    wanted = op.operand_dtypes(call.types, call.attrs) or (None,) * len(call.types)
    dtypes = tuple(w or t.dtype for w, t in zip(wanted, call.types, strict=True))
    # Off the edges dtypes of one width are compiled alike, and more so how they are addressed.
    widths = tuple((d.bits, d.is_float and not dynamic) for d in dtypes)
    # Elementwise ops share all that reads and writes elements.
    alike = issubclass(op, Elementwise) and op.name not in ADDRESSING
    layouts = tuple("array" if alike and isinstance(t, TensorType) else layout(t) for t in call.types)
    result = next((v for v in attrs.values() if isinstance(v, DType)), None)
    others = sorted((k, v) for k, v in attrs.items() if not isinstance(v, DType))
    rest = repr(others)
    if len(given) == 1:
        yield "given", *given
    # Kernels of literal sizes meet pairs of all kinds, and so do those of symbolic ones of a few ops: what
    # differs between the two is how sizes and strides are read, not what is computed.
    every_kind = not dynamic or op.name in ADDRESSING
    tensors = [(t, w) for t, w in zip(call.types, wanted, strict=True) if isinstance(t, TensorType)]
    if len({t.dtype for t, _ in tensors}) > 1 and any(w for _, w in tensors):
        # Casts have cases of their own.
        if every_kind:
            yield "mixed", dtypes
        return
    # Those of another dtype are none, cast to that in which an op computes.
    if any(has_edges(a) and dtype_of(a.dtype) is d for a, d in zip(call.case.args, dtypes, strict=True)):
        yield "edges", dtypes, result, rest
    yield widths, result
    yield "layouts", layouts
    yield from (("attribute", k, repr(v)) for k, v in others)
    pairs: list[Hashable] = [(layouts, rest)]
    if every_kind and not alike:
        pairs += [(widths, layouts), (result, layouts)]
    # What only moves elements does not look at them.
    if every_kind and op.fusion is not Fusion.VIEW:
        pairs.append((widths, rest))
    yield from (pair for pair in pairs if zlib.crc32(repr(pair).encode()) % SOME == 0)


def has_edges(value: object) -> bool:
    """True if an array has all the `edge_values` of its dtype."""
    if not isinstance(value, np.ndarray):
        return False
    edges = edge_bytes(dtype_of(value.dtype))
    return value.size >= len(edges) and edges <= bits_of(value)


@cache
def edge_bytes(dtype: DType) -> set[bytes]:
    return bits_of(edge_values(dtype))


def bits_of(array: np.ndarray) -> set[bytes]:
    """Of each element; those of nan are equal to themselves."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return set(flat.view(f"V{flat.itemsize}").tolist())


def layout(type_: Type) -> Hashable:
    """Sizes and strides, or whether a number is known."""
    if isinstance(type_, TensorType):
        return type_.shape, type_.strides
    return "number" if isinstance(type_, ScalarType) and type_.value is None else "constant"


def each_way(name: str) -> Iterator[object]:
    """An op with literal and with symbolic sizes: with these, by default, those of `ADDRESSING` and some others."""
    short = name.removeprefix("profuse.")
    yield pytest.param(name, False, id=f"{short}-static")
    marks = [] if short in ADDRESSING else [pytest.mark.sampled(5)]
    yield pytest.param(name, True, id=f"{short}-dynamic", marks=marks)


@pytest.mark.parametrize("device", [HOST, pytest.param("cuda:0", marks=pytest.mark.cuda)])
@pytest.mark.parametrize(("name", "dynamic"), [way for name in NAMES for way in each_way(name)])
def test_kernels_conform(name: str, dynamic: bool, device: str) -> None:
    """A kernel returns what NumPy returns, and writes nothing else."""
    # LLVM's part is the same for sizes that are known and for others, and little where elements only move.
    with quick_code((dynamic or op_named(name).fusion is Fusion.VIEW) and not EVERY_CASE):
        wrong = run_batches(selected(name, dynamic=dynamic), dynamic=dynamic, device=device)
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])


@pytest.mark.sampled(12)
@each_op
def test_refusals(name: str) -> None:
    """What kernels refuse is what is listed, and a reason is given for it."""
    found: dict[bool, set[str]] = {False: set(), True: set()}
    taken = False
    for dynamic in found:
        for call in calls_of(name, dynamic=dynamic):
            reason = call.refusal()
            if reason is not None:
                assert reason.strip(), call.case
                found[dynamic].add("c" if is_complex(call.case) else call.case.dtype.kind)
            else:
                taken |= is_complex(call.case)
    short = name.removeprefix("profuse.")
    assert taken == (short not in REFUSED_COMPLEX) or "c" not in found[False]
    refused = {"c"} if short in REFUSED_COMPLEX | REFUSED_SOME_COMPLEX else set()
    assert found[False] == refused | set(REFUSED.get(short, ""))
    assert found[True] - {"c"} == set(REFUSED_DYNAMIC.get(short, ""))


@pytest.mark.parametrize("name", ["exp", "add"])
def test_every_dtype_is_compiled_at_its_edges(name: str) -> None:
    """Of what has all edges of the dtype that it is computed in some call is compiled, by default too."""

    def met(calls: list[Call]) -> set[str]:
        return {str(a.dtype) for call in calls for a in call.case.args if has_edges(a) and a.dtype.kind in "fcV"}

    full = f"profuse.{name}"
    every = met([call for call in calls_of(full, dynamic=False) if not call.refusal()])
    assert {"float32", "float64"} <= every
    assert met(selected(full, dynamic=False)) == every


def test_refusals_are_of_known_ops() -> None:
    assert {f"profuse.{name}" for name in (*REFUSED, *REFUSED_DYNAMIC)} <= set(NAMES)
