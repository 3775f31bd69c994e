"""Guards of device code at run time: in plans, and what is said of their misses."""

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from profuse.dialect.guards.mismatch import check_types, mismatches
from profuse.dialect.ir.device import DeviceTensor
from profuse.dialect.ir.types import TensorType, type_of
from profuse.executor.plans.plan import build_plan
from profuse.executor.plans.processor import Processor
from profuse.executor.settings.events import Counters
from support import counts, host

TYPE = 'tensor<SIZESxf32, {device = "cpu", strides = "contiguous"}>'
GUARDED = """
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [EXPECTED]} : (!profuse.tensor) -> (KNOWN, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    %2 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %2 = "profuse.neg"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
""".replace("EXPECTED", TYPE.replace("SIZES", "4x8")).replace("KNOWN", TYPE.replace("SIZES", "?x?"))


def test_relaxed_guards_are_dispatched_by_plans():
    """R3.42"""
    from profuse.dialect.mlir.decode import decode_module
    from profuse.dialect.mlir.parse import parse_module

    module = decode_module(parse_module(GUARDED))
    counters = Counters()
    plan = build_plan(module, {}, {}, counters)
    for value, hit in ((host(4, 8), 1), (host(16, 32), 1), (host(1, 8), 0), (host(8, 4).T, 0)):
        before = counters.guard_hits
        (out,) = plan.run([value])
        assert counters.guard_hits - before == hit
        np.testing.assert_allclose(out, np.exp(value) if hit else -value, rtol=1e-6)
    (guard,) = plan.guards
    assert (guard.behavior, guard.hits, guard.misses) == ("relaxed", 2, 2)
    (why,) = mismatches(guard.types, guard.last_miss, ["x"], relaxed=True)
    assert why.text == "x: strides (1, 4) are in another order, specialised for (8, 1)"


def test_a_loaded_graph_with_a_relaxed_guard(tmp_path):
    path = tmp_path / "guarded.mlir"
    path.write_text(GUARDED)
    f = pf.load(str(path))
    for value in (host(4, 8), host(4, 8), host(16, 32), host(1, 8)):
        expected = np.exp(value) if len(value) > 1 else -value
        np.testing.assert_allclose(f(value), expected, rtol=1e-6)


@pytest.fixture
def array(device):
    """A device array, as it is inside of a call."""
    from profuse.executor.cuda.exchange.arrays import as_leaf

    given = xp.array(host(4, 8))
    yield as_leaf(given)


def test_types_of_device_arrays(array):
    assert isinstance(array, DeviceTensor)
    assert str(type_of(array)).startswith('tensor<4x8xf32, {defined = true, device = "cuda:0"')
    assert type_of(array).strides == "contiguous"


def test_type_checks_compare_devices(array):
    """R1.39"""
    here = type_of(array)
    assert check_types([here], [array])
    assert not check_types([here], [host(4, 8)])
    on_host = type_of(host(4, 8))
    assert not check_types([on_host], [array])
    (why,) = mismatches([on_host], [here])
    assert (why.kind, why.text) == ("device", "operand 0: is on cuda:0, specialised for cpu")


@pytest.mark.parametrize("strides", ["contiguous", (8, 1), (None, 1), None])
@pytest.mark.parametrize("home", ["cpu", "cuda:0"])
def test_quick_checks_of_plans_agree_with_types(array, strides, home):
    """The plan's own comparison is a shortcut: never true where `check_types` is false."""
    from profuse.dialect.mlir.decode import decode_module
    from profuse.dialect.mlir.parse import parse_module

    text = GUARDED.replace("cuda_guard", "type_check").replace("?x?x", "4x8x")
    module = decode_module(parse_module(text))
    (check,) = [i for i in module.main.body.walk() if i.op.name == "type_check"]
    expected = TensorType(type_of(array).dtype, (4, 8), strides, home, False, True)
    check.attrs["types"] = (expected,)
    nothing = lambda instr, evaluate: lambda *args: None  # noqa: E731
    plan = build_plan(module, {}, {}, Counters(), adapt=nothing)
    for value in (array, host(4, 8), host(8, 4).T):
        before = plan.guards[0].hits
        plan.run([value])
        assert plan.guards[0].hits - before == int(check_types([expected], [value]))


def test_a_miss_says_which_device(device):
    device.devices = 2
    f = pf.jit(lambda x, y: (x * 2 + 1, y * 2 + 1))
    x = host(4, 8)
    for _ in range(2):
        f(xp.array(x), xp.array(x))
    assert "f32[4, 8] contiguous on cuda:0" in f.explain()


def test_a_size_that_changes_re_specialises_on_the_device(device):
    f = pf.jit(lambda x: np.exp(x) * 2, strategy=[("static", 1), ("dynamic", 1)])
    for rows in (4, 4, 5, 5, 6, 7):
        x = host(rows, 8)
        np.testing.assert_allclose(f(xp.array(x)).get(), np.exp(x) * 2, rtol=1e-5)
    assert counts(f, "compiles", "profiled_runs", "kernel_launches") == [2, 2, 4]
    behaviors = [s.behavior for s in f.state().specializations]
    assert behaviors == ["static", "dynamic"]
    assert all("cuda:0" in s.guard for s in f.state().specializations)


def test_processors_are_values():
    assert Processor("cuda:0") == Processor("cuda:0")
    assert hash(Processor()) == hash(Processor("cpu"))
    assert Processor().adapter(None) is None


def test_strict_fusion_counts_relaxed_guards():
    """R1.46: two guarded ifs are one too many, whatever guards them."""
    from profuse.dialect.mlir.decode import decode_module
    from profuse.dialect.mlir.parse import parse_module
    from profuse.executor.settings.strict import check_strict

    module = decode_module(parse_module(GUARDED))
    (guard,) = [i for i in module.main.body.walk() if i.op.name == "cuda_guard"]
    module.main.body.instrs.append(guard)
    with pytest.raises(pf.StrictFusionError, match="has 2 guarded groups"):
        check_strict(module, {}, "f")
