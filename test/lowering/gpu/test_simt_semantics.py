"""Each op of the emulator against an exact reference: rounding, wrapping, moves, poison."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from simt import KernelFault, contents, empty, parse, programs, run_kernel
from simt import samples as k

BF16 = ml_dtypes.bfloat16
NUMPY = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(BF16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


def apply(text, *arrays, element, result=None):
    """``text`` defines ``%r`` from ``%a``, ``%b``, ``%c``; over whole arrays."""
    source = k.module(k.elementwise(text, element, result, len(arrays)))
    (program,) = programs(parse(source)).values()
    arrays = [np.ascontiguousarray(a, NUMPY[element]) for a in arrays]
    out = empty(arrays[0].shape, NUMPY[result or element])
    run_kernel(program, (1,), arrays[0].shape, [*arrays, out])
    return contents(out, arrays[0].shape, NUMPY[result or element])


def numbers(element, count=500, seed=0):
    """Floats of many magnitudes, both signs."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=count) * 2.0 ** rng.integers(-6, 7, count)).astype(NUMPY[element])


def rounded(exact, dtype):
    """A Fraction rounded once to a float type, to nearest, ties to even."""
    bits, least, largest = {
        "f16": (11, -24, 65504),
        "bf16": (8, -133, 255 * 2**120),
        "f32": (24, -149, (2**24 - 1) * 2**104),
        "f64": (53, -1074, (2**53 - 1) * 2**971),
    }[dtype]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, least)
    near = round(exact / unit) * unit
    return float(near) if abs(near) <= largest else np.copysign(np.inf, float(exact))


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_fma_rounds_once(element):
    a, b, c = (numbers(element, seed=s) for s in range(3))
    # Sums that cancel, or that lie half-way but for a trace, are where two roundings show.
    c[::3] = -(a.astype(np.float64) * b.astype(np.float64)).astype(c.dtype)[::3]
    c[1::3] = (c[1::3].astype(np.float64) * 2.0**-9).astype(c.dtype)
    got = apply(f"%r = math.fma %a, %b, %c : {element}", a, b, c, element=element)
    wanted = [
        rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), element)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


def test_fma_is_not_multiply_and_add():
    a = np.float32(1 + 2.0**-12)
    got = apply("%r = math.fma %a, %a, %b : f32", [a], [-1.0], element="f32")
    assert got[0] == np.float32(2.0**-11 + 2.0**-24) != a * a - np.float32(1)


def test_fma_f64_where_splitting_overflows():
    got = apply("%r = math.fma %a, %b, %c : f64", [1e308], [1.5], [-1e308], element="f64")
    assert got[0] == 1e308 * 1.5 - 1e308


@pytest.mark.sampled(3)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "divf"])
def test_arithmetic_in_its_own_precision(element, op):
    a, b = numbers(element, seed=1), numbers(element, seed=2)
    got = apply(f"%r = arith.{op} %a, %b : {element}", a, b, element=element)
    exact = {
        "addf": lambda x, y: x + y,
        "subf": lambda x, y: x - y,
        "mulf": lambda x, y: x * y,
        "divf": lambda x, y: x / y,
    }[op]
    wanted = [rounded(exact(Fraction(float(x)), Fraction(float(y))), element) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


def test_f64_to_bf16_rounds_once():
    x = np.array([1 + 2.0**-8 + 2.0**-40, -1 - 2.0**-8 - 2.0**-40, 1 + 2.0**-8, np.inf, 0.0])
    got = apply("%r = arith.truncf %a : f64 to bf16", x, element="f64", result="bf16")
    np.testing.assert_array_equal(got.astype(float), [1 + 2.0**-7, -1 - 2.0**-7, 1.0, np.inf, 0.0])


def test_integers_wrap():
    a = np.array([2**31 - 1, -(2**31), 70000], np.int32)
    np.testing.assert_array_equal(
        apply("%r = arith.addi %a, %b : i32", a, [1, -1, 0], element="i32"), [-(2**31), 2**31 - 1, 70000]
    )
    assert apply("%r = arith.muli %a, %a : i32", a[2:], element="i32")[0] == 70000**2 - 2**32


@pytest.mark.parametrize(
    ("op", "flag", "a", "b", "fits"),
    [
        ("addi", "nsw", 2**31 - 1, 1, False),
        ("addi", "nuw", 2**31 - 1, 1, True),
        ("addi", "nuw", -1, 1, False),
        ("subi", "nsw", -(2**31), 1, False),
        ("subi", "nsw", -(2**31), -1, True),
        ("subi", "nuw", 1, 2, False),
        ("muli", "nsw", 65536, 32768, False),
        ("muli", "nsw", 65536, -32768, True),
        ("muli", "nuw", 65536, 32768, True),
        ("muli", "nuw", 65536, 65536, False),
    ],
)
def test_overflow_that_was_promised_not_to_happen(op, flag, a, b, fits):
    body = f"%r = arith.{op} %a, %b overflow<{flag}> : i32"
    if fits:
        apply(body, [a], [b], element="i32")
    else:
        with pytest.raises(KernelFault, match="depends on an undefined value"):
            apply(body, [a], [b], element="i32")


def test_division_of_integers():
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    results = {
        "divsi": [3, -3, -3, 3],
        "remsi": [1, -1, 1, -1],
        "floordivsi": [3, -4, -4, 3],
        "ceildivsi": [4, -3, -3, 4],
    }
    for op, wanted in results.items():
        got = apply(f"%r = arith.{op} %a, %b : i32", a, b, element="i32")
        assert got.tolist() == wanted, op
    assert apply("%r = arith.divui %a, %b : i8", [-2], [3], element="i8").tolist() == [84]
    assert apply("%r = arith.remui %a, %b : i8", [-2], [3], element="i8").tolist() == [2]


def test_shifts():
    assert apply("%r = arith.shrsi %a, %b : i8", [-8], [1], element="i8").tolist() == [-4]
    assert apply("%r = arith.shrui %a, %b : i8", [-8], [1], element="i8").tolist() == [124]
    assert apply("%r = arith.shli %a, %b : i8", [65], [1], element="i8").tolist() == [-126]
    with pytest.raises(KernelFault, match="depends on an undefined value"):
        apply("%r = arith.shli %a, %b : i8", [1], [8], element="i8")


@pytest.mark.parametrize("number", range(16))
def test_float_predicates(number):
    names = [
        "false",
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
        "true",
    ]
    a, b = [1.0, 2.0, 2.0, np.nan], [2.0, 1.0, 2.0, 1.0]
    body = f"%c = arith.cmpf {names[number]}, %a, %b : f32\n%r = arith.extui %c : i1 to i8"
    got = apply(body, a, b, element="f32", result="i8").tolist()
    name = names[number]
    less, greater, equal, unordered = {
        "false": (0, 0, 0, 0),
        "oeq": (0, 0, 1, 0),
        "ogt": (0, 1, 0, 0),
        "oge": (0, 1, 1, 0),
        "olt": (1, 0, 0, 0),
        "ole": (1, 0, 1, 0),
        "one": (1, 1, 0, 0),
        "ord": (1, 1, 1, 0),
        "ueq": (0, 0, 1, 1),
        "ugt": (0, 1, 0, 1),
        "uge": (0, 1, 1, 1),
        "ult": (1, 0, 0, 1),
        "ule": (1, 0, 1, 1),
        "une": (1, 1, 0, 1),
        "uno": (0, 0, 0, 1),
        "true": (1, 1, 1, 1),
    }[name]
    assert got == [less, greater, equal, unordered]


def test_integer_predicates():
    a, b = [-1, 1, 1], [1, -1, 1]
    wanted = {
        "eq": [0, 0, 1],
        "ne": [1, 1, 0],
        "slt": [1, 0, 0],
        "sle": [1, 0, 1],
        "sgt": [0, 1, 0],
        "sge": [0, 1, 1],
        "ult": [0, 1, 0],
        "ule": [0, 1, 1],
        "ugt": [1, 0, 0],
        "uge": [1, 0, 1],
    }
    for name, values in wanted.items():
        body = f"%c = arith.cmpi {name}, %a, %b : i32\n%r = arith.extui %c : i1 to i8"
        assert apply(body, a, b, element="i32", result="i8").tolist() == values, name


def test_maxima_and_nan():
    a, b = [np.nan, 1.0, -0.0, 0.0], [1.0, np.nan, 0.0, -0.0]
    top = apply("%r = arith.maximumf %a, %b : f32", a, b, element="f32")
    assert np.isnan(top[:2]).all() and not np.signbit(top[2:]).any()
    low = apply("%r = arith.minimumf %a, %b : f32", a, b, element="f32")
    assert np.isnan(low[:2]).all() and np.signbit(low[2:]).all()
    assert apply("%r = arith.maxnumf %a, %b : f32", a[:2], b[:2], element="f32").tolist() == [1, 1]


def test_casts():
    def cast(op, source, target, x):
        body = f"%r = arith.{op} %a : {source} to {target}"
        return apply(body, x, element=source, result=target).tolist()

    assert cast("fptosi", "f32", "i32", [-2.7, 2.7]) == [-2, 2]
    assert cast("fptoui", "f32", "i8", [200.5]) == [-56]
    assert cast("uitofp", "i8", "f32", [-1]) == [255.0]
    assert cast("sitofp", "i8", "bf16", [-1]) == [-1.0]
    assert cast("extui", "i8", "i32", [-1]) == [255]
    assert cast("extsi", "i8", "i32", [-1]) == [-1]
    assert cast("trunci", "i32", "i8", [511]) == [-1]
    assert cast("extf", "bf16", "f32", [1.5]) == [1.5]
    assert cast("bitcast", "f32", "i32", [1.0]) == [0x3F800000]
    with pytest.raises(KernelFault, match="depends on an undefined value"):
        cast("fptosi", "f32", "i32", [np.nan])


def test_i1_as_number():
    body = """%n = arith.trunci %a : i32 to i1
    %s = arith.sitofp %n : i1 to f32
    %u = arith.uitofp %n : i1 to f32
    %d = arith.subf %u, %s : f32
    %r = arith.fptosi %d : f32 to i32"""
    assert apply(body, [3, 2], element="i32").tolist() == [2, 0]


def test_wide_products():
    body = "%low, %r = arith.{}_extended %a, %b : i32"
    a, b = np.array([2**31 - 1, -3], np.int32), np.array([2**31 - 1, 5], np.int32)
    signed = apply(body.format("mulsi"), a, b, element="i32")
    assert signed.tolist() == [(2**31 - 1) ** 2 >> 32, -1]
    assert apply(body.format("mului"), a, b, element="i32")[1] == ((2**32 - 3) * 5) >> 32


@pytest.mark.sampled(3)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sqrt", "erf", "sin", "log1p", "rsqrt"])
def test_math(element, name):
    import scipy.special

    x = np.abs(numbers(element)) + NUMPY[element].type(0.01)
    wide = x.astype(np.longdouble if element == "f64" and name != "erf" else np.float64)
    function = {"erf": scipy.special.erf, "rsqrt": lambda v: 1 / np.sqrt(v)}.get(name) or getattr(np, name)
    with np.errstate(over="ignore"):
        wanted = function(np.minimum(wide, 10)).astype(np.float64)
    got = apply(
        f"%ten = arith.constant 10.0 : {element}\n%m = arith.minimumf %a, %ten : {element}\n"
        f"%r = math.{name} %m : {element}",
        x,
        element=element,
    ).astype(np.float64)
    unit = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-22, "f64": 2.0**-50}[element]
    np.testing.assert_allclose(got, wanted, rtol=unit, atol=unit / 100)


def test_vectors():
    """Constants, inserts, extracts, shuffles and reductions of short vectors."""
    body = """
    %p = ub.poison : vector<2xf32>
    %v0 = vector.insert %a, %p[0] : f32 into vector<2xf32>
    %v1 = vector.insert %b, %v0[1] : f32 into vector<2xf32>
    %k = arith.constant dense<[10.0, 20.0]> : vector<2xf32>
    %s = arith.addf %v1, %k : vector<2xf32>
    %four = vector.shuffle %s, %v1 [1, 0, 3, 2] : vector<2xf32>, vector<2xf32>
    %e0, %e1, %e2, %e3 = vector.to_elements %four : vector<4xf32>
    %w = vector.from_elements %e3, %e2, %e1, %e0 : vector<4xf32>
    %part = vector.extract_strided_slice %w {offsets = [1], sizes = [2], strides = [1]}
      : vector<4xf32> to vector<2xf32>
    %x = vector.extract %part[1] : f32 from vector<2xf32>
    %h = vector.broadcast %x : f32 to vector<3xf32>
    %t = vector.reduction <add>, %h, %a : vector<3xf32> into f32
    %one = arith.constant 1.0 : f32
    %r = arith.subf %t, %one : f32"""
    # four = [b+20, a+10, b, a]; w = [a, b, a+10, b+20]; part = [b, a+10]; x = a+10
    a, b = np.array([1.0, 2.0]), np.array([5.0, 6.0])
    got = apply(body, a, b, element="f32")
    np.testing.assert_array_equal(got, a + 3 * (a + 10) - 1)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_constants_of_short_floats(element):
    body = f"""%k = arith.constant dense<[1.5, -2.0]> : vector<2x{element}>
    %s = arith.constant dense<0.5> : vector<2x{element}>
    %t = arith.addf %k, %s : vector<2x{element}>
    %x = vector.extract %t[1] : {element} from vector<2x{element}>
    %r = arith.addf %x, %a : {element}"""
    assert apply(body, [1.0], element=element).tolist() == [-0.5]


def test_positions_that_threads_compute():
    body = """%k = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>
    %i = arith.index_cast %a : i32 to index
    %x = vector.extract %k[%i] : i32 from vector<4xi32>
    %v = vector.insert %a, %k[%i] : i32 into vector<4xi32>
    %t = vector.reduction <add>, %v : vector<4xi32> into i32
    %r = arith.subi %t, %x : i32"""
    assert apply(body, [0, 3], element="i32").tolist() == [90 - 10, 63 - 40]


def test_masked_vectors():
    """Elements beyond the mask are neither read nor written, even past the end."""
    text = """
gpu.func @tail(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant dense<0.0> : vector<4xf32>
  %m = vector.create_mask %c3 : vector<4xi1>
  %v = vector.maskedload %x[%c0], %m, %z
    : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %s = arith.addf %v, %v : vector<4xf32>
  vector.maskedstore %out[%c0], %m, %s : memref<?xf32>, vector<4xi1>, vector<4xf32>
  gpu.return
}"""
    (program,) = programs(parse(k.module(text))).values()
    out = empty([3], np.float32)
    run_kernel(program, (1,), (1,), [np.array([1, 2, 3], np.float32), out])
    assert contents(out, [3], np.float32).tolist() == [2, 4, 6]


SHUFFLES = {
    "xor": lambda lane: lane ^ 3,
    "up": lambda lane: lane - 3,
    "down": lambda lane: lane + 3,
    "idx": lambda lane: np.full_like(lane, 3),
}


@pytest.mark.parametrize("mode", SHUFFLES)
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode, width):
    """Values of lanes that there are, and `valid` of those, in each subgroup by itself."""
    body = f"""%c = arith.constant 3 : i32
    %w = arith.constant {width} : i32
    %zero = arith.constant 0 : i32
    %lane = gpu.lane_id
    %wi = arith.index_cast %w : i32 to index
    %part = arith.cmpi ult, %lane, %wi : index
    %r = scf.if %part -> i32 {{
      %v, %valid = gpu.shuffle {mode} %a, %c, %w : i32
      %s = arith.select %valid, %v, %zero : i32
      scf.yield %s : i32
    }} else {{
      scf.yield %zero : i32
    }}"""
    x = np.arange(100, 196)
    got = apply(body, x, element="i32")
    lane = np.arange(96) % 32
    source = SHUFFLES[mode](lane)
    valid = (lane < width) & (source >= 0) & (source < width)
    np.testing.assert_array_equal(got, np.where(valid, x - lane + source, 0))


def test_reduction_over_a_subgroup():
    body = "%r = gpu.subgroup_reduce add %a : (i32) -> i32"
    got = apply(body, np.arange(64), element="i32")
    np.testing.assert_array_equal(got, np.repeat([sum(range(32)), sum(range(32, 64))], 32))


@pytest.mark.parametrize(("element", "count"), [("bf16", 3), ("bf16", 300), ("f32", 300)])
def test_tables(element, count):
    """A constant of the module; long ones are printed in hexadecimal."""
    values = np.arange(count) * 0.5
    table = "[" + ", ".join(f"{v:e}" for v in values) + "]"
    text = f"""
memref.global "private" constant @table : memref<{count}x{element}> = dense<{table}>
gpu.func @look(%out: memref<?x{element}>) kernel {{
  %t = gpu.thread_id x
  %m = memref.get_global @table : memref<{count}x{element}>
  %v = memref.load %m[%t] : memref<{count}x{element}>
  memref.store %v, %out[%t] : memref<?x{element}>
  gpu.return
}}"""
    (program,) = programs(parse(k.module(text))).values()
    out = empty([count], NUMPY[element])
    run_kernel(program, (1,), (count,), [out])
    got = contents(out, [count], NUMPY[element])
    np.testing.assert_array_equal(got, values.astype(NUMPY[element]))
