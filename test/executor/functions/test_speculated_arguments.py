"""Device groups, run on the host, that are made for values that callers have given so far (R3.4 to R3.7).

Whatever the values are, results are those of NumPy; a group is made only if a value has not varied.
"""

from __future__ import annotations

import math
import random

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.op import op_named
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.executor.interpret.evaluate import evaluate
from test_late_graphs import KEEP, X, check, expected, load


@pytest.fixture(autouse=True)
def on_host():
    before = pf.set_device_fusion(True, host=True)
    yield
    pf.set_device_fusion(before)


@pytest.fixture
def two_runs():
    before = pf.knobs.exchange("profiled_runs", 2)
    yield
    pf.knobs.profiled_runs = before


def groups(f) -> int:
    return f.ir("optimized").count('"profuse.cuda_group"')


def graph(op: str, *values: tuple[str, str], more: str = "") -> str:
    """An op of ``tanh(x)``, the named attributes of which are arguments of these types, and ``exp`` of the result."""
    parameters = "".join(f", %{name}: {type_}" for name, type_ in values)
    names = ", ".join(f'"{name}"' for name, _ in values)
    return f"""
    func.func @graph(%x: !profuse.tensor{parameters}) -> !profuse.tensor {{
      %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
      %1 = "profuse.late"(%0{"".join(f", %{name}" for name, _ in values)}) {{op = "{op}", names = [{names}]}} :
        (!profuse.tensor{"".join(f", {type_}" for _, type_ in values)}) -> !profuse.tensor
      %2 = "profuse.exp"(%1) : (!profuse.tensor) -> !profuse.tensor
      return %2 : !profuse.tensor
    }}
    """


def test_r3_5_one_value_is_speculated_on(tmp_path):
    """R3.36, R3.38: another value of the run is computed by the fallback."""
    f = load(tmp_path, KEEP)
    for keep in (True, True, True, False, True, False, False, True):
        check(f(X, keep), expected(0, keepdims=keep))
        f.wait()
    assert groups(f) == 1 and "profiled_bool = true" in f.ir("profiled")
    assert "profuse.late" not in f.ir("optimized").split("@fallback_0(%arg0: ")[0]
    counters = f.state().counters
    assert counters["value_misses"] == 3 and counters["guard_hits"] > 3
    for shape in ((6, 10), (16, 32)):
        x = np.ones(shape, np.float32)
        check(f(x, True), expected(0, True, x))
    assert f.state().counters["guard_hits"] == counters["guard_hits"] + 2


def test_r3_5_a_value_that_varies_is_not_speculated_on(tmp_path, two_runs):
    f = load(tmp_path, KEEP)
    for k in range(8):
        check(f(X, bool(k % 2)), expected(0, keepdims=bool(k % 2)))
        f.wait()
    assert "failed = true" in f.ir("profiled") and "profiled_bool" not in f.ir("profiled")
    # What comes before the op and behind it may be grouped; the op is in no group.
    assert "profuse.late" in f.ir("optimized") and "profuse.sum" not in f.ir("optimized")
    assert "profile_value" not in f.ir("optimized") and "bool_xor" not in f.ir("optimized")
    assert any("a value of kind bool was None, differed from run to run" in str(r) for r in f.state().reasons)


CASES = {
    "int_list": (graph("sum", ("axes", "!profuse.ints")), [((1,),), ((0,),), ((0, 1),)], lambda y, axes: y.sum(axes)),
    "int": (graph("sum", ("axes", "i64")), [(1,), (0,), (-1,)], lambda y, axis: y.sum(axis)),
    "two": (
        graph("mean", ("axes", "i64"), ("keepdims", "i1")),
        [(1, True), (1, False), (0, True)],
        lambda y, axis, keep: y.mean(axis, keepdims=keep),
    ),
    "perm": (graph("transpose", ("perm", "!profuse.ints")), [((1, 0),), ((0, 1),)], lambda y, perm: y.transpose(perm)),
    "view": (
        graph("reshape", ("shape", "!profuse.ints")),
        [((4, 2, 4),), ((4, 4, 2),), ((32,),), ((-1, 2, 4),)],
        lambda y, shape: y.reshape(shape),
    ),
    "dtype": (
        graph("cast", ("dtype", "i64")),
        [(11,), (12,), (9,)],
        lambda y, code: y.astype({11: np.float32, 12: np.float64, 9: np.float16}[code]),
    ),
    "mode": (
        graph("gelu", ("approximate", "!profuse.str")),
        [("none",), ("tanh",)],
        lambda y, mode: pf.op("gelu")(y, approximate=mode),
    ),
    "new_axis": (graph("expand_dims", ("axes", "i64")), [(0,), (-1,)], lambda y, axis: np.expand_dims(y, axis)),
    "target": (
        graph("sum_to_size", ("sizes", "!profuse.ints")),
        [((8,),), (None,), ((4, 1),), ((1, 8),)],
        lambda y, sizes: (
            y if sizes is None else y.sum(1, keepdims=True) if sizes == (4, 1) else y.sum(0).reshape(sizes)
        ),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("varies", [False, True])
def test_r3_5_kinds_of_values(tmp_path, two_runs, name, varies):
    """The first of the values is profiled, alone or with the second one; then all of them are given."""
    text, arguments, reference = CASES[name]
    f = load(tmp_path, text)
    order = [0, 1 if varies else 0, 0, 0, *range(len(arguments)), 0]
    for k in order:
        wanted = np.exp(reference(np.tanh(X), *arguments[k]))
        result = f(X, *arguments[k])
        assert result.shape == wanted.shape and result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-2 if wanted.dtype == np.float16 else 1e-5)
        f.wait()
    assert ("failed = true" in f.ir("profiled")) == varies
    made = "profuse.late" not in f.ir("optimized").split("func.func private @fallback")[0]
    assert made != varies
    assert (f.state().counters["value_misses"] > 0) != varies


@pytest.mark.parametrize("varies", [False, True])
def test_r3_5_what_has_failed_stays_so_in_a_later_process(tmp_path, two_runs, varies):
    """A warm start from a file: the observers have recorded what they had when it was saved."""
    path = tmp_path / "saved.pf"
    f = load(tmp_path, KEEP)
    for keep in (True, not varies, True):
        f(X, keep)
        f.wait()
    f.save(str(path))
    g = pf.load(str(path))
    for keep in (True, True, False, True):
        check(g(X, keep), expected(0, keepdims=keep))
        g.wait()
    assert g.state().counters["profiles_restored"] >= 1
    assert ("failed = true" in g.ir("profiled")) == varies
    assert ("profuse.sum" in g.ir("optimized")) != varies


def test_profiles_with_values_are_others(tmp_path):
    """A profile that was recorded without observers of values is none for a graph that has them."""
    path = tmp_path / "saved.pf"
    pf.set_device_fusion(False)
    f = load(tmp_path, KEEP)
    for _ in range(2):
        f(X, True)
        f.wait()
    f.save(str(path))
    pf.set_device_fusion(True, host=True)
    g = pf.load(str(path))
    for keep in (True, True, False):
        check(g(X, keep), expected(0, keepdims=keep))
        g.wait()
    assert g.state().counters["profiles_restored"] == 0 and groups(g) == 1


def test_a11_seeds_and_offsets_are_not_speculated_on(tmp_path):
    """Dropout draws by them, and two calls differ in nothing else."""
    f = load(
        tmp_path,
        """
        func.func @drop(%x: !profuse.tensor, %seed: i64, %offset: i64, %train: i1) -> !profuse.tensor {
          %p = "profuse.constant"() {value = 0.5 : f64} : () -> f64
          %0:2 = "profuse.late"(%x, %seed, %offset, %p, %train) {op = "native_dropout", names = ["p", "train"]} :
            (!profuse.tensor, i64, i64, f64, i1) -> (!profuse.tensor, !profuse.tensor)
          %1 = "profuse.add"(%0#0, %0#0) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
          return %1 : !profuse.tensor
        }
        """,
    )
    x = np.ones((16, 32), np.float32)
    dropout = pf.op("native_dropout")
    for k in range(6):
        train = k != 4
        wanted = 2 * dropout(x, 7, k, p=0.5, train=train)[0]
        np.testing.assert_array_equal(f(x, 7, k, train), wanted)
        f.wait()
    assert f.ir("profiled").count('"profuse.profile_value"') == 1 and "profiled_bool = true" in f.ir("profiled")
    assert groups(f) == 1 and f.state().counters["value_misses"] == 1


# An op and an attribute of it that a call may give -> its type, and values that fit arrays of rank 2.
_GIVEN = {
    ("sum", "axes"): ("i64", (0, 1, -1)),
    ("mean", "keepdims"): ("i1", (True, False)),
    ("sum", "keepdims"): ("i1", (True, False)),
    ("transpose", "perm"): ("!profuse.ints", ((0, 1), (1, 0), None)),
    ("expand_dims", "axes"): ("i64", (0, 1, -1)),
    ("reshape", "shape"): ("!profuse.ints", ((-1,), (2, -1), (-1, 2), (2, 2, -1))),
    ("sum_to_size", "sizes"): ("!profuse.ints", (None, (1, 1), (1,))),
    ("cast", "dtype"): ("i64", (11, 12)),
    ("gelu", "approximate"): ("!profuse.str", ("none", "tanh")),
}


def random_graph(rng: random.Random) -> tuple[str, list[tuple]]:
    """A chain of elementwise and late ops, and for each of its values those that may be given."""
    chosen = [rng.choice(list(_GIVEN)) for _ in range(rng.randrange(1, 4))]
    lines, current, pools, parameters = [], "%x", [], []

    def emit(text: str) -> str:
        lines.append(f"  %{len(lines)} = {text} : ")
        return f"%{len(lines) - 1}"

    for k, (op, name) in enumerate(chosen):
        type_, pool = _GIVEN[op, name]
        for _ in range(rng.randrange(3)):
            unary = rng.choice(["tanh", "sin", "neg"])
            current = emit(f'"profuse.{unary}"({current})')
            lines[-1] += "(!profuse.tensor) -> !profuse.tensor"
        parameters.append(f"%v{k}: {type_}")
        pools.append(pool)
        current = emit(f'"profuse.late"({current}, %v{k}) {{op = "{op}", names = ["{name}"]}}')
        lines[-1] += f"(!profuse.tensor, {type_}) -> !profuse.tensor"
    current = emit(f'"profuse.exp"({current})')
    lines[-1] += "(!profuse.tensor) -> !profuse.tensor"
    body = "\n".join([*lines, f"  return {current} : !profuse.tensor"])
    return f"func.func @g(%x: !profuse.tensor, {', '.join(parameters)}) -> !profuse.tensor {{\n{body}\n}}", pools


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_of_values_that_calls_give(tmp_path, seed):
    """R3.5, R3.36, R3.38: whatever is given, and whichever sizes arrays have, results are those of tier 0."""
    rng = random.Random(seed)
    text, pools = random_graph(rng)
    module = decode_module(parse_module(text, "t"))
    f = load(tmp_path, text)
    usual = [rng.choice(pool) for pool in pools]
    for k in range(14):
        given = [v if rng.random() < 0.7 or k < 3 else rng.choice(pool) for v, pool in zip(usual, pools, strict=True)]
        shape = (4, 8) if k < 3 or rng.random() < 0.4 else rng.choice([(4, 8), (6, 2), (2, 16), (1, 8), (4, 1), (8, 6)])
        x = np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)
        try:
            (wanted,) = evaluate(module, [x, *given])
        except pf.ProfuseError as error:
            with pytest.raises(type(error)):
                f(x, *given)
            continue
        result = f(x, *given)
        assert result.shape == np.shape(wanted) and result.dtype == wanted.dtype, (text, given, shape)
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=1e-6)
        f.wait()


BACKWARD = """
func.func @g(%g: !profuse.tensor, %x: !profuse.tensor, %w: !profuse.tensor, %shape: !profuse.ints,
             %mask: !profuse.bools) -> !profuse.tensor {
  %given = "profuse.constant"() {value = 3 : i64} : () -> i64
  %0:3 = "profuse.native_layer_norm"(%x) {shape = array<i64: 8>} :
    (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1:3 = "profuse.late"(%g, %x, %0#1, %0#2, %w, %w, %shape, %mask, %given)
    {op = "native_layer_norm_backward", names = ["shape", "mask", "given"]} :
    (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor,
     !profuse.ints, !profuse.bools, i64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %2 = "profuse.tanh"(%1#0) : (!profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}
"""


def test_r3_5_masks_of_backward_ops(tmp_path):
    """Two masks under which the returned gradient is there; of both the results are those of the op."""
    op = op_named("native_layer_norm_backward")
    f = load(tmp_path, BACKWARD)
    w = np.linspace(1, 2, 8, dtype=np.float32)
    _, mean, rstd = pf.op("native_layer_norm")(X, shape=(8,))
    for k in range(6):
        mask = (True, True, True) if k != 4 else (True, False, True)
        attrs = op.full_attrs({"shape": (8,), "mask": mask, "given": 3})
        gradient, *_ = op.evaluate(attrs, X, X, mean, rstd, w, w)
        np.testing.assert_allclose(f(X, X, w, (8,), mask), np.tanh(gradient), rtol=1e-4, atol=1e-5)
        f.wait()
    assert "profiled_bool_list = array<i1: true, true, true>" in f.ir("profiled")
    assert groups(f) == 1 and f.state().counters["value_misses"] == 1
