"""TorchScript against torch.jit: functions, archives, state, exceptions, gradients, random programs."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Optional

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and says so at each use

import script_cases  # noqa: E402 - these import torch
import script_conformance  # noqa: E402
from script_conformance import FILE, check_same  # noqa: E402

CASES = script_cases.cases()
QUICK = {"counted", "appended", "optional", "recurrent", "newton", "Stepped", "returned_in_loop", "scalar_in_place"}
PROGRAMS = range(2000) if EVERY_CASE else range(0, 60, 15)


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def scripted(function):
    script = torch.jit.script(function)
    return script.eval() if isinstance(script, torch.jit.ScriptModule) else script


@pytest.mark.parametrize(
    ("function", "args"),
    [
        pytest.param(f, args, id=f"{k}-{_name(f)}")
        for k, (f, args) in enumerate(CASES)
        if EVERY_CASE or _name(f) in QUICK
    ],
)
def test_functions_are_compiled_plans_with_the_results_of_torch(function, args):
    script = scripted(function)
    f = pf.torch.script(script, background=False)
    with torch.no_grad():
        expected = script(*args)
        for _ in range(3):
            check_same(f(*args), expected)
    state = f.state()
    assert (state.tier, state.counters["python_calls"]) == ("optimized", 0)
    assert state.counters["kernel_launches"] > 0


def test_archives_are_told_by_their_content_and_keep_state(tmp_path):
    path = tmp_path / "model.of.mine"
    torch.jit.script(script_cases.Counting().eval()).save(str(path))
    f, module = pf.load(path, background=False), torch.jit.load(str(path))
    with torch.no_grad():
        for k in range(5):
            x = torch.full((3,), 0.1 * k)
            check_same(f(x), module(x))
            check_same(f.module.hidden, module.hidden)
            check_same(f.module.total, module.total)
            assert f.module.calls == module.calls
        f.reset(), module.reset()
        assert f.module.calls == 0 and not f.module.total.any()
        check_same(f(x), module(x))
    assert f.state().tier == "optimized" and f.reset.state().counters["calls"] == 1
    with pytest.raises(pf.TraceError, match="changes hidden, calls, total of its module"):
        pf.jit(lambda x: f(x), unsupported="raise")(np.zeros(3, np.float32))
    with pytest.raises(AttributeError, match="no attribute 'rest'"):
        f.rest()


def test_other_zip_files_are_refused(tmp_path):
    torch.save({"a": 1}, tmp_path / "pickles.pt")
    with pytest.raises(pf.FileError, match=r"no archive of TorchScript(.|\n)*torch.save writes pickles"):
        pf.load(tmp_path / "pickles.pt")
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("a/b", "text")
    with pytest.raises(pf.FileError, match="no archive of TorchScript"):
        pf.load(tmp_path / "other")


def test_exceptions_of_models_void_runs():
    f = pf.torch.script(torch.jit.script(script_cases.raising), background=False)
    for _ in range(3):
        check_same(f(torch.ones(2), 2), torch.full((2,), 5.0))
    assert f.state().tier == "optimized"
    with pytest.raises(
        pf.ModelError, match=r"script_cases.py:\d+: .* raises ValueError: the sum is too large in round 2"
    ):
        f(torch.ones(9), 2)
    check_same(f(torch.ones(2), 2), torch.full((2,), 5.0))


def test_what_a_module_holds_is_read_at_each_call():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 2)).eval()
    script = torch.jit.script(module)
    f, x = pf.torch.script(script, background=False), torch.ones(4, 3)
    with torch.no_grad():
        check_same(f(x), script(x))
        script[0].weight.mul_(2.0)  # shared memory
        check_same(f(x), script(x))
        script.double()  # other memory
        check_same(f(x.double()), script(x.double()))
        f.module.train()  # another graph, whose numbers are ours
        assert not torch.equal(f(x.double()), f(x.double()))
        f.module.eval()
        check_same(f(x.double()), script(x.double()))


def test_what_is_computed_of_parameters_alone_follows_them():
    """Of buffers and parameters that are written between calls: sums of them, indices, branches, numbers."""

    class Tables(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 3)
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("limit", torch.tensor(2.0))
            self.register_buffer("places", torch.tensor([0, 2, 1]))

        def forward(self, ids):
            x = self.embedding(ids) + (self.weight * 2).sum()
            if bool(self.limit > 1.0):
                x = x * 2
            return x[:, self.places] + float(self.limit) + self.weight[int(self.places[0])]

    script = torch.jit.script(Tables().eval())
    f, ids = pf.torch.script(script, background=False), torch.tensor([1, 4, 1])
    changes = (
        lambda: None,
        lambda: script.weight.mul_(3),
        lambda: script.limit.fill_(0.5),
        lambda: script.places.copy_(torch.tensor([2, 2, 0])),
        lambda: script.embedding.weight.mul_(-1),
    )
    with torch.no_grad():
        for change in changes:
            change()
            for _ in range(3):
                check_same(f(ids), script(ids))
    state = f.state()
    assert (state.tier, state.counters["traces"], state.counters["python_calls"]) == ("optimized", 1, 0)


def layer(y, mask: Optional[torch.Tensor], causal: bool):  # noqa: UP045
    if causal:
        mask = None
    if mask is None:
        y = y * 2 if causal else y
    else:
        y = y + mask
    return torch.tanh(y)


def attended(x, mask: Optional[torch.Tensor], other: Optional[torch.Tensor] = None):  # noqa: UP045
    """Contents of a mask decide whether there is one, as in `torch.nn.TransformerEncoder`."""
    causal = False
    if mask is not None:
        causal = bool((mask == torch.triu(torch.ones_like(mask), 1)).all())
    if other is not None:
        causal = False
    y = layer(layer(layer(layer(layer(x, mask, causal), mask, causal), mask, causal), mask, causal), mask, causal)
    for _ in range(3):
        part = None if causal else mask
        if part is not None:
            y = y + part
    return y


def longer(x, n: int):
    y = x[:, :1]
    for _ in range(n):
        y = torch.cat([y, (x * y.sum(1, keepdim=True)).sum(1, keepdim=True)], 1)
        places = torch.zeros([y.size(0), 1], dtype=torch.long).expand(-1, y.size(1))
        if bool(y.gather(1, places).sum() > 100.0):
            break
    return y


def test_what_follows_a_branch_is_recorded_for_each_way_where_these_have_no_value_in_common():
    script = torch.jit.script(attended)
    f, x = pf.torch.script(script, background=False), torch.randn(3, 3)
    causal = torch.triu(torch.ones(3, 3), 1)
    for _ in range(3):
        for args in ((x, causal), (x, causal * 2), (x, None), (x, causal, x)):
            check_same(f(*args), script(*args))
    assert f.state().counters["python_calls"] == 0


def test_arrays_grow_in_loops_that_contents_end():
    script = torch.jit.script(longer)
    f = pf.torch.script(script, background=False)
    for scale in (0.5, 0.5, 0.5, 3.0, 9.0):
        x = torch.full((2, 3), scale)
        check_same(f(x, 5), script(x, 5))


def test_running_statistics_are_those_of_torch():
    scripts = [torch.jit.script(torch.nn.Sequential(torch.nn.BatchNorm1d(3))) for _ in range(2)]
    f, x = pf.torch.script(scripts[0], background=False), torch.randn(5, 3)
    with torch.no_grad():
        for k in range(4):
            check_same(f(x * k), scripts[1](x * k))
    for name, buffer in scripts[1].named_buffers():
        check_same(dict(scripts[0].named_buffers())[name], buffer)
    assert f.state().tier == "optimized"


def test_results_are_of_the_kind_of_the_arguments():
    f = pf.torch.script(torch.jit.script(script_cases.chunks), background=False)
    x = np.ones((4, 8), np.float32)
    assert all(type(part) is np.ndarray for part in f(x, x))
    assert all(type(part) is torch.Tensor for part in f(torch.ones(4, 8), x))
    with pytest.raises(pf.GradientError, match="requires gradients"):
        f(torch.ones(4, 8, requires_grad=True), x)
    with pytest.raises(pf.ArgumentError, match="h is to be a tensor, and is of type int"):
        f(x, 1)
    with pytest.raises(pf.ArgumentError, match="chunks needs an argument h"):
        f(x)
    with pytest.raises(pf.ArgumentError, match="is no module or function of TorchScript"):
        pf.torch.script(torch.nn.Linear(2, 2))


def test_sizes_are_specialised_by_the_strategy_of_torch():
    """Two sizes get plans of their own, and one plan all others, as torch's profiling executor has it by default."""
    strategy = torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])
    torch.jit.set_fusion_strategy(strategy)
    f = pf.torch.script(torch.jit.script(script_cases.elementwise), background=False, strategy=strategy)
    for rows in (4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7):
        x = torch.randn(rows, 3)
        check_same(f(x, x), script_cases.elementwise(x, x))
    state = f.state()
    assert [s.behavior for s in state.specializations] == ["static", "static", "dynamic"]
    assert (state.counters["traces"], state.counters["compiles"]) == (1, 3)


def test_gradients_are_those_of_torch():
    torch.manual_seed(0)
    script = torch.jit.script(script_cases.Stepped())
    f = pf.torch.script(script, background=False)
    x, y = torch.randn(5, 8), torch.randn(5, 8)
    ((script(x, 2) - y) ** 2).mean().backward()

    def loss(parameters, x, y):
        return np.mean((f.functional_call(parameters, x, 2) - y) ** 2)

    step = pf.jit(pf.value_and_grad(loss), background=False)
    for _ in range(3):
        _, gradients = step(f.tensors(), x.numpy(), y.numpy())
    assert set(gradients) == {name for name, _ in script.named_parameters()}
    for name, parameter in script.named_parameters():
        np.testing.assert_allclose(gradients[name], parameter.grad.numpy(), atol=1e-6)
    assert step.state().tier == "optimized"


@pytest.mark.parametrize("seed", PROGRAMS)
def test_random_programs(seed):
    result = script_conformance.outcome(seed)
    assert result.kind != "wrong", result.why
    if result.kind == "whole":
        assert result.traces <= 9  # arguments of three kinds, and branches that numbers decide


@pytest.mark.skipif(not EVERY_CASE, reason="takes minutes")
def test_the_count_of_programs_only_rises():
    stored = json.loads(FILE.read_text("utf-8"))
    counts = script_conformance.run(range(stored["first"], stored["last"]))
    assert not counts.wrong
    assert counts.kinds["whole"] >= stored["programs"]["whole"]


def test_speech_detection():
    """The detector of `silero_vad` on a chirp that comes and goes, with its state."""
    package = pytest.importorskip("silero_vad", reason="silero-vad is not installed")
    path = Path(package.__file__).parent / "data" / "silero_vad.jit"
    module, f = torch.jit.load(str(path)).eval(), pf.load(path, background=False)
    count = 200 if EVERY_CASE else 12
    time = np.arange(512 * count) / 16000
    sound = np.sin(2 * np.pi * (200 + 600 * time) * time) * (np.sin(6 * np.pi * time) > 0)
    chunks = torch.from_numpy((0.3 * sound).astype(np.float32)).reshape(count, 512)
    with torch.no_grad():
        for chunk in chunks:
            torch.testing.assert_close(f(chunk, 16000), module(chunk, 16000), rtol=0, atol=1e-4)
    state = f.state()
    assert (state.tier, state.counters["traces"], state.counters["python_calls"]) == ("optimized", 2, 0)
    with pytest.raises(pf.ModelError, match="ValueError: Input audio chunk is too short"):
        f(chunks[0, :100], 16000)
    f.reset_states()
    copied = copy.deepcopy(module)
    copied.reset_states()
    torch.testing.assert_close(f(chunks[3], 16000), copied(chunks[3], 16000), rtol=0, atol=1e-4)


def test_parameters_that_are_replaced_are_seen():
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.factor = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return torch.tanh(self.linear(x)) * self.factor

    module = torch.jit.script(Scaled())
    ours, x = pf.torch.script(module), torch.randn(3, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(ours(x), module(x))
        module.factor = torch.nn.Parameter(torch.full((4,), 5.0))
        torch.testing.assert_close(ours(x), module(x))
        module.linear.weight = torch.nn.Parameter(torch.eye(4))
        torch.testing.assert_close(ours(x), module(x))
        module.linear.weight = torch.nn.Parameter(module.linear.weight.t() * 2)
        torch.testing.assert_close(ours(x), module(x))


def test_nodes_without_results_give_nothing():
    class Warning(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.upsample(x, scale_factor=2.0)  # which warns that it is old

    scripted = torch.jit.script(Warning())
    x = torch.randn(1, 2, 3, 3)
    torch.testing.assert_close(torch.as_tensor(pf.torch.script(scripted)(x)), scripted(x))
