"""Sizes of what device groups compute, as values around them (R3.28 to R3.34, A8)."""

import copy
import random

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.dialect.errors import ShapeError
from profuse.dialect.guards.view_constraints import view_constraint
from profuse.dialect.ir.dtypes import F64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, INTS, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.mlir.verify import verify_module
from profuse.dialect.ops.speculation import CudaGroup
from profuse.dialect.passes.device_fuser.shape_expressions import ShapeExpressions
from profuse.dialect.passes.device_fuser.size_only_results import replace_size_queries
from profuse.dialect.pipeline.execution import run_pipeline
from small_programs import Graph
from test_fusion_semantics import run

QUERIES = ("sizes", "dim", "rank", "size", "dtype_code")


def evaluated(module, args):
    return run(module, args, lambda instr, ins: None)


def random_arrays(rng, change):
    """Three arrays that broadcast; ``change`` makes other sizes of the same ranks, 1 where the others have 1."""
    m, n, k = (2, 3, 4) if not change else (5, 2, 7)
    shapes = [(m, n, k), (n, 1), (1, 1, k)]
    return [np.asarray(np.random.default_rng(rng.randrange(99)).random(s), np.float32) for s in shapes]


def random_group(rng):
    """A group of ops that have rules, beside some that have none, and queries of its results around it."""
    body = Program("device_0")
    arrays = random_arrays(rng, change=False)
    body.body.args = tuple(body.new_value(type_of(a).without_layout()) for a in arrays)
    held = dict(zip(body.inputs, arrays, strict=True))

    def emit(name, operands, **attrs):
        op = op_named(name)
        results = op.evaluate(op.full_attrs(attrs), *(held[v] for v in operands))
        results = results if isinstance(results, tuple) else (results,)
        types = op.infer([body.type_of(v) for v in operands], op.full_attrs(attrs))
        values = tuple(map(body.new_value, types))
        held.update(zip(values, results, strict=True))
        body.body.instrs.append(Instr(op, tuple(operands), values, attrs))

    for _ in range(rng.randint(3, 9)):
        x = rng.choice(list(held))
        rank = held[x].ndim
        kind = rng.randrange(10)
        if kind == 0:
            emit("expand_dims", [x], axes=(rng.randint(-rank - 1, rank),))
        elif kind == 1:
            ones = [a for a in range(rank) if held[x].shape[a] == 1]
            if ones:
                emit("squeeze", [x], axes=(rng.choice(ones) - rng.choice((0, rank)),))
        elif kind == 2 and rank:
            axes = rng.sample(range(rank), rng.randint(1, rank))
            emit(rng.choice(("sum", "mean", "max", "var")), [x], axes=tuple(axes), keepdims=rng.random() < 0.5)
        elif kind == 3 and rank and held[x].shape[0] >= 2:
            emit("chunk", [x], axis=0, chunks=2)
        elif kind == 4 and rank:
            emit("flip", [x])
        elif kind == 5 and rank > 1:
            if rng.random() < 0.5:
                emit("transpose", [x])
            else:
                emit("tile", [x], reps=(2,))  # without a rule
        elif kind == 6:
            emit("cast", [x], dtype=F64)
        elif kind < 8:
            emit(rng.choice(("tanh", "exp", "neg")), [x])
        else:
            fits = [y for y in held if _broadcast(held[x], held[y])]
            emit(rng.choice(("add", "mul", "maximum")), [x, rng.choice(fits)])
    values = [r for i in body.body.instrs for r in i.results]
    body.body.outputs = tuple(rng.choice(values) for _ in range(rng.randint(1, 4)))
    main = Program("main")
    main.body.args = tuple(main.new_value() for _ in arrays)
    results = tuple(main.new_value() for _ in body.outputs)
    main.body.instrs.append(Instr(CudaGroup, main.inputs, results, {"callee": body.name}))
    outputs = []
    for result, inner in zip(results, body.outputs, strict=True):
        for name in rng.sample(QUERIES, rng.randint(0, 3)):
            if name == "dim" and not held[inner].ndim:
                continue
            attrs = {"axis": rng.randrange(held[inner].ndim)} if name == "dim" else {}
            value = main.new_value(INTS if name == "sizes" else INT_SCALAR)
            main.body.instrs.append(Instr(op_named(name), (result,), (value,), attrs))
            outputs.append(value)
        if rng.random() < 0.3:
            outputs.append(result)
    main.body.outputs = tuple(outputs)
    return Module(main, {body.name: body})


def _broadcast(a, b):
    try:
        return np.broadcast_shapes(a.shape, b.shape) is not None
    except ValueError:
        return False


def same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b and type(a) is type(b)


@pytest.mark.parametrize("seed", range(120))
def test_r3_33_queries_of_sizes_give_the_same_without_the_result(seed):
    """Whatever the sizes are: shapes that were profiled, and others."""
    rng = random.Random(seed)
    module = random_group(rng)
    before = copy.deepcopy(module)
    replace_size_queries(module.main, module.functions)
    assert not verify_module(parse_module(module.to_mlir(), "f.mlir"))
    for change in (False, True):
        args = random_arrays(random.Random(seed), change)
        try:
            expected = evaluated(before, args)
        except Exception:
            continue  # other sizes need not fit, as those of a chunk
        same(evaluated(module, args), expected)


def test_r3_33_random_groups_lose_results():
    """What the test above compares is not the same program."""
    counts = [0, 0]
    for seed in range(40):
        module = random_group(random.Random(seed))
        changes = replace_size_queries(module.main, module.functions)
        counts[0] += changes.queries
        counts[1] += changes.results
    assert min(counts) > 40


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    "passes", ["size-only-results", "shape-peephole", "join-views", "size-only-results,shape-peephole"]
)
def test_passes_leave_values_as_they_are(seed, passes):
    module = random_group(random.Random(seed))
    args = random_arrays(random.Random(seed), change=False)
    parsed = parse_module(module.to_mlir(), "f.mlir")
    run_pipeline(parsed, passes, verify_each=True)
    same(evaluated(decode_module(parsed), args), evaluated(module, args))


def test_r3_34_what_is_read_twice_stays():
    graph = Graph(INTS, INTS, INTS)
    a, b, c = graph.inputs
    both = graph("broadcast_sizes", a, b, type_=INTS)
    graph.program.body.outputs = (graph("broadcast_sizes", both, c, type_=INTS), both)
    parsed = parse_module(Module(graph.program).to_mlir(), "f.mlir")
    run_pipeline(parsed, "shape-peephole", verify_each=True)
    assert evaluated(decode_module(parsed), [(3, 1), (1,), (4,)]) == ((3, 4), (3, 1))


# --- the two maps (A8) -------------------------------------------------------------------------


def group_of(build, *arrays):
    """A graph that calls a group; ``build`` gets ``emit`` and the arguments of its function."""
    body = Program("device_0")
    body.body.args = tuple(body.new_value(type_of(a).without_layout()) for a in arrays)

    def emit(name, *operands, **attrs):
        op = op_named(name)
        types = op.infer([body.type_of(v) for v in operands], op.full_attrs(attrs))
        results = tuple(map(body.new_value, types))
        body.body.instrs.append(Instr(op, operands, results, attrs))
        return results[0] if len(results) == 1 else results

    outputs = build(emit, *body.inputs)
    body.body.outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    main = Program("main")
    main.body.args = tuple(main.new_value() for _ in arrays)
    call = Instr(CudaGroup, main.inputs, tuple(main.new_value() for _ in body.outputs), {"callee": body.name})
    main.body.instrs.append(call)
    return main, call, body


def names(instrs):
    return [instr.op.name for instr in instrs]


X, Y = np.ones((4, 8), np.float32), np.ones((8,), np.float32)


def test_a8_sizes_of_operands_alone_stand_in_front_of_the_group():
    main, call, body = group_of(lambda emit, x, y: emit("sum", emit("add", x, y), axes=(1,)), X, Y)
    before = ShapeExpressions.before(main, call, body)
    value = before.of(body.outputs[0])
    instrs = before.instrs([value])
    assert names(instrs) == ["sizes", "sizes", "broadcast_sizes", "reduction_sizes"]
    assert not any(set(call.results) & set(instr.operands) for instr in instrs)


def test_a8_sizes_of_results_that_are_there_stand_behind_it():
    """R3.28: no broadcast chain for a materialised result."""
    main, call, body = group_of(lambda emit, x, y: (a := emit("add", x, y), emit("sum", a, axes=(1,))), X, Y)
    after = ShapeExpressions.after(main, call, body, [0])
    value = after.of(body.outputs[1])
    instrs = after.instrs([value])
    assert names(instrs) == ["sizes", "reduction_sizes"]
    assert instrs[0].operands == (call.results[0],)


def test_a8_a_reduction_of_a_materialised_result_that_also_feeds_a_view_guard():
    """The guard's sizes are made of operands, in front; those for outside of the result, behind (R3.31)."""
    main, call, body = group_of(lambda emit, x, y: (a := emit("add", x, y), emit("sum", a, axes=(1,))), X, Y)
    before = ShapeExpressions.before(main, call, body)
    self_sizes = before.of(body.outputs[1])
    view_sizes, fits = (main.new_value(INTS), main.new_value(BOOL_SCALAR))
    guard = [
        Instr(op_named("constant"), (), (view_sizes,), {"value": (2, 2)}),
        Instr(op_named("view_guard"), (self_sizes, view_sizes), (fits,), {"constraint": view_constraint((4,), (2, 2))}),
    ]
    asked = main.new_value(INTS)
    main.body.instrs.append(Instr(op_named("sizes"), (call.results[1],), (asked,)))
    main.body.outputs = (call.results[0], asked, fits)
    at = main.body.instrs.index(call)
    main.body.instrs[at:at] = [*before.instrs([self_sizes]), *guard]
    module = Module(main, {body.name: body})
    changes = replace_size_queries(main, module.functions)
    assert (changes.queries, changes.results) == (1, 1)
    assert names(main.body.instrs) == [
        "sizes", "sizes", "broadcast_sizes", "reduction_sizes", "constant", "view_guard",
        "cuda_group", "sizes", "reduction_sizes",
    ]  # fmt: skip
    parsed = parse_module(module.to_mlir(), "f.mlir")
    assert not verify_module(parsed) and parsed.operation.verify()
    result, sizes, passed = evaluated(module, [X, Y])
    assert (result.shape, sizes, passed) == ((4, 8), (4,), True)


# --- the rules (R3.29) -------------------------------------------------------------------------


def sizes_by_rule(name, arrays, **attrs):
    """The sizes of an op's results by its rule, at run time, and those of the results themselves."""
    main, call, body = group_of(lambda emit, *xs: emit(name, *xs, **attrs), *arrays)
    before = ShapeExpressions.before(main, call, body)
    sizes = [before.of(r) for r in body.body.instrs[0].results]
    used = [s for s in sizes if s is not None]
    main.body.instrs[:] = before.instrs(used)
    main.body.outputs = tuple(used)
    values = iter(evaluated(Module(main), arrays))
    op = op_named(name)
    results = op.evaluate(op.full_attrs(attrs), *arrays)
    results = results if isinstance(results, tuple) else (results,)
    return [None if s is None else next(values) for s in sizes], [np.shape(r) for r in results]


MOVES = ("transpose", "swapaxes", "moveaxis", "reshape", "concatenate", "stack", "matmul", "linear")
_SHAPE = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(_SHAPE, st.data())
@settings(max_examples=150, deadline=None)
def test_r3_32_sizes_are_those_of_numpy(shape, data):
    x = np.zeros(shape, np.float32)
    rank = len(shape)
    name = data.draw(st.sampled_from(["sum", "expand_dims", "squeeze", "chunk", "cumsum", "flip", "mul", *MOVES]))
    attrs, arrays = {}, [x]
    axes = data.draw(st.sets(st.integers(0, rank - 1), max_size=rank))
    signed = tuple(a - data.draw(st.sampled_from([0, rank])) for a in axes)
    if name == "sum":
        attrs = {"axes": data.draw(st.sampled_from([signed, None])), "keepdims": data.draw(st.booleans())}
    elif name == "expand_dims":
        attrs = {"axes": (data.draw(st.integers(-rank - 1, rank)),)}
    elif name == "squeeze":
        attrs = {"axes": data.draw(st.sampled_from([tuple(a for a in signed if shape[a] == 1), None]))}
    elif name == "chunk":
        size = shape[0]
        fits = [k for k in range(1, size + 1) if -(-size // k) * (k - 1) < size]
        attrs = {"axis": 0, "chunks": data.draw(st.sampled_from(fits))}
    elif name == "cumsum":
        attrs = {"axis": data.draw(st.integers(-rank, rank - 1))}
    elif name == "mul":
        arrays.append(np.zeros([d if data.draw(st.booleans()) else 1 for d in shape], np.float32))
        arrays = data.draw(st.permutations(arrays))
    elif name == "transpose":
        attrs = {"perm": data.draw(st.sampled_from([None, tuple(data.draw(st.permutations(range(rank))))]))}
    elif name == "swapaxes":
        attrs = {"axis1": data.draw(st.integers(-rank, rank - 1)), "axis2": data.draw(st.integers(-rank, rank - 1))}
    elif name == "moveaxis":
        attrs = {"source": (data.draw(st.integers(-rank, rank - 1)),), "destination": (rank - 1,)}
    elif name == "reshape":
        attrs = {"shape": data.draw(st.sampled_from([(-1,), (shape[0], -1), (1, *shape)]))}
    elif name in ("concatenate", "stack"):
        attrs = {"axis": data.draw(st.integers(-rank, rank - 1))}
        arrays.append(x)
    elif name in ("matmul", "linear"):
        last = [shape[-1], 3] if name == "matmul" else [3, shape[-1]]
        arrays.append(np.zeros(data.draw(st.sampled_from([last, [shape[-1]]])), np.float32))
    by_rule, actual = sizes_by_rule(name, arrays, **attrs)
    assert by_rule == actual


@pytest.mark.parametrize("shapes", [((2, 3), (1, 3)), ((1, 3), (2, 3)), ((3,), (2, 1)), ((2, 1), (1, 3))])
def test_r3_32_sizes_are_those_that_operands_broadcast_to(shapes):
    """Whichever of them has the longer axis."""
    by_rule, actual = sizes_by_rule("mul", [np.zeros(shape, np.float32) for shape in shapes])
    assert by_rule == actual == [(2, 3)]


def test_r3_32_seven_in_three_chunks():
    by_rule, actual = sizes_by_rule("chunk", [np.zeros((2, 7), np.float32)], axis=1, chunks=3)
    assert by_rule == actual == [(2, 3), (2, 3), (2, 1)]


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [("tile", [(4, 6)], {"reps": (2, 1)}), ("slice", [(4, 6)], {"starts": (1,), "stops": (3,), "axes": (0,)})],
)
def test_a10_sizes_without_a_rule_are_not_expressed(name, shapes, attrs):
    main, call, body = group_of(lambda emit, *xs: emit(name, *xs, **attrs), *[np.zeros(s, np.float32) for s in shapes])
    before = ShapeExpressions.before(main, call, body)
    assert before.of(body.outputs[0]) is None
    assert before.reason(body.outputs[0]).op == name


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("axes", [(0,), (1,), None])
def test_r3_30_axes_that_are_values_are_read_outside_as_well(conditional, axes):
    """What was observed is (0,); a graph that is run with other axes asks for other sizes."""
    body = Program("device_0")
    x, observed, keepdims = (
        body.new_value(type_of(X).without_layout()),
        body.new_value(INTS),
        body.new_value(BOOL_SCALAR),
    )
    body.body.args = (x, observed)
    body.body.instrs.append(Instr(op_named("constant"), (), (keepdims,), {"value": True}))
    value = observed
    if conditional:
        value = body.new_value(INTS)
        body.body.instrs.append(Instr(op_named("constant"), (observed,), (value,), {"value": (0,)}))
    total = body.new_value()
    late = {"op": "sum", "names": ("axes", "keepdims")}
    body.body.instrs.append(Instr(op_named("late"), (x, value, keepdims), (total,), late))
    body.body.outputs = (total,)
    main = Program("main")
    main.body.args = (main.new_value(), main.new_value(INTS))
    result, sizes = main.new_value(), main.new_value(INTS)
    main.body.instrs += [
        Instr(CudaGroup, main.inputs, (result,), {"callee": body.name}),
        Instr(op_named("sizes"), (result,), (sizes,)),
    ]
    main.body.outputs = (sizes,)
    module = Module(main, {body.name: body})
    expected = np.sum(X, axes, keepdims=True).shape
    assert evaluated(module, [X, axes]) == (expected,)
    assert replace_size_queries(main, module.functions).results == 1
    assert evaluated(module, [X, axes]) == (expected,)


@pytest.mark.parametrize(
    ("name", "profiled", "other", "attrs"),
    [
        ("reshape", [(4, 6)], [(4, 5)], {"shape": (2, 12)}),
        ("broadcast_to", [(4, 1)], [(3, 1)], {"shape": (4, 3)}),
        ("squeeze", [(4, 1)], [(4, 2)], {"axes": (1,)}),
        ("add", [(4, 6), (6,)], [(4, 6), (5,)], {}),
        ("matmul", [(4, 6), (6, 2)], [(4, 6), (5, 2)], {}),
        ("chunk", [(4,)], [(5,)], {"chunks": 4}),
        ("concatenate", [(4, 6), (3, 6)], [(4, 6), (3, 5)], {"axis": 0}),
        ("sum_to", [(4, 6), (6,)], [(4, 6), (5,)], {}),
    ],
)
def test_r3_33_sizes_that_do_not_fit_raise_what_the_op_raises(name, profiled, other, attrs):
    """Without its result the op is not there to say it."""
    arrays = [np.zeros(s, np.float32) for s in profiled]
    main, call, body = group_of(lambda emit, *xs: emit(name, *xs, **attrs), *arrays)
    sizes = main.new_value(INTS)
    main.body.instrs.append(Instr(op_named("sizes"), call.results[:1], (sizes,)))
    main.body.outputs = (sizes,)
    module = Module(main, {body.name: body})
    before = copy.deepcopy(module)
    assert replace_size_queries(main, module.functions).queries == 1
    assert evaluated(module, arrays) == evaluated(before, arrays)
    wrong = [np.zeros(s, np.float32) for s in other]
    with pytest.raises(ValueError):
        evaluated(before, wrong)
    with pytest.raises(ShapeError):
        evaluated(module, wrong)


def test_reductions_without_an_identity_keep_their_result():
    """Over no elements they raise an error."""
    main, call, body = group_of(lambda emit, x: emit("max", x, axes=(0,)), X)
    assert ShapeExpressions.before(main, call, body).of(body.outputs[0]) is None
