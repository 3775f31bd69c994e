"""Inline math: error bounds, special values, and that the loop around it becomes SIMD code."""

import ctypes
import ctypes.util
import os
import platform
import re
from pathlib import Path

import math_harness
import numpy as np
import pytest
import scipy.special
from graphs import Graph, tensor
from mlir import ir
from native import Kernel
from profuse.lowering import math
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

BINARY = {"powf": np.power, "atan2": np.arctan2}
UNARY = {
    name: scipy.special.erf if name == "erf" else getattr(np, name) for name in math.EXPANSIONS if name not in BINARY
}
FLOATS = {"f32": np.float32, "f64": np.float64}
CASES = [
    pytest.param(name, FLOATS[dtype], id=f"{name}-{dtype}")
    for name in math.EXPANSIONS
    for dtype, bound in zip(FLOATS, math.ULP_BOUNDS[name], strict=True)
    if bound is not None and (host_target().fused or dtype == "f32" or name not in math.FUSED_F64)
]
# f(x) is x near 0.
LIKE_X = ("asin", "asinh", "atan", "atanh", "expm1", "log1p", "sin", "sinh", "tan", "tanh")
COUNT = 20_000


def bound(name: str, dtype: type) -> float:
    value = math.ULP_BOUNDS[name][dtype is np.float64]
    assert value is not None
    return value


def kernel(name: str, dtype: type, slow_subnormals: bool = False) -> math_harness.Kernel:
    arity = 2 if name in BINARY else 1
    return math_harness.compile_function(name, dtype, arity, slow_subnormals=slow_subnormals)


def erf_long(x: np.ndarray) -> np.ndarray:
    """erf in long double, by the series of positive terms x**(2n+1) * 2**n / (2n+1)!!."""
    a = np.minimum(np.abs(x), np.longdouble(7))
    term = total = a
    for n in range(1, 260):
        term = term * (2 * a * a / (2 * n + 1))
        total = total + term
    value = 2 / np.sqrt(np.longdouble("3.14159265358979323846264338327950288")) * total
    return np.copysign(np.minimum(value * np.exp(-a * a), 1), x)


def reference(name: str, *arrays: np.ndarray) -> np.ndarray:
    wide = np.float64 if arrays[0].dtype == np.float32 else np.longdouble
    if name == "erf" and wide is np.longdouble:
        return erf_long(arrays[0].astype(wide))
    function = BINARY.get(name) or UNARY[name]
    return function(*[a.astype(wide) for a in arrays])


def specials(dtype: type) -> np.ndarray:
    info = np.finfo(dtype)
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 2.0**53, 2.0**53 + 2, np.inf, info.tiny, info.max]
    positive += [info.smallest_subnormal, info.tiny / 4, 1 + info.eps, 1 - info.epsneg, 1e10, 1e-10]
    half = np.array(positive, dtype)
    return np.concatenate([half, -half, np.array([np.nan], dtype)])


def any_bits(rng: np.random.Generator, dtype: type) -> np.ndarray:
    """Every exponent, both signs, subnormals, NaN: bit patterns at random."""
    word = np.dtype(f"i{np.dtype(dtype).itemsize}")
    limits = np.iinfo(word)
    return rng.integers(limits.min, limits.max, COUNT, word, endpoint=True).view(dtype)


def every_exponent(dtype: type) -> np.ndarray:
    """All exponents and signs, with the mantissas at the ends, in the middle and some others."""
    info = np.finfo(dtype)
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    last = 2**info.nmant - 1
    mantissas = [0, 1, last // 2, last // 2 + 1, last - 1, last]
    others = 26 if info.bits == 32 else 4
    mantissas += np.random.default_rng(1).integers(0, last, others).tolist()
    exponents = np.arange(2 ** (info.bits - info.nmant), dtype=word) << word.type(info.nmant)
    return (exponents[:, None] | np.array(mantissas, word)).ravel().view(dtype)


# Where expansions change their way: ends of ranges, thresholds, rounding of n.
COMMON = [0.0, np.log(2.0) / 2, 0.5, np.sqrt(0.5), 1.0, np.sqrt(2.0), 2.0, 2.0**60]
BOUNDARIES = {
    np.float32: [
        *COMMON,
        88.72284,
        89.416,
        -87.336544,
        -103.27893,
        -103.97208,
        18.0,
        9.02,
        3.95,
        128.0,
        -126.0,
        -127.0,
        -149.0,
        -150.0,
        -151.0,
        2.0**-40,
    ],
    np.float64: [
        *COMMON,
        709.7827128933841,
        710.475860073944,
        -708.3964185322641,
        -744.4400719213812,
        -745.1332191019411,
        38.0,
        22.0,
        6.0,
        1024.0,
        -1022.0,
        -1023.0,
        -1074.0,
        -1075.0,
        2.0**-60,
        2.0**200,
    ],
}


def neighbours(dtype: type, reach: int = 300) -> np.ndarray:
    """The numbers next to every boundary and to its negative."""
    bits = np.array(BOUNDARIES[dtype], dtype).view(f"i{np.dtype(dtype).itemsize}")
    found = (bits[:, None] + np.arange(-reach, reach, dtype=bits.dtype)).ravel().view(dtype)
    return np.concatenate([found, -found])


def unary_samples(dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    # To where e**x leaves the range at either end.
    widest = 110.0 if dtype is np.float32 else 760.0
    ranges = [
        any_bits(rng, dtype),
        *(rng.uniform(-limit, limit, COUNT) for limit in (1.0, 3.0, 20.0, widest, 1e5)),
        *(1.0 + rng.normal(size=COUNT) * scale for scale in (0.3, 1e-3, 1e-6)),
        np.ldexp(rng.uniform(1, 2, COUNT), rng.integers(-40, 40, COUNT)),
    ]
    own = [specials(dtype), every_exponent(dtype), neighbours(dtype, 30)]
    return np.concatenate([r.astype(dtype) for r in ranges] + own)


def binary_samples(dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    ranges = [
        (any_bits(rng, dtype), any_bits(rng, dtype)),
        (any_bits(rng, dtype), rng.normal(size=COUNT)),
        (rng.normal(size=COUNT), rng.normal(size=COUNT) * 10),
        (rng.normal(size=COUNT), rng.integers(-50, 50, COUNT)),
        (np.exp(rng.uniform(-60, 60, COUNT)), rng.uniform(-13, 13, COUNT)),
        (1 + rng.normal(size=COUNT) * 1e-3, rng.normal(size=COUNT) * 1e5),
        (rng.uniform(0.5, 2.0, 10 * COUNT), rng.uniform(-90, 90, 10 * COUNT)),
        tuple(grid.ravel() for grid in np.meshgrid(specials(dtype), specials(dtype))),
    ]
    return [np.concatenate([r[i].astype(dtype) for r in ranges]) for i in range(2)]


def describe(name: str, arrays: list[np.ndarray], result: np.ndarray, error: np.ndarray) -> str:
    worst = int(error.argmax())
    arguments = ", ".join(repr(a[worst]) for a in arrays)
    return f"{name}({arguments}) = {result[worst]!r}: {error[worst]:.3f} ulp"


def check(name: str, dtype: type, *arrays: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        result = kernel(name, dtype)(*arrays)
        error = math_harness.ulp_error(result, reference(name, *arrays))
    assert error.max() <= bound(name, dtype), describe(name, arrays, result, error)


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_error_bound(name, dtype):
    arrays = binary_samples(dtype) if name in BINARY else [unary_samples(dtype)]
    check(name, dtype, *arrays)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FLOATS.values(), ids=FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "log", "log2", "log10", "powf"])
def test_error_bound_of_the_form_for_other_targets(name, dtype):
    """Those without fused multiply-add, and GPUs; here the sums are fused all the same."""
    if name in math.FUSED_F64 and dtype is np.float64:
        return
    arrays = binary_samples(dtype) if name in BINARY else [unary_samples(dtype)]
    arity = len(arrays)
    with np.errstate(all="ignore"):
        result = math_harness.compile_function(name, dtype, arity, fused=False)(*arrays)
        error = math_harness.ulp_error(result, reference(name, *arrays))
    assert error.max() <= bound(name, dtype), describe(name, arrays, result, error)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_special_values_are_numpys(name, dtype):
    values = specials(dtype)
    arrays = [g.ravel() for g in np.meshgrid(values, values)] if name in BINARY else [values]
    with np.errstate(all="ignore"):
        expected = (BINARY.get(name) or UNARY[name])(*arrays)
    result = kernel(name, dtype)(*arrays)
    special = ~np.isfinite(expected) | (expected == 0)
    if name not in BINARY:
        special |= np.abs(expected) == 1
    np.testing.assert_array_equal(result[special], expected[special])
    signs = np.signbit(result) == np.signbit(expected)
    assert (signs | np.isnan(expected)).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cpu", ["znver4", "skylake"])
@pytest.mark.parametrize("op", ["exp", "exp2", "expm1", "sinh", "cosh"])
def test_sums_with_what_overflows_are_numpys(op, cpu):
    """No expansion ends in a product that is joined with the sum and so does not overflow."""
    g = Graph(tensor("n"), tensor("n"))
    x, y = g.inputs
    found = getattr(g, op)(x)
    target = Target(host_target().triple, cpu, host_target().features)
    kernel = Kernel(compile_program(g.returning(g.sub(found, y), g.add(found, y)), target))
    values, others = np.meshgrid(specials(np.float32), specials(np.float32))
    x, y = values.ravel(), others.ravel()
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(x) - y, getattr(np, op)(x) + y
    for one, other in zip(kernel(x, y), expected, strict=True):
        decided = ~np.isfinite(other)
        np.testing.assert_array_equal(one[decided], other[decided])


@pytest.mark.parametrize(("name", "dtype"), [c for c in CASES if c.values[0] in LIKE_X])
def test_functions_that_begin_as_their_argument_do_so_down_to_the_smallest(name, dtype):
    """Another one would be infinitely off as a divisor: expm1(x) / x is 1 there."""
    x = (np.arange(-40, 41) * np.finfo(dtype).smallest_subnormal).astype(dtype)
    np.testing.assert_array_equal(kernel(name, dtype)(x), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_loop_is_vectorised(name, dtype):
    compiled = kernel(name, dtype)
    element = "float" if dtype is np.float32 else "double"
    assert re.search(rf"store <\d+ x {element}>", compiled.llvm_ir)
    if name in math.FUSED_F64 and dtype is np.float64:
        # libm serves blocks with huge arguments, in the first of the two versions.
        blocks = compiled.llvm_ir.split("\n\n")
        usual = [b for b in blocks if b.startswith("vector.body") and f"@llvm.{name}." not in b]
        assert any(re.search(r"store <\d+ x double>", block) for block in usual)
        return
    assert not re.search(r"^\s+(call|bl)\w*\s", compiled.assembly, re.MULTILINE)


# --- subnormal numbers on CPUs that are slow at them ------------------------------------------


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_both_forms_of_an_expansion_have_the_same_bits(name, dtype):
    if name in BINARY:
        arrays = binary_samples(dtype)
    else:
        arrays = [np.concatenate([unary_samples(dtype), neighbours(dtype)])]
    plain, other = kernel(name, dtype), kernel(name, dtype, slow_subnormals=True)
    if plain.assembly == other.assembly:
        return
    np.testing.assert_array_equal(bits(plain(*arrays)), bits(other(*arrays)))


@pytest.mark.skipif(os.environ.get("EVERY_CASE") != "1", reason="half a minute each")
@pytest.mark.parametrize("name", [n for n in UNARY if math.ULP_BOUNDS[n][0] is not None])
def test_both_forms_have_the_same_bits_for_all_f32(name):
    plain, other = kernel(name, np.float32), kernel(name, np.float32, slow_subnormals=True)
    for start in range(0, 2**32, 2**24):
        x = np.arange(start, start + 2**24, dtype=np.uint32).view(np.float32)
        np.testing.assert_array_equal(bits(plain(x)), bits(other(x)))


FE_UNDERFLOW = 0x10
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the flags of SSE")
# e**r squares a small r. It costs two operations of twenty not to.
SQUARES_SMALL_ARGUMENTS = ("exp", "sinh", "cosh")


def underflows(compiled: math_harness.Kernel, *arrays: np.ndarray) -> bool:
    """Whether an operation in any lane gives an inexact result below the normal numbers."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    arrays = tuple(np.ascontiguousarray(a, compiled.dtype) for a in arrays)
    out = np.empty_like(arrays[0])
    pointers = [a.ctypes.data for a in (*arrays, out)]
    libm.feclearexcept(FE_UNDERFLOW)
    compiled.call(*pointers, out.size)
    return bool(libm.fetestexcept(FE_UNDERFLOW))


@pytest.mark.sampled(8, each=())
@X86
@pytest.mark.parametrize(("name", "dtype"), [c for c in CASES if c.values[0] not in BINARY])
def test_no_operation_underflows_unless_argument_or_result_do(name, dtype):
    compiled, tiny = kernel(name, dtype, slow_subnormals=True), np.finfo(dtype).tiny
    x = unary_samples(dtype)
    with np.errstate(all="ignore"):
        size, result = np.abs(x), np.abs(compiled(x))
    keep = (size >= 4 * tiny) | (size == 0)
    if name in SQUARES_SMALL_ARGUMENTS:
        keep &= (size > 1e-9) | (size == 0)
    if not name.startswith("exp"):  # whose subnormal results come from integer operations
        keep &= (result >= tiny) | (result == 0)
    assert not underflows(compiled, x[keep])
    # The flag is one that would be seen: the other form has subnormal products here.
    assert underflows(kernel("exp", dtype), np.array([np.log(tiny) - 3]))


@X86
@pytest.mark.parametrize("dtype", FLOATS.values(), ids=FLOATS)
def test_far_below_the_range_nothing_underflows_anywhere(dtype):
    """What a mask of -1e9 gives is 0 without subnormal numbers, on every CPU."""
    far = np.array([-1e9, -1e30, -3e38, -np.inf, -2100.0], dtype)
    for name in ("exp", "exp2"):
        assert not underflows(kernel(name, dtype), far)
        assert bits(kernel(name, dtype)(far)).sum() == 0
    assert not underflows(kernel("powf", np.float32), np.full(5, 0.5), -far)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_f32_arguments_nearest_to_multiples_of_half_pi(name):
    nearest = [
        1.5458357838905804e29,
        43998769152.0,
        3.0916715677811608e29,
        7.729178919452902e28,
        21999384576.0,
        4.638183382783466e25,
        2.5940733853654057e19,
        3.70779555881562e21,
        3.11298398550767e25,
        575488.0,
        27968.0,
        2.0**77,
        2.0**78,
        3e38,
    ]
    x = np.array(nearest, np.float32)
    check(name, np.float32, np.concatenate([x, -x, np.nextafter(x, np.float32(0))]))


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "cos"])
def test_f32_results_do_not_exceed_one(name):
    """sqrt(1 - y**2) and atanh(y) would be NaN."""
    first, last = (int(np.float32(v).view(np.int32)) for v in (1.0, 12.0))
    x = np.arange(first, last, 7, np.int32).view(np.float32)
    assert np.abs(kernel(name, np.float32)(x)).max() == 1.0


def test_what_has_no_expansion_is_left_alone():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func private @f(f64, f16, i64)")
        types = module.body.operations[0].type.inputs
        owner = ir.Operation.create("builtin.module", regions=1)
        block = ir.Block.create_at_start(owner.regions[0])
        double, half, integer = (block.add_argument(t, ir.Location.unknown()) for t in types)
        with ir.InsertionPoint(block):
            assert math.expand("sin", [double]) is None
            assert math.expand("exp", [half]) is None
            assert math.expand("exp", [integer]) is None
            assert math.expand("cbrt", [double]) is None
        assert len(block.operations) == 0


def test_the_page_on_accuracy_has_the_bounds_and_no_larger_error():
    text = (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(math.EXPANSIONS)
    for name, cells in rows:
        found = cells.split(" | ")
        for k, stated in enumerate(math.ULP_BOUNDS[name]):
            assert stated is not None
            assert float(found[3 * k]) <= stated == float(found[3 * k + 2])


def test_every_expansion_states_its_bound():
    assert math.EXPANSIONS.keys() == math.ULP_BOUNDS.keys()


@pytest.mark.parametrize(("cpu", "slow"), [("skylake-avx512", True), ("znver4", False)])
def test_the_cpu_decides_on_the_form(cpu, slow):
    g = Graph(tensor(64))
    target = Target("x86_64-unknown-linux-gnu", cpu)
    assert target.slow_subnormals is slow
    assert not Target("aarch64-unknown-linux-gnu", "neoverse-n1").slow_subnormals
    found = compile_program(g.returning(g.exp(*g.inputs)), target, keep_stages=True)
    assert ("arith.maxsi" in found.stages["loops"]) is slow
