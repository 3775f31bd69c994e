"""The fuser of device groups as a user meets it: on the host (D6) and on the emulated device."""

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.executor.plans.device_groups import FAILED
from profuse.executor.settings import device_fusion
from support import host

pytestmark = pytest.mark.compiles  # guards, kernels and counts are those of real compiles

COUNTED = ("compiles", "kernels_compiled", "guard_hits", "guard_misses", "value_misses", "kernel_launches")


class Host:
    """Calls with NumPy's arrays."""

    def array(self, value):
        return value

    def back(self, value):
        return np.asarray(value)


class Device:
    """Calls with arrays of an emulated device."""

    def array(self, value):
        return xp.array(value) if isinstance(value, np.ndarray) else value

    def back(self, value):
        return value.get() if hasattr(value, "get") else np.asarray(value)


@pytest.fixture(params=["host", "device"])
def where(request, monkeypatch):
    """A place with the fuser on, where nothing has failed yet."""
    monkeypatch.setattr(device_fusion, "_run_time", device_fusion._RunTime())
    FAILED.clear()
    if request.param == "device":
        request.getfixturevalue("gpu")
        with pf.knobs.override(device_fusion="auto"):  # there is a device
            yield Device()
    else:
        with pf.knobs.override(device_fusion="host"):
            yield Host()
    FAILED.clear()


def called(f, fn, place, *args, rtol=1e-5):
    """Call a function, and compare with NumPy."""
    out = f(*map(place.array, args))
    expected = fn(*args)
    several = isinstance(expected, tuple)
    for one, other in zip(out if several else [out], expected if several else [expected], strict=True):
        one = place.back(one)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def counts(f):
    counters = f.state().counters
    return {name: counters[name] for name in COUNTED if counters[name]}


def normed(x, w, b):
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return np.maximum((x - mean) / np.sqrt(var + 1e-5) * w + b, 0)


def test_r3_42_one_compile_serves_all_sizes_of_a_rank(where):
    """R3.35, R3.42: what takes the general fuser three compiles and 27 misses."""
    f = pf.jit(normed)
    for n, m in ((4, 8), (4, 8), (5, 9), (3, 16), (16, 3), (7, 7)):
        called(f, normed, where, host(n, m), host(m), host(m))
    assert counts(f) == {"compiles": 1, "kernels_compiled": 1, "guard_hits": 5, "kernel_launches": 5}
    assert '"profuse.cuda_group"' in f.ir("optimized")


def test_the_general_fuser_takes_more_compiles_for_the_same_calls(where):
    with pf.knobs.override(device_fusion_off=True):
        f = pf.jit(normed)
        for n, m in ((4, 8), (4, 8), (5, 9), (5, 9), (3, 16), (3, 16)):
            called(f, normed, where, host(n, m), host(m), host(m))
        assert f.state().counters["compiles"] == 3
        assert '"profuse.fusion_group"' in f.ir("optimized")


MISSES = {
    "a size is 1": (lambda: (host(1, 8), host(8), host(8)), "1, specialised for 4"),
    "nothing in it": (lambda: (host(4, 0), host(0), host(0)), "0, specialised for 8"),
    "transposed": (lambda: (host(8, 4).T, host(8), host(8)), "in another order"),
    "not contiguous": (lambda: (host(4, 16)[:, ::2], host(8), host(8)), "contiguous"),
    "another dtype": (lambda: (host(4, 8, dtype=np.float64), host(8), host(8)), ""),
}


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cause", MISSES)
def test_r3_42_misses_by_cause(where, cause):
    """R3.42: what the guard asks for besides sizes; the fallback profiles and gets a group of its own."""
    args, words = MISSES[cause]
    f = pf.jit(normed)
    for _ in range(2):
        called(f, normed, where, host(4, 8), host(8), host(8))
    given = args()
    if isinstance(where, Device) and not given[0].flags.c_contiguous:
        pytest.skip("arrays of the emulated library are contiguous")
    called(f, normed, where, *given)
    if cause != "another dtype":
        assert words in f.explain()
    for _ in range(2):
        called(f, normed, where, *given)
    counters = f.state().counters
    if cause == "another dtype":  # a graph of its own
        assert counters["guard_misses"] == 0 and counters["compiles"] == 2
    else:
        assert counters["guard_misses"] >= 3 and counters["compiles"] == 2
    before = counters["guard_misses"]
    called(f, normed, where, host(5, 6), host(6), host(6))
    assert f.state().counters["guard_misses"] == before


def test_a6_sizes_that_do_not_fit_raise_what_numpy_raises(where):
    """A6: no kernel reads past the end of an operand."""
    f = pf.jit(lambda x, y: np.tanh(x + y) * 2)
    for _ in range(2):
        f(where.array(host(8, 8)), where.array(host(8, 8)))
    called(f, lambda x, y: np.tanh(x + y) * 2, where, host(4, 6), host(4, 6))
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        f(where.array(host(4, 8)), where.array(host(5, 8)))
    assert f.state().counters["guard_misses"] == 1


def test_a6_convolutions_serve_images_of_all_sizes(where):
    """A6: of all sizes, those of the filters alone stay what they were."""

    def stem(x, w, g, b):
        y = pf.nn.conv2d(x, w, padding=1)
        return np.maximum(pf.nn.batch_norm(y, None, None, g, b, training=True), 0)

    f = pf.jit(stem)
    for n, channels, side in ((2, 3, 6), (2, 3, 6), (3, 3, 5), (2, 4, 7)):
        called(f, stem, where, host(n, channels, side, side), host(5, channels, 3, 3), host(5), host(5), rtol=1e-3)
    assert (counts(f)["compiles"], counts(f)["guard_hits"]) == (1, 3)


def test_r3_22_independent_steps_of_a_block_are_one_group(where):
    def adam(p, g, m, v):
        m = m * 0.9 + g * 0.1
        v = v * 0.99 + g * g * 0.01
        return p - m / (np.sqrt(v) + 1e-8) * 0.1, m, v

    f = pf.jit(adam)
    for n in (5, 5, 9):
        called(f, adam, where, host(n), host(n), host(n), abs(host(n)), rtol=1e-4)
    assert counts(f) == {"compiles": 1, "kernels_compiled": 1, "guard_hits": 2, "kernel_launches": 2}


def test_r3_49_equal_groups_share_a_kernel(where):
    """R3.49: two groups, one compile."""

    def twice(x, w):
        h = np.sort(np.tanh(x) * 2 + w, axis=0)  # sorting is in no group
        return np.sort(np.tanh(h) * 2 + w, axis=0)

    f = pf.jit(twice)
    for n in (4, 4, 6):
        called(f, twice, where, host(n, 3), host(3))
    assert counts(f) == {"compiles": 1, "kernels_compiled": 1, "guard_hits": 4, "kernel_launches": 4}
    text = f.ir("optimized")
    assert text.count('"profuse.cuda_group"') == 2 and text.count("callee = @cuda_group_0") == 2


def test_r3_20_groups_of_one_op_only_if_asked_for(where):
    """R3.3, R3.20; what is in no device group goes to the general fuser."""
    for single in (False, True):
        with pf.knobs.override(device_fusion_single=single):
            f = pf.jit(lambda x: np.tanh(x))
            for n in (4, 4, 6):
                called(f, np.tanh, where, host(n))
            assert ('"profuse.cuda_group"' in f.ir("optimized")) is single
            assert ('"profuse.fusion_group"' in f.ir("optimized")) is not single


def test_r3_21_horizontal_fusion_can_be_switched_off(where):
    def both(x):
        return np.tanh(x) * 2, np.exp(x) + 1

    for horizontal, groups in ((True, 1), (False, 2)):
        with pf.knobs.override(device_fusion_horizontal=horizontal):
            f = pf.jit(both)
            for n in (4, 4, 6):
                called(f, both, where, host(n))
            assert f.ir("optimized").count('"profuse.cuda_group"') == groups


def test_branches_and_rounds_have_groups_of_their_own(where):
    def f_nested(x):
        y = np.exp(x) - 1 if x.sum() > 0 else np.tanh(x) * 2
        return y * 3 + 1

    f = pf.jit(f_nested)
    for sign in (1, -1, 1, -1):
        for n in (4, 4, 6):
            called(f, f_nested, where, sign * abs(host(n)))
    assert f.ir("optimized").count('"profuse.cuda_group"') >= 2


LATE = {
    "keepdims": (
        '"profuse.late"(%a, %axes, %k) {op = "sum", names = ["axes", "keepdims"]} : (TENSOR, !profuse.ints, i1)',
        "i1",
        lambda x, k: np.exp(np.tanh(x).sum(axis=1, keepdims=k)),
        (True, False),
    ),
    "axis": (
        '"profuse.late"(%a, %k) {op = "sum", names = ["axes"]} : (TENSOR, i64)',
        "i64",
        lambda x, k: np.exp(np.tanh(x).sum(axis=k)),
        (1, 0),
    ),
}
GRAPH = """
func.func @f(%x: TENSOR, %k: KIND) -> TENSOR {
  %axes = "profuse.constant"() {value = array<i64: 1>} : () -> !profuse.ints
  %a = "profuse.tanh"(%x) : (TENSOR) -> TENSOR
  %s = LATE -> TENSOR
  %e = "profuse.exp"(%s) : (TENSOR) -> TENSOR
  return %e : TENSOR
}
"""


@pytest.mark.parametrize("name", LATE)
def test_r3_36_a_value_that_changes_runs_the_fallback_with_the_new_one(where, tmp_path, name):
    """R3.5, R3.36, R3.37, R3.38, R3.39: misses by a value; the fallback speculates again, one level deeper (R1.42)."""
    op, kind, fn, (first, then) = LATE[name]
    path = tmp_path / "late.mlir"
    path.write_text(GRAPH.replace("LATE", op).replace("KIND", kind).replace("TENSOR", "!profuse.tensor"))
    f = pf.load(str(path), background=False)
    for n in (4, 4, 5):
        called(f, fn, where, host(n, 8), first)
    assert counts(f) == {"compiles": 1, "kernels_compiled": 1, "guard_hits": 2, "kernel_launches": 2}
    (call,) = [line for line in f.ir("optimized").splitlines() if '"profuse.cuda_group"' in line]
    assert "i1" not in call and "i64" not in call  # the group has no operand for the value
    for n in (4, 4, 6):
        called(f, fn, where, host(n, 8), then)
    counted = counts(f)
    assert (counted["value_misses"], counted["guard_misses"]) == (3, 3)
    assert (counted["compiles"], counted["guard_hits"]) == (2, 4)
    assert "The latest miss had the types that were profiled, but a" in f.explain()
    called(f, fn, where, host(7, 8), first)
    assert counts(f)["value_misses"] == 3


def test_r3_40_views_are_guarded_by_how_they_follow(where, tmp_path):
    """R3.40, R3.41: (2, 6) -> (2, 2, 3) serves (4, 6) -> (4, 2, 3), and not (4, 3, 2)."""
    path = tmp_path / "view.mlir"
    path.write_text(
        """
func.func @f(%x: T, %y: T) -> T {
  %a = "profuse.tanh"(%x) : (T) -> T
  %s = "profuse.sizes"(%y) : (T) -> !profuse.ints
  %v = "profuse.late"(%a, %s) {op = "reshape", names = ["shape"]} : (T, !profuse.ints) -> T
  %e = "profuse.mul"(%v, %v) : (T, T) -> T
  return %e : T
}
""".replace(" T", " !profuse.tensor").replace("(T", "(!profuse.tensor")
    )

    def fn(x, y):
        return np.tanh(x).reshape(y.shape) ** 2

    f = pf.load(str(path), background=False)
    for x, y in (((2, 6), (2, 2, 3)), ((2, 6), (2, 2, 3)), ((4, 6), (4, 2, 3))):
        called(f, fn, where, host(*x), host(*y))
    assert counts(f)["guard_hits"] == 2
    called(f, fn, where, host(4, 6), host(4, 3, 2))
    assert counts(f)["value_misses"] == 1
    assert "sizes of a view do not follow" in f.explain()


def test_r1_42_fallbacks_end_at_depth_0(where):
    f = pf.jit(normed, strategy=[("static", 1)])
    for args in ((host(4, 8), host(8), host(8)),) * 2 + ((host(1, 8), host(8), host(8)),) * 4:
        called(f, normed, where, *args)
    assert f.state().counters["compiles"] == 1
    assert [e.depth for e in executor_of(f).chain()] == [1, 0]


def test_a_later_process_starts_from_disk(where, tmp_path):
    """The profile and the kernel of a group are stored, and found by the next function of that name."""
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path)):
        f = pf.jit(normed)
        for _ in range(2):
            called(f, normed, where, host(4, 8), host(8), host(8))
        g = pf.jit(normed)
        called(g, normed, where, host(5, 6), host(6), host(6))
        state = g.state().counters
    assert (state["profiled_runs"], state["disk_hits"], state["kernel_launches"]) == (0, 1, 1)


def test_r3_2_where_it_is_off_nothing_of_it_runs(where):
    """R3.1, R3.2: the trace of passes names none of it; on, it stands behind the general fuser."""
    for off in (True, False):
        with pf.knobs.override(device_fusion_off=off):
            f = pf.jit(normed)
            for _ in range(2):
                called(f, normed, where, host(4, 8), host(8), host(8))
            trace = executor_of(f).result.trace
            assert ("partition-device-groups" in trace) is not off
            if not off:
                assert trace.index("insert-guards") < trace.index("extract-constants")


def test_users_passes_run_after_it(where):
    """R1.36: in the order of the place after fusion."""
    with pf.register_pass_after_fusion("cse"):
        f = pf.jit(normed)
        for _ in range(2):
            called(f, normed, where, host(4, 8), host(8), host(8))
        trace = executor_of(f).result.trace
    assert trace.index("dedupe-device-groups") < trace.index("cse")


def test_the_spec_keyed_executor_has_its_own_fuser(where):
    with pf.knobs.override(profiling_mode=False):
        f = pf.jit(normed)
        for n in (4, 4, 6):
            called(f, normed, where, host(n, 8), host(8), host(8))
    assert "cuda_group" not in f.ir("optimized")


# --- failures (R3.50) ---------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch):
    """A code generator that fails."""
    from profuse.lowering import placement

    def compile_for(*args, **options):
        raise RuntimeError("the code generator is broken")

    with monkeypatch.context() as patch:
        patch.setattr(placement, "compile_for", compile_for)
        yield patch


def failures(since):
    return [e for e in pf.events()[since:] if e.kind == "device-group-failed"]


def test_r3_50_a_group_that_fails_is_interpreted_for_good(where, broken):
    """R3.50: one warning for its id; functions with the same body have no kernel either, even if they could."""
    since = len(pf.events())
    f = pf.jit(normed)
    for n in (4, 4, 6):
        called(f, normed, where, host(n, 8), host(8), host(8))
    assert f.state().counters["kernel_launches"] == 0
    (event,) = failures(since)
    assert "the code generator is broken" in event.reason
    broken.undo()
    g = pf.jit(lambda x, w, b: normed(x, w, b))
    for n in (4, 4, 6):
        called(g, normed, where, host(n, 8), host(8), host(8))
    assert g.state().counters["kernel_launches"] == 0
    assert len(failures(since)) == 1
    assert any("a group with the same kernel has failed" in str(r) for r in g.state().reasons)
    h = pf.jit(lambda x, w, b: normed(x, w, b) * 2)
    for n in (4, 4, 6):
        called(h, lambda x, w, b: normed(x, w, b) * 2, where, host(n, 8), host(8), host(8))
    assert h.state().counters["kernel_launches"] == 2


@pytest.mark.usefixtures("broken")
def test_r3_50_forbidden_the_error_propagates(where):
    with pf.knobs.override(device_fallback=False):
        f = pf.jit(normed)
        called(f, normed, where, host(4, 8), host(8), host(8))
        with pytest.raises(pf.LoweringError, match="the code generator is broken"):
            f(*map(where.array, (host(4, 8), host(8), host(8))))
    called(f, normed, where, host(4, 8), host(8), host(8))


@pytest.mark.parametrize("allowed", [True, False])
def test_r3_50_a_kernel_that_raises_runs_no_more(where, monkeypatch, allowed):
    from profuse.executor.plans.processor import Processor

    runs = []

    def runner(self, artifact, function, counters, interpreted):
        def run(*args):
            runs.append(1)
            raise RuntimeError("no such kernel")

        return run

    monkeypatch.setattr(Processor, "runner", runner)
    since = len(pf.events())
    with pf.knobs.override(device_fallback=allowed):
        f = pf.jit(normed)
        called(f, normed, where, host(4, 8), host(8), host(8))
        if not allowed:
            with pytest.raises(RuntimeError, match="no such kernel"):
                f(*map(where.array, (host(4, 8), host(8), host(8))))
            return
        for n in (4, 5, 6):
            called(f, normed, where, host(n, 8), host(8), host(8))
    assert len(runs) == 1
    (event,) = failures(since)
    assert event.reason == "its kernel raised RuntimeError: no such kernel"


@pytest.mark.parametrize("donated", [True, False])
def test_r3_50_what_a_kernel_may_have_written_over_is_not_computed_with(monkeypatch, donated):
    """A kernel that fails half way leaves operands that the ops would take for those of the call."""
    from profuse.executor.plans.processor import Processor

    def scaled(x, w, b):
        return np.tanh(x * w) + b

    def runner(self, artifact, function, counters, interpreted):
        def run(x, w, b, destination=None):
            if destination is not None:
                destination[:2] = 7
            raise RuntimeError("no such kernel")

        run.kernel = artifact, None  # what the kernel writes to is planned by its ABI
        return run

    monkeypatch.setattr(Processor, "runner", runner)
    FAILED.clear()
    since = len(pf.events())
    with pf.knobs.override(device_fusion="host", native_dispatch=False):
        f = pf.jit(scaled, donate="x" if donated else None, background=False)
        f(host(4, 8), host(8), host(8))
        if donated:
            with pytest.raises(RuntimeError, match="no such kernel"):
                f(host(4, 8).copy(), host(8), host(8))  # memory of its own
        for n in (4, 6):
            args = host(n, 8).copy(), host(8), host(8)
            expected = scaled(*args)
            np.testing.assert_allclose(f(*args), expected, rtol=1e-5)
    (event,) = failures(since)
    assert ("may have written over operands" in event.reason) is donated
    FAILED.clear()


def test_r3_50_fused_and_unfused_results_can_be_compared(where):
    seen = []
    with pf.on_fused_result(lambda fused, unfused: seen.append((fused, unfused))):
        f = pf.jit(normed)
        for n in (4, 4, 6):
            called(f, normed, where, host(n, 8), host(8), host(8))
    assert len(seen) == 2
    for ((fused,), (unfused,)), n in zip(seen, (4, 6), strict=True):
        assert fused.shape == unfused.shape == (n, 8)


def test_errors_of_the_ops_are_no_failures_of_the_kernel(where):
    def picked(x, k):
        return np.tanh(x)[k] * 2

    f = pf.jit(picked)
    for k in (1, 2):
        called(f, picked, where, host(4), k)
    with pytest.raises(IndexError):
        f(where.array(host(4)), 9)
    called(f, picked, where, host(4), 1)
