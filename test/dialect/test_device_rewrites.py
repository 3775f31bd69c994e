"""Passes before and after the partition of device groups leave values as they are (R3.9 to R3.12, R3.44 to R3.48)."""

import random
from dataclasses import replace

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401
import pytest
from profuse.dialect.ir.dtypes import F16, F32
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, INTS, TENSOR, TensorType, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops.control_flow.control import If
from profuse.dialect.ops.nn.copies import ViewCopy
from profuse.dialect.ops.speculation import CudaGuard, FallbackGraph, Subgraph
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.pipeline.standard import STANDARD
from small_programs import Graph
from test_device_shapes import evaluated, random_arrays, random_group, same

BEFORE = (
    "split-linear",
    "split-conv",
    "views-to-copies",
    "views-to-copies,copies-to-views",
    "split-linear,split-conv,views-to-copies",
)


def rewritten(module, passes):
    parsed = parse_module(module.to_mlir(), "f.mlir")
    statistics = run_pipeline(parsed, passes, verify_each=True)
    return decode_module(parsed), statistics


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


# --- before the partition ------------------------------------------------------------------------


def random_network(rng):
    """Linear maps, convolutions and views of typed arrays, some of which are written."""
    program = Program("main")
    dtype = rng.choice([np.float32, np.float32, np.float64])
    random_state = np.random.default_rng(rng.randrange(99))
    held = {}

    def argument(*shape):
        value = program.new_value()
        held[value] = random_state.random(shape).astype(dtype)
        program.types[value] = type_of(held[value]).without_layout()
        program.body.args += (value,)
        return value

    def emit(name, *operands, **attrs):
        op = op_named(name)
        full = op.full_attrs(attrs)
        result = op.evaluate(full, *(held[v] for v in operands))
        (type_,) = op.infer([program.type_of(v) for v in operands], full)
        value = program.new_value(type_)
        held[value] = result
        program.body.instrs.append(Instr(op, operands, (value,), attrs))
        return value

    image, rows = argument(1, 3, 5, 5), argument(4, 6)
    values = [emit("neg", image), emit("neg", rows)]
    for _ in range(rng.randint(4, 9)):
        x = rng.choice(values)
        shape = held[x].shape
        kind = rng.randrange(8)
        if kind == 0 and len(shape) >= 1:
            weight = argument(*([3, shape[-1]] if rng.random() < 0.7 else [shape[-1]]))
            bias = [argument(3) if len(held[weight].shape) == 2 else argument()] if rng.random() < 0.8 else []
            values.append(emit("linear", x, weight, *bias, **({"given": 1} if bias else {})))
        elif kind == 1 and len(shape) == 4 and min(shape[2:]) >= 3:
            weight, bias = argument(2, shape[1], 3, 3), [argument(2)] if rng.random() < 0.8 else []
            values.append(emit("conv2d", x, weight, *bias, padding=(1, 1), **({"given": 1} if bias else {})))
        elif kind == 2:
            values.append(emit("reshape", x, shape=(-1,)))
        elif kind == 3 and len(shape) < 6:
            values.append(emit("expand_dims", x, axes=(rng.randint(-len(shape) - 1, len(shape)),)))
        elif kind == 4 and 1 in shape:
            values.append(emit("squeeze", x, axes=(shape.index(1),)))
        elif kind == 5:
            values.append(emit("transpose", x))
        elif kind == 6 and isinstance(held[x], np.ndarray):
            emit("neg_", x)
        else:
            values.append(emit("relu", x))
    program.body.outputs = tuple(rng.choice(values) for _ in range(3))
    return Module(program), program


def inputs_of(program, seed):
    random_state = np.random.default_rng(seed)
    types = [program.type_of(v) for v in program.inputs]
    return [(random_state.random(t.shape) - 0.5).astype(t.dtype.numpy) for t in types]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("passes", BEFORE)
def test_r3_9_to_r3_12_leave_values_as_they_are(seed, passes):
    module, program = random_network(random.Random(seed))
    args = inputs_of(program, seed)
    result, _ = rewritten(module, passes)
    same(evaluated(result, copied(args)), evaluated(module, copied(args)))


def test_r3_9_to_r3_12_do_something_to_these_programs():
    counts = dict.fromkeys(("split-linear", "split-conv", "views-to-copies", "copies-to-views"), 0)
    for seed in range(60):
        module, _ = random_network(random.Random(seed))
        _, statistics = rewritten(module, "split-linear,split-conv,views-to-copies,copies-to-views")
        for name in counts:
            counts[name] += sum(statistics.get(name, {}).values())
    assert min(counts.values()) >= 5


@pytest.mark.parametrize("seed", range(40))
def test_r3_12_no_copy_is_left_outside_of_groups(seed):
    module, _ = random_network(random.Random(seed))
    result, _ = rewritten(module, "views-to-copies,copies-to-views")
    before = [i.op for i in module.main.body.walk()]
    assert [i.op for i in result.main.body.walk()] == before
    assert not any(issubclass(op, ViewCopy) for op in before)


@pytest.mark.parametrize(
    ("name", "shapes", "out", "passes"),
    [
        ("conv2d", ((1, 3, 5, 5), (2, 3, 3, 3), (2,)), (1, 2, 3, 3), "split-conv"),
        ("linear", ((4, 3), (5, 3), (5,)), (4, 5), "split-linear"),
    ],
)
def test_r3_9_and_r3_10_the_bias_of_16_bit_floats_stays_in_its_op(name, shapes, out, passes):
    """It is rounded once, after the bias has been added."""
    graph = Graph(*[TensorType(F16, shape) for shape in shapes])
    graph.program.body.outputs = (graph(name, *graph.inputs, type_=TensorType(F16, out), given=1),)
    module = Module(graph.program)
    args = [(a * 8).astype(np.float16) for a in inputs_of(graph.program, 0)]
    result, _ = rewritten(module, passes)
    same(evaluated(result, args), evaluated(module, args))
    assert [i.op.name for i in result.main.body.instrs] == [name]


def test_r3_12_a_copy_that_was_one_from_the_beginning_has_memory_of_its_own():
    graph = Graph(TensorType(F32, (4, 6)))
    graph.program.body.outputs = (graph("reshape_copy", *graph.inputs, type_=TensorType(F32, (24,)), shape=(24,)),)
    result, _ = rewritten(Module(graph.program), "views-to-copies,copies-to-views")
    x = np.ones((4, 6), np.float32)
    (y,) = evaluated(result, [x])
    assert not np.shares_memory(x, y)


# --- after the guards ----------------------------------------------------------------------------


def bare(type_):
    return TENSOR if isinstance(type_, TensorType) else type_


def guarded(module, *, known=True):
    """The group of a module behind a guard, with its body as fallback; without a device nothing is ``known``."""
    main, (body,) = module.main, module.functions.values()
    at = next(n for n, i in enumerate(main.body.instrs) if issubclass(i.op, Subgraph))
    call = main.body.instrs[at]
    types = [body.type_of(v) for v in body.inputs]
    types = [TensorType(t.dtype, t.shape, device="cpu" if known else None) for t in types]
    refined = tuple(main.new_value(TensorType(t.dtype, (None,) * len(t.shape))) for t in types)
    passed = main.new_value(BOOL_SCALAR)
    check = Instr(CudaGuard, call.operands, (*refined, passed), {"types": tuple(types)})
    blocks = []
    for op, operands, callee in ((call.op, refined, body.name), (FallbackGraph, call.operands, "fallback_0")):
        results = tuple(main.new_value(main.type_of(r)) for r in call.results)
        blocks.append(Block((), [Instr(op, operands, results, {"callee": callee})], results))
    branch = Instr(If, (passed,), call.results, {}, tuple(blocks))
    main.body.instrs[at : at + 1] = [check, branch]
    fallback = decode_module(parse_module(Module(body).to_mlir(), "f.mlir")).main
    fallback.name = "fallback_0"
    fallback.types = {v: bare(t) for v, t in fallback.types.items()}
    return Module(main, {body.name: body, "fallback_0": fallback})


AFTER = (
    "repair-batch-norm,drop-unprofiled-groups,dtype-only-results,join-views,copies-to-views,cse-profuse,dce,"
    "shape-peephole"
)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("passes", ["drop-unprofiled-groups", "dtype-only-results", "join-views", AFTER])
def test_r3_44_to_r3_48_leave_values_as_they_are(seed, known, passes):
    """Whether the guard passes or fails."""
    module = guarded(random_group(random.Random(seed)), known=known)
    result, statistics = rewritten(module, passes)
    if not known and "drop" in passes:
        assert statistics["drop-unprofiled-groups"]["groups-dropped"] == 1
        assert not any(issubclass(i.op, CudaGuard) for i in result.main.body.walk())
    for args in (
        random_arrays(random.Random(seed), change=False),
        [np.float64(1) * a for a in random_arrays(random.Random(seed), change=False)],
    ):
        same(evaluated(result, args), evaluated(module, args))


def test_r3_47_random_groups_give_dtypes():
    """What the test above compares is not the same program."""
    count = 0
    for seed in range(40):
        _, statistics = rewritten(guarded(random_group(random.Random(seed))), "dtype-only-results")
        count += statistics["dtype-only-results"].get("dtypes-yielded", 0)
    assert count >= 5


def batch_norm(backward):
    """An indexed batch normalisation, or its backward op, as a group."""
    x, small = np.arange(24, dtype=np.float32).reshape(4, 3, 2), np.ones(3, np.float32)
    body = Program("device_0")
    arrays = [x, x * 2, small, small, small, np.zeros(0, np.uint8)] if backward else [x, small, small]
    body.body.args = tuple(body.new_value(type_of(a).without_layout()) for a in arrays)
    v = body.inputs
    if backward:
        zero = body.new_value()
        body.types[zero] = type_of(0)
        body.body.instrs.append(Instr(op_named("constant"), (), (zero,), {"value": 0}))
        op, operands, attrs = (
            op_named("batch_norm_index_backward"),
            (zero, *v[:5], v[5]),
            {"given": 25, "training": True},
        )
    else:
        op, operands, attrs = op_named("batch_norm_index"), v, {"given": 3, "training": True}
    results = tuple(map(body.new_value, op.infer([body.type_of(o) for o in operands], op.full_attrs(attrs))))
    body.body.instrs.append(Instr(op, operands, results, attrs))
    body.body.outputs = results[: 3 if backward else 5]
    main = Program("main")
    main.body.args = tuple(main.new_value() for _ in arrays)
    outer = tuple(main.new_value(bare(body.type_of(r))) for r in body.outputs)
    main.body.instrs.append(Instr(op_named("cuda_group"), main.inputs, outer, {"callee": body.name}))
    main.body.outputs = outer
    return guarded(Module(main, {body.name: body})), arrays


@pytest.mark.parametrize("backward", [False, True])
def test_r3_44_r3_45_a_repaired_batch_norm_gives_the_same(backward):
    module, arrays = batch_norm(backward)
    result, statistics = rewritten(module, "repair-batch-norm")
    assert sum(statistics["repair-batch-norm"].values()) == (1 if backward else 2)
    for args in (arrays, [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]):
        same(evaluated(result, args), evaluated(module, args))


# --- all of it -----------------------------------------------------------------------------------

WHOLE = STANDARD["device-fuser"].replace("partition-device-groups", "partition-device-groups{host=true}")


def asking(rng, program):
    """Return queries of some values beside some of what the program returns."""
    values = [r for instr in program.body.instrs for r in instr.results]
    outputs = list(program.body.outputs[: rng.randint(1, 2)])
    for _ in range(rng.randint(1, 4)):
        name = rng.choice(("sizes", "rank", "size", "dtype_code"))
        result = program.new_value(INTS if name == "sizes" else INT_SCALAR)
        program.body.instrs.append(Instr(op_named(name), (rng.choice(values),), (result,)))
        outputs.append(result)
    program.body.outputs = tuple(outputs)


def outcome(module, args):
    """What a module gives, or the error that it raises."""
    try:
        return evaluated(module, copied(args))
    except ValueError as error:
        return error


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_r3_1_the_fuser_of_device_groups_leaves_values_as_they_are(seed):
    """For the sizes that types have, for others, and where the guards fail."""
    rng = random.Random(seed)
    module, program = random_network(rng)
    asking(rng, program)
    module, _ = rewritten(module, "dce")  # of what nobody reads no error is raised
    args = inputs_of(program, seed)
    for value in module.main.inputs:
        type_ = module.main.type_of(value)
        module.main.types[value] = replace(type_, strides="contiguous", device="cpu", requires_grad=False)
    result, _ = rewritten(module, WHOLE)
    same(evaluated(result, copied(args)), evaluated(module, copied(args)))
    image, rows, *weights = args
    others = [[image, np.random.default_rng(1).random((n, 6)).astype(rows.dtype), *weights] for n in (7, 2, 1, 0)]
    others.append([a.astype(np.float64 if a.dtype == np.float32 else np.float32) for a in args])
    for changed in others:
        expected, actual = outcome(module, changed), outcome(result, changed)
        if isinstance(expected, ValueError):
            assert isinstance(actual, ValueError)
        else:
            same(actual, expected)


LATE = """
func.func @f(%x: !profuse.tensor, %a: !profuse.ints, %k: i1, %s: !profuse.ints) -> (!profuse.tensor, !profuse.ints, !profuse.tensor, !profuse.ints, i64) {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x6xf32, {device = "cpu", strides = "contiguous", requires_grad = false}>} : (!profuse.tensor) -> !profuse.tensor
  %ao = "profuse.profile_value"(%a) {site = 1 : i64, profiled_int_list = array<i64: 0>} : (!profuse.ints) -> !profuse.ints
  %ko = "profuse.profile_value"(%k) {site = 2 : i64, profiled_bool = true} : (i1) -> i1
  %so = "profuse.profile_value"(%s) {site = 3 : i64, profiled_view_size = array<i64: 2, -1>} : (!profuse.ints) -> !profuse.ints
  %e = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %r = "profuse.late"(%e, %ao, %ko) {op = "sum", names = ["axes", "keepdims"]} : (!profuse.tensor, !profuse.ints, i1) -> !profuse.tensor
  %t = "profuse.tanh"(%r) : (!profuse.tensor) -> !profuse.tensor
  %v = "profuse.late"(%t, %so) {op = "reshape", names = ["shape"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %w = "profuse.neg"(%v) : (!profuse.tensor) -> !profuse.tensor
  %n = "profuse.sizes"(%t) : (!profuse.tensor) -> !profuse.ints
  %m = "profuse.sizes"(%r) : (!profuse.tensor) -> !profuse.ints
  %d = "profuse.dtype_code"(%r) : (!profuse.tensor) -> i64
  return %w, %n, %v, %m, %d : !profuse.tensor, !profuse.ints, !profuse.tensor, !profuse.ints, i64
}
"""  # noqa: E501
_X = np.arange(24, dtype=np.float32).reshape(4, 6) / 10


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "args",
    [
        (_X, (0,), True, (2, -1)),
        (_X, (1,), True, (2, -1)),
        (_X, (0,), False, (2, -1)),
        (_X, (0,), True, (3, 2)),
        (_X, None, True, (1, -1)),
        (np.ones((8, 2), np.float32), (0,), True, (2, -1)),
        (np.ones((9, 12), np.float32), (0,), True, (4, 3)),
        (_X.astype(np.float64), (0,), True, (2, -1)),
    ],
)
def test_r3_30_sizes_and_views_that_are_values_of_the_run(args):
    """The guard asks for the sizes of a reduction whose axes are such a value, and so does the graph outside (A8)."""
    result, statistics = rewritten(decode_module(parse_module(LATE, "f.mlir")), WHOLE)
    assert statistics["insert-device-guards"]["guards"] == 1
    expected = evaluated(decode_module(parse_module(LATE, "f.mlir")), list(args))
    same(evaluated(result, list(args)), expected)
