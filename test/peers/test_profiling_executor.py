"""The claim to re-create torch's profiling executor, call by call beside the original, which fuses on CPUs for that."""

from __future__ import annotations

import linecache

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and says so at each use

_TEXT = "import torch\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return torch.tanh(x + y) * x - 0.5\n"
ROWS = (4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 4, 8, 8, 8)
STRATEGIES = (
    [("STATIC", 2), ("DYNAMIC", 10)],
    [("STATIC", 1), ("DYNAMIC", 1)],
    [("STATIC", 3)],
    [("STATIC", 1)],
    [("DYNAMIC", 1)],
    [],
)


@pytest.fixture
def profiling_executor():
    """torch's executor with its fuser on the CPU; both executors get their settings back."""
    fuses, profiled = torch._C._jit_texpr_fuser_enabled(), pf.get_num_profiled_runs()
    strategy = torch.jit.set_fusion_strategy([])
    on_cpu = torch._C._jit_can_fuse_on_cpu()
    must_use_llvm = torch._C._jit_get_te_must_use_llvm_cpu()
    torch._C._jit_set_texpr_fuser_enabled(True)
    torch._C._jit_override_can_fuse_on_cpu(True)
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    yield
    torch._C._jit_set_te_must_use_llvm_cpu(must_use_llvm)
    torch._C._jit_override_can_fuse_on_cpu(on_cpu)
    torch._C._jit_set_texpr_fuser_enabled(fuses)
    torch._C._jit_set_num_profiled_runs(1)
    torch.jit.set_fusion_strategy(strategy)
    pf.set_num_profiled_runs(profiled)


def _script(name: str):
    """A function of TorchScript of its own: torch keeps one, with its plans, for each function of Python."""
    linecache.cache[name] = len(_TEXT), None, _TEXT.splitlines(keepends=True), name
    names: dict = {"__name__": name}
    exec(compile(_TEXT, name, "exec", dont_inherit=True), names)
    return torch.jit.script(names["f"])


def _of_torch(name: str) -> tuple[str, list[bool]]:
    """For each call F, for fused, or a dot, and whether a fallback served it, as torch's profiler sees it."""
    script, served, missed = _script(name), "", []
    for rows in ROWS:
        x = torch.randn(rows, 3)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            script(x, x)
        counts = {event.key: event.count for event in profile.key_averages()}
        is_fused = any(key.startswith("fused_") for key in counts)
        assert is_fused != ("aten::tanh" in counts)
        served += "F" if is_fused else "."
        missed.append("fallback_function" in counts)
    return served, missed


def _of_ours(name: str, strategy: list) -> tuple[str, list[bool], list[str]]:
    f, served, missed = pf.torch.script(_script(name), background=False, strategy=strategy), "", []
    for rows in ROWS:
        x = torch.randn(rows, 3)
        before = f.state().counters if served else {}
        f(x, x)
        after = f.state().counters
        served += "F" if after["kernel_launches"] > before.get("kernel_launches", 0) else "."
        missed.append(after["guard_misses"] > before.get("guard_misses", 0))
    return served, missed, [s.behavior for s in f.state().specializations]


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_each_call_is_profiled_fused_or_left_as_in_torch(profiling_executor, strategy, runs):
    torch._C._jit_set_num_profiled_runs(runs)
    pf.set_num_profiled_runs(runs)
    torch.jit.set_fusion_strategy(strategy)
    with torch.no_grad():
        theirs, fallbacks = _of_torch(f"<executor of torch {strategy} {runs}>")
        ours, misses, behaviors = _of_ours(f"<executor of ours {strategy} {runs}>", strategy)
    assert ours == theirs
    assert misses == fallbacks
    plans = [kind.lower() for kind, depth in strategy for _ in range(depth)]
    assert behaviors == plans[: len(behaviors)] and ("F" in ours) == bool(behaviors)
