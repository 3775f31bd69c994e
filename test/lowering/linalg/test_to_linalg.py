"""The linalg form of ops computes what tier 0 computes, and its shape is what is documented."""

import numpy as np
import pytest
from mlir import ir
from profuse.dialect.errors import Loc, LoweringError
from profuse.dialect.ir.dtypes import BOOL, DTYPES, F32, F64, I64, U64
from profuse.dialect.ir.op import OPS, op_named
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.size_algebra import parse_dim, sym_max
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import ScalarType, TensorType, type_of
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)
from profuse.dialect.ops.elementwise.families import Elementwise
from profuse.dialect.ops.indexing.slicing import ABSENT
from profuse.lowering.linalg.ordered_folds import SCAN
from profuse.lowering.linalg.to_linalg import to_linalg
from profuse.lowering.schedule.read import read_graph
from reference import run, run_lowering, run_op

RNG = np.random.default_rng(7)
REAL = [d.numpy for d in DTYPES if d.kind != "c"]
S0, S1 = symbol("s0"), symbol("s1")


def sample(shape, dtype="f4"):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return RNG.random(shape) < 0.5
    if dtype.kind in "iu":
        return RNG.integers(0, 100, shape).astype(dtype)
    return (RNG.random(shape) * 0.9 + 0.05).astype(dtype)


def close(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    eps = {2: 1e-2, 4: 2e-6, 8: 1e-14}[got.itemsize]
    np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=eps, atol=eps)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def graph(inputs, *instrs, outputs=None):
    """A program from ``(op, operands, attrs)`` triples; values are numbered as they appear."""
    p = Program("kernel")
    p.body.args = tuple(p.new_value(t) for t in inputs)
    for name, operands, attrs in instrs:
        cls = op_named(name)
        results = tuple(p.new_value() for _ in cls.results)
        p.body.instrs.append(Instr(cls, operands, results, attrs, loc=Loc("model.py", 12, 3)))
    p.body.outputs = outputs or (p.count - 1,)
    return p


# --- elementwise ------------------------------------------------------------------------------

ELEMENTWISE = sorted(
    name for name, op in OPS.items() if issubclass(op, Elementwise) and op.can_lower() and not op.attrs
)


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_ops(name):
    op = OPS[name]
    for dtype in REAL:
        args = [sample((2, 3), dtype), sample((3,), dtype), sample((2, 1), dtype)]
        args = args[: len(op.operands)]
        if op.can_lower_types([type_of(a) for a in args], {}) is None:
            close(run_op(name, *args), np.asarray(op.evaluate({}, *args)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["add", "mul", "div", "floor_div", "maximum", "lt", "select"])
def test_elementwise_of_python_numbers(name):
    op = op_named(name)
    for dtype in ("f4", "f2", "i4", "u1"):
        args = [sample((2, 3), dtype), 3, 2][: len(op.operands)]
        close(run_op(name, *args), np.asarray(op.evaluate({}, *args)))


def test_rank_zero_and_empty():
    x = np.float32(2.5)
    close(run_op("exp", np.asarray(x)), np.asarray(np.exp(x)))
    close(run_op("exp", np.zeros((0, 3), "f4")), np.zeros((0, 3), "f4"))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("source", REAL, ids=str)
def test_cast(source):
    x = sample((5,), source)
    for dtype in DTYPES:
        if dtype.kind != "c":
            close(run_op("cast", x, dtype=dtype), x.astype(dtype.numpy))


def test_scalar_argument_arithmetic_stays_outside_the_loops():
    p = graph(
        [TensorType(F32, (4,)), ScalarType(F64), ScalarType(I64)],
        ("mul", (1, 2), {}),
        ("cast", (3,), {"dtype": F32}),
        ("add", (0, 4), {}),
    )
    x = sample((4,))
    close(run(p, [x, 1.5, 3]), x + np.float32(4.5))
    text = str(to_linalg(p))
    assert text.count("linalg.generic") == 1
    assert text.count("profuse.scalar") == 2


# --- reductions -------------------------------------------------------------------------------


@pytest.mark.sampled(22, each=())
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_reductions(name, dtype):
    op = op_named(name)
    x = sample((2, 3, 4), dtype)
    for attrs in ({}, {"axes": (1,)}, {"axes": (-1, 0), "keepdims": True}, {"axes": ()}):
        if op.can_lower_types([type_of(x)], op.full_attrs(attrs)) is None:
            close(run_op(name, x, **attrs), np.asarray(op.evaluate(op.full_attrs(attrs), x)))


def test_reductions_keep_nan_and_start_at_the_limits():
    x = np.array([[1, np.nan], [-np.inf, -np.inf]], "f4")
    for name in ("max", "min"):
        close(run_op(name, x, axes=(1,)), getattr(np, name)(x, axis=1))
    x = np.full((2, 3), -(2**31), "i4")
    close(run_op("max", x, axes=(1,)), x.max(1))


def test_only_float_sums_are_reassociated():
    x = TensorType(F32, (8, 8))
    assert "fastmath<reassoc" in str(to_linalg(graph([x], ("sum", (0,), {"axes": (1,)}))))
    assert "reassoc" not in str(to_linalg(graph([x], ("prod", (0,), {"axes": (1,)}))))
    assert "reassoc" not in str(to_linalg(graph([x], ("add", (0, 0), {}))))
    for flag in ("nnan", "ninf", "fast>"):
        assert flag not in str(to_linalg(graph([x], ("var", (0,), {}))))


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u8", "bool"])
def test_indexed_reduction_takes_the_first(dtype):
    x = (sample((4, 5), dtype) if dtype == "bool" else RNG.integers(0, 3, (4, 5))).astype(dtype)
    result = TensorType(I64, (4,))
    got = run_lowering(lambda b, v: b.index_of_extremum(v, 1, "max", result), result, x)
    close(got, np.argmax(x, axis=1))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scan(axis):
    x = sample((3, 4, 2), "i4")
    result = TensorType(I64, x.shape)
    got = run_lowering(lambda b, v: b.scan(lambda a, e: a + e, v, axis, result), result, x)
    close(got, np.cumsum(x, axis=axis))
    x = sample((3, 4, 2))
    result = type_of(x).without_layout()
    got = run_lowering(lambda b, v: b.scan(lambda a, e: a.maximum(e), v, axis, result), result, x)
    close(got, np.maximum.accumulate(x, axis=axis))


# --- moving elements --------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f4", "bool", "u2", "f2"])
def test_views(dtype):
    x = sample((2, 1, 6), dtype)

    def check(lower, expected):
        close(run_lowering(lower, TensorType(type_of(x).dtype, expected.shape), x), expected)

    t = type_of(x).dtype
    check(lambda b, v: b.transpose(v, (2, 0, 1)), x.transpose(2, 0, 1))
    check(lambda b, v: b.transpose(v), x.T)
    wide = (3, 2, 5, 6)
    check(lambda b, v: b.broadcast(v, TensorType(t, wide)), np.broadcast_to(x, wide))
    check(lambda b, v: b.expand_dims(v, (0, -1)), np.expand_dims(x, (0, -1)))
    check(lambda b, v: b.squeeze(v, (1,)), x.squeeze(1))
    check(lambda b, v: b.flip(v, (0, 2)), np.flip(x, (0, 2)))
    check(lambda b, v: b.reshape(v, TensorType(t, (1, 2, 6, 1))), x.reshape(1, 2, 6, 1))
    check(lambda b, v: b.reshape(v, TensorType(t, (4, 3))), x.reshape(4, 3))
    check(lambda b, v: b.slice(v, (1, 0, 1), (1, 1, 2), TensorType(t, (1, 1, 3))), x[1:, :, 1::2])
    check(lambda b, v: b.slice(v, (0, 0, 5), (1, 1, -2), TensorType(t, (2, 1, 3))), x[:, :, ::-2])
    check(lambda b, v: b.slice(v, (0, 0, 0), (1, 1, 1), TensorType(t, (1, 1, 4))), x[:1, :, :4])
    check(lambda b, v: b.slice(v, (2, 0, 3), (1, 1, 2), TensorType(t, (0, 1, 2))), x[2:, :, 3::2])


def test_reshape_of_one_element():
    x = np.array([[3.5]], "f4")
    close(run_op("reshape", x, shape=()), x.reshape(()))
    close(run_op("reshape", x.reshape(()), shape=(1, 1)), x)


def test_compute_reads_anywhere():
    x, where = sample((5,)), np.array([[4, 0], [2, 2]])
    result = TensorType(F32, (2, 2))

    def gather(b, v, w):
        return b.compute(result, lambda i, j: v.at(w.at(i, j)) + (i * 2 + j).cast(F32))

    close(run_lowering(gather, result, x, where), x[where] + np.arange(4, dtype="f4").reshape(2, 2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_constants_and_fills(dtype):
    values = sample((2, 3), dtype)
    type_ = type_of(values).without_layout()
    x = np.zeros(1, "f4")
    close(run_lowering(lambda b, _: b.constant(values, type_), type_, x), values)
    close(run_lowering(lambda b, _: b.fill(values[0, 0], type_), type_, x), np.full((2, 3), values[0, 0]))
    empty = TensorType(type_.dtype, (0, 3))
    close(run_lowering(lambda b, _: b.constant(values[:0], empty), empty, x), values[:0])
    scalar = TensorType(type_.dtype, ())
    close(run_lowering(lambda b, _: b.constant(values[0, 0], scalar), scalar, x), np.asarray(values[0, 0]))


# --- products ---------------------------------------------------------------------------------

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((2, 1, 2, 3), (4, 3, 2)),
    ((2, 3), (2, 1, 3, 4)),
    ((2, 0), (0, 3)),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u4", "bool"])
def test_matmul(shapes, dtype):
    x, y = (sample(s, dtype) for s in shapes)
    expected = np.asarray(np.matmul(x, y))
    result = type_of(expected).without_layout()
    close(run_lowering(lambda b, u, v: b.matmul(u, v, result), result, x, y), expected)


def test_float_products_are_named_operations():
    def text(dtype):
        x, y, z = (TensorType(dtype, s) for s in ((2, 3), (3, 4), (2, 4)))
        p = Program("kernel")
        p.body.args = (p.new_value(x), p.new_value(y))
        p.body.outputs = (p.new_value(),)
        cls = type(
            "Product",
            (op_named("add"),),
            {
                "infer": classmethod(lambda *_: (z,)),
                "lower": classmethod(lambda cls, b, attrs, types, u, v: b.matmul(u, v, z)),
            },
        )
        p.body.instrs.append(Instr(cls, p.inputs, p.outputs))
        return str(to_linalg(p))

    assert "linalg.matmul" in text(F32)
    assert "linalg.matmul" not in text(U64)
    assert "arith.ori" in text(BOOL)


# --- symbolic sizes ---------------------------------------------------------------------------


def test_symbolic_elementwise_and_reduction():
    p = graph(
        [TensorType(F32, (S0, 4), "contiguous"), TensorType(F32, (4,)), TensorType(F32, (S0, 1))],
        ("add", (0, 1), {}),
        ("sub", (3, 2), {}),
        ("mean", (4,), {"axes": (0,)}),
    )
    x, y, z = sample((7, 4)), sample((4,)), sample((7, 1))
    close(run(p, [x, y, z], {"s0": 7}), (x + y - z).mean(0))


def test_symbolic_views():
    x = sample((6, 4))
    types = [TensorType(F32, (S0, 4), "contiguous")]

    def check(lower, shape, expected):
        result = TensorType(F32, shape)
        close(run_lowering(lower, result, x, types=types, symbols={"s0": 6}), expected)

    flat = TensorType(F32, (S0 * 4,))
    check(lambda b, v: b.reshape(v, flat), (S0 * 4,), x.ravel())
    check(lambda b, v: b.flip(v, (0, 1)), (S0, 4), x[::-1, ::-1])
    last = TensorType(F32, (2, 2))
    check(lambda b, v: b.slice(v, (S0 - 2, 1), (1, 2), last), (2, 2), x[-2:, 1::2])
    half = (S0 + 1) // 2
    check(lambda b, v: b.slice(v, (0, 0), (1, 1), TensorType(F32, (half, 4))), (half, 4), x[:3])
    check(lambda b, v: b.slice(v, (0, 0), (1, 1), TensorType(F32, (2, 4))), (2, 4), x[:2])
    check(lambda b, v: b.slice(v, (1, 0), (1, 1), TensorType(F32, (half, 4))), (half, 4), x[1:4])
    check(lambda b, v: b.slice(v, (0, 0), (2, 1), TensorType(F32, (half, 4))), (half, 4), x[::2])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("value", [5, 8])
@pytest.mark.parametrize(
    "dim",
    [
        S0 * 3 + 1,
        S0 // 2,
        S0 % 3,
        (S0 - 7) // 2,
        (S0 - 7) % 4,
        sym_max(S0, 6),
        parse_dim("((s0 // 2))*s0 - 4"),
        S0 // (S0 - S0 + 3),
    ],
    ids=str,
)
def test_sizes(dim, value):
    from profuse.dialect.ir.symbolic import evaluate

    x = np.zeros((value,), "f4")
    result = TensorType(I64, ())
    got = run_lowering(
        lambda b, _: b.pointwise(lambda v: v, [dim], result),
        result,
        x,
        types=[TensorType(F32, (S0,))],
        symbols={"s0": value},
    )
    assert int(got) == evaluate(dim, {"s0": value})


def test_equal_sizes_are_one_value():
    p = graph([TensorType(F32, (S0, S1))], ("reshape", (0,), {"shape": (-1,)}), ("exp", (1,), {}), ("tanh", (2,), {}))
    text = str(to_linalg(p))
    assert text.count("arith.muli") == 1
    assert text.count("tensor.empty") == 1


# --- the function -----------------------------------------------------------------------------


def test_interface():
    p = graph(
        [
            TensorType(F32, (S0, 8), (8, 1)),
            TensorType(BOOL, (2, 8), (8, 1)),
            ScalarType(F64),
            TensorType(F32, (S1,), (None,)),
        ],
        ("exp", (0,), {}),
        ("exp", (3,), {}),
        outputs=(4, 5),
    )
    head = next(line for line in str(to_linalg(p)).splitlines() if "func.func" in line)
    assert head.strip() == (
        "func.func @kernel("
        '%arg0: tensor<?x8xf32> {profuse.dims = ["s0", "8"], profuse.strides = "contiguous"}, '
        '%arg1: tensor<2x8xi8> {profuse.dims = ["2", "8"], profuse.dtype = "bool", '
        'profuse.strides = "contiguous"}, '
        "%arg2: tensor<f64> {profuse.scalar}, "
        '%arg3: tensor<?xf32> {profuse.dims = ["s1"], profuse.strides = ["?"]}, '
        "%arg4: index, %arg5: index) -> "
        '(tensor<?x8xf32> {profuse.dims = ["s0", "8"]}, tensor<?xf32> {profuse.dims = ["s1"]}) '
        'attributes {profuse.symbols = ["s0", "s1"]} {'
    )


def test_scan_contract():
    x = TensorType(F32, (3, 4))
    p = Program("kernel")
    p.body.args, p.body.outputs = (p.new_value(x),), (p.new_value(),)
    cls = type(
        "Running",
        (op_named("exp"),),
        {"lower": classmethod(lambda cls, b, attrs, types, v: b.scan(lambda a, e: a + e, v, 1, types[0]))},
    )
    p.body.instrs.append(Instr(cls, p.inputs, p.outputs))
    text = str(to_linalg(p))
    assert f"attrs =  {{{SCAN}}}" in text
    assert 'iterator_types = ["parallel", "reduction"]' in text


def test_every_operation_is_at_the_users_line():
    module = to_linalg(graph([TensorType(F32, (2,))], ("exp", (0,), {})))
    text = module.operation.get_asm(enable_debug_info=True)
    generic = next(line for line in text.splitlines() if "math.exp" in line)
    name = generic.split("loc(")[1].rstrip(")")
    assert f'{name} = loc("model.py":12:3)' in text


def test_results_may_be_arguments_or_numbers():
    x = sample((3,))
    close(run(graph([type_of(x)], outputs=(0,)), [x]), x)
    p = graph([TensorType(F32, (S0,))], ("dim", (0,), {"axis": 0}))
    assert int(run(p, [x], {"s0": 3})) == 3


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda: graph([TensorType(F32, (None,))], ("exp", (0,), {})), "argument 0 is not known"),
        (lambda: graph([TensorType()], ("exp", (0,), {})), "argument 0 is not known"),
        (lambda: graph([type_of(np.zeros(2, "c8"))], ("asin", (0,), {})), "asin of c64 values"),
        (lambda: graph([TensorType(F32, (2,)), TensorType(F32, (3,))], ("add", (0, 1), {})), "could not be broadcast"),
        (lambda: graph([TensorType(F32, (2,))], ("profile", (0,), {"site": 0})), "no lowering"),
    ],
    ids=["shape", "dtype", "complex", "mismatch", "op"],
)
def test_refusals_are_located(program, words):
    with pytest.raises(LoweringError, match=words) as found:
        to_linalg(program())
    assert found.value.loc == Loc("model.py", 12, 3)


def test_results_of_another_size_than_loops_write_are_refused():
    """What the caller allocates by and what loops write by are one size, if spelt otherwise."""
    x = TensorType(F32, (S0,), "contiguous")
    p = graph([x], ("slice", (0,), {"starts": (0,), "stops": (ABSENT,), "steps": (3,)}))
    module = to_linalg(p)
    function = module.body.operations[0].operation

    def stating(size):
        text = f'[{{profuse.dims = ["{size}"]}}]'
        with module.context:
            function.attributes["res_attrs"] = ir.Attribute.parse(text)
        return read_graph(function).output_specs[0].dims

    assert stating("((s0 + 2) // 3)") == ("((s0 + 2) // 3)",)
    assert stating("((2 + s0 + -1*((s0 + 2) % 3)) // 3)")
    for other in ("s0", "((s0 + 3) // 3)", "(s0 // 3) + 1"):
        with pytest.raises(LoweringError, match="of which loops write"):
            stating(other)
