"""`differentiate` on programs of every op: what `pf.vjp` gives, also where sizes are unknown."""

import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES
from profuse.dialect.autodiff.differentiate import differentiate, split
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.ir.dtypes import dtype_of
from profuse.dialect.ir.program import Module
from profuse.dialect.ir.types import ScalarType, TensorType
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.executor.interpret.evaluate import evaluate
from random_functions import function

EACH = pytest.mark.parametrize("case", CASES, ids=str)


def typed(program, args, *, known):
    """The program with dtypes, and with sizes or ranks alone, of arguments in its inputs' types."""
    for value, arg in zip(program.inputs, args, strict=True):
        if isinstance(arg, (np.ndarray, np.generic)):
            shape = arg.shape if known else (None,) * arg.ndim
            program.types[value] = TensorType(dtype_of(arg.dtype), shape)
        else:
            program.types[value] = ScalarType(dtype_of(np.dtype(type(arg))))
    return program


def seeds(results):
    """A gradient for each float result."""
    rng = np.random.default_rng(5)
    floats = [r for r in map(np.asarray, results) if r.dtype.kind in "fc"]
    return [rng.standard_normal(r.shape).astype(r.dtype) for r in floats]


@pytest.mark.sampled(10, each=())
@EACH
@pytest.mark.parametrize("known", [True, False], ids=["sizes", "ranks"])
def test_joint_graphs_of_programs_give_what_vjp_gives(case, known):
    with np.errstate(all="ignore"), pf.knobs.override(cache=False, background=False):
        traced = trace(case.fn, case.args)
        args = [*case.args, *traced.captured]
        program = typed(traced.module.main, args, known=known)
        results = evaluate(Module(program), args)
        given = seeds(results)
        count = len(program.inputs) + len(given)
        if case.label == "overlapping" and not known:  # which parts overlap depends on sizes
            with pytest.raises(pf.TraceError, match="a Python number is needed"):
                differentiate(program)
            return
        joint = differentiate(program)
        found = evaluate(Module(joint), [*args, *given])
        assert len(joint.inputs) == count
        _, back = pf.vjp(case.fn, *case.args)
        tree = given[0] if not isinstance(results, tuple) and len(results) == 1 else tuple(given)
        wanted = [g for g in back(tree) if g is not None]
        halves = run(split(program), args, given)
    for got, want in zip(found[: len(results)], results, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(found[len(results) :], wanted, strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    real, gradients = halves
    assert len(real) == len(results)
    for got, want in zip(real, results, strict=True):
        np.testing.assert_array_equal(got, want)
    floats = [k for k, a in enumerate(args) if np.asarray(a).dtype.kind in "fc"]
    assert set(gradients) <= set(floats)
    for k, want in zip(floats, found[len(results) :], strict=True):
        # R2.29: an input that no gradient flows into has none in the reverse half.
        np.testing.assert_allclose(gradients.get(k, 0.0), want, rtol=1e-12, atol=1e-12)


def run(parts, args, given):
    """The results of a graph's two halves, from what their indices name; gradients by input."""
    outputs = evaluate(Module(parts.forward), args)
    real = outputs[: parts.real_outputs]
    assert len(parts.input_vjps) == len(given)
    captured = [args[k] for k in parts.captured_inputs]
    captured += [outputs[k] for k in parts.captured_outputs]
    found = evaluate(lowered(parts.reverse), [*given, *captured])
    return real, dict(zip(parts.output_vjps, found, strict=True))


def test_reverse_halves_run_loops_in_segments():
    """The number of rounds is that of the call; what is kept is remarked."""

    def f(x, y, n):
        ys = np.zeros((12, 3)) * y

        def body(i, x):
            ys[i] = np.sin(x)
            x[0] = x[0] * y[0] + x[1]
            return x

        x = pf.fori_loop(0, n, body, x * 1.0)
        return (ys * ys).sum() + x.sum()

    args = [np.array([0.3, -0.5, 0.8]), np.array([0.2, 0.9, -1.0]), 11]
    with pf.knobs.override(cache=False, background=False):
        wanted = pf.grad(f, wrt=(0, 1), profiled_runs=9)(*args)
        program = typed(trace(f, tuple(args)).module.main, args, known=True)
        for most, text in ((None, ""), (0, "every k-th"), (1 << 20, "every k-th")):
            parts = split(program, loop_bytes=most)
            _, gradients = run(parts, args, [np.float64(1.0)])
            for k, want in enumerate(wanted):
                np.testing.assert_allclose(gradients[k], want, rtol=1e-12)
            assert text in "".join(parts.remarks)
            assert bool(parts.remarks) == (most is not None)


def lowered(reverse):
    """A reverse half with branches in place of gradient blocks, which cannot be evaluated."""
    module = parse_module(Module(reverse).to_mlir())
    run_pipeline(module, "lower-grad-blocks,dce", verify_each=True)
    return decode_module(module)


def test_the_program_stays_and_the_joint_graph_survives_a_round_trip_as_text():
    program = typed(trace(lambda x: np.tanh(x) * x, (np.ones(3),)).module.main, [np.ones(3)], known=False)
    before = Module(program).to_mlir()
    joint = differentiate(program)
    assert Module(program).to_mlir() == before
    text = Module(joint).to_mlir()
    again = decode_module(parse_module(text))
    x, g = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    first, second = (evaluate(m, [x, g]) for m in (Module(joint), again))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(second[1], g * (np.tanh(x) + x / np.cosh(x) ** 2))


def test_an_input_that_is_an_output_has_both_gradients():
    program = typed(trace(lambda x: (x, x * 2), (np.ones(3),)).module.main, [np.ones(3)], known=True)
    x, g, h = np.arange(3.0), np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    *_, found = evaluate(Module(differentiate(program)), [x, g, h])
    np.testing.assert_array_equal(found, g + 2 * h)


def parts_of(fn, *args, known=True, wrt=None):
    traced = trace(fn, args)
    return split(typed(traced.module.main, args, known=known), wrt)


X, Y, Z = (np.random.default_rng(k).standard_normal((4, 3)) for k in range(3))


def test_indices_of_a_product_and_a_sum():
    """R2.29: gradients of a*b+c need a and b, and no temporaries."""
    parts = parts_of(lambda a, b, c: a * b + c, X, Y, Z)
    assert parts.real_outputs == len(parts.forward.outputs) == 1
    assert parts.input_vjps == (0,) and parts.output_vjps == (0, 1, 2)
    assert parts.captured_inputs == (0, 1) and parts.captured_outputs == ()
    assert len(parts.reverse.inputs) == 3 and len(parts.reverse.outputs) == 3


def test_a_real_output_is_captured_by_its_index_and_not_added_again():
    """R2.29"""
    parts = parts_of(lambda a: (a + 1, np.exp(a @ a.T)), X)
    assert parts.real_outputs == 2 and parts.input_vjps == (0, 1)
    assert parts.captured_outputs == (1,) and len(parts.forward.outputs) == 2


def test_temporaries_follow_the_real_outputs():
    """R2.29: what is neither an input nor an output, and is not computed again."""
    parts = parts_of(lambda a: np.sin(a @ a.T).sum(), X)
    assert parts.real_outputs == 1 and len(parts.forward.outputs) == 2
    assert parts.captured_inputs == (0,) and parts.captured_outputs == (1,)


def test_captures_are_in_topological_order():
    """R2.29: inputs as they are, then results by their place, temporaries as they are computed."""

    def layers(a, b, c):
        first = np.sin(a @ b)
        second = np.cos(first @ c)
        return second, (np.sin(second @ b) @ c).sum()

    parts = parts_of(layers, X, np.ones((3, 3)), np.eye(3))
    assert parts.captured_inputs == (0, 1, 2)
    captured = parts.captured_outputs
    assert len(captured) > 3 and list(captured) == sorted(captured)
    made = {r: k for k, i in enumerate(parts.forward.body.instrs) for r in i.results}
    places = [made[v] for v in parts.forward.outputs[parts.real_outputs :]]
    assert places == sorted(places)
    assert len(parts.reverse.inputs) == len(parts.input_vjps) + 3 + len(captured)


def test_what_is_no_float_has_no_gradients_and_is_captured_by_its_index():
    """R2.29"""
    index = np.array([0, 2])
    parts = parts_of(lambda a, i: (a[i] * 2, i + 1), X, index)
    assert parts.input_vjps == (0,) and parts.output_vjps == (0,)
    assert 1 in parts.captured_inputs


def test_gradients_of_chosen_inputs_alone():
    """R2.29: one gradient per input that requires one."""
    parts = parts_of(lambda a, b: a * b, X, Y, wrt=[1])
    assert parts.output_vjps == (1,) and parts.captured_inputs == (0,)


def test_sizes_of_captured_arrays_are_computed_again():
    """R2.29: no size is captured beside the array that has it."""
    parts = parts_of(lambda a: a * a / a.shape[0], X, known=False)
    assert parts.captured_inputs == (0,) and parts.captured_outputs == ()
    assert any(i.op.name == "dim" for i in parts.reverse.body.instrs)


def two(a, b):
    """Two results that share a part, and one that is no float."""
    shared = np.exp(a * b)
    return shared + a, (shared * shared).sum(axis=0), np.argmax(b)


@pytest.mark.parametrize("known", [True, False], ids=["sizes", "ranks"])
@pytest.mark.parametrize("defined", [(True, True), (True, False), (False, True)], ids=str)
def test_any_incoming_gradient_may_be_undefined(defined, known):
    """R2.30: then what it would add is absent, and what nothing flows into is undefined."""
    parts = parts_of(two, X, Y, known=known)
    given = [np.full((4, 3), 2.0), np.arange(3.0)]
    _, back = pf.vjp(lambda a, b: two(a, b)[:2], X, Y)
    wanted = back(tuple(g if d else None for g, d in zip(given, defined, strict=True)))
    _, found = run(parts, [X, Y], [g if d else None for g, d in zip(given, defined, strict=True)])
    for k, want in enumerate(wanted):
        np.testing.assert_allclose(found[k], want, rtol=1e-12, atol=1e-12)


def test_what_no_defined_gradient_flows_into_is_undefined():
    """R2.30: the result of a block is undefined where no gradient of its op is defined."""
    parts = parts_of(lambda a, b: (np.sin(a), np.cos(b)), X, Y)
    _, found = run(parts, [X, Y], [X, None])
    assert found[1] is None
    np.testing.assert_allclose(found[0], X * np.cos(X))


def test_blocks_are_named_after_their_ops_and_meet_in_additions():
    """R2.30"""
    parts = parts_of(lambda a, b: (np.sin(a) * b, a), X, Y)
    blocks = [i for i in parts.reverse.body.instrs if i.op.name == "grad_of"]
    assert [i.attrs["forward"] for i in blocks] == ["mul", "sin"]
    assert parts.reverse.body.instrs[-1].op.name == "autograd_add"


def test_an_op_with_several_results_is_given_zeros_for_undefined_gradients():
    """R2.30"""
    parts = parts_of(lambda a: tuple(np.split(a * a, 2)), X)
    _, found = run(parts, [X], [None, np.ones((2, 3))])
    np.testing.assert_allclose(found[0], 2 * X * np.array([[0.0], [0.0], [1.0], [1.0]]))


def test_one_value_returned_twice_has_both_gradients():
    """R2.28: each of the two outputs has an incoming gradient, which may be undefined."""

    def twice(a):
        y = a * a
        return y, y

    parts = parts_of(twice, X)
    assert parts.input_vjps == (0, 1)
    one, both = (run(parts, [X], g)[1][0] for g in ([Y, None], [Y, Z]))
    np.testing.assert_allclose(one, 2 * X * Y)
    np.testing.assert_allclose(both, 2 * X * (Y + Z))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_halves_of_random_functions_give_what_the_joint_graph_gives(seed):
    """R2.29, R2.30: with branches, loops and writes, whichever gradients are undefined."""
    made = function(seed, bool(seed % 4 > 1))
    f, args = made.compiled(), made.args
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        traced = trace(lambda *a: (f(np, pf, *a), np.tanh(a[0]), a[-1] * 2.0), args)
    inputs = [*args, *traced.captured]
    program = typed(traced.module.main, inputs, known=bool(seed % 2))
    try:
        joint = differentiate(program)
    except pf.TraceError:
        with pytest.raises(pf.TraceError):
            split(program)
        return
    given = seeds(evaluate(Module(program), inputs))
    chosen = [bool(rng.integers(2)) for _ in given]
    zeros = [g if c else np.zeros_like(g) for g, c in zip(given, chosen, strict=True)]
    count = len(program.outputs)
    wanted = evaluate(Module(joint), [*inputs, *zeros])[count:]
    some = [g if c else None for g, c in zip(given, chosen, strict=True)]
    parts = split(program)
    _, found = run(parts, inputs, some)
    floats = [k for k, a in enumerate(inputs) if np.asarray(a).dtype.kind in "fc"]
    for k, want in zip(floats, wanted, strict=True):
        got = 0.0 if found.get(k) is None else found[k]
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
