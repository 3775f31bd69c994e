"""Models whose code reads or changes more than arguments and modules: compiled, they are what they are without."""

from __future__ import annotations

import math

import profuse as pf
import pytest
from every_case import EVERY_CASE

torch = pytest.importorskip("torch", reason="torch is not installed")

from profuse.executor.torch.closed_code import ClosedCode, OpenCodeError  # noqa: E402

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
SCALE = 2.0
OPTIONS = {"shift": 1.0}
CALLS: list[int] = []
WEIGHT = torch.ones(4)


def scaled(x):
    return torch.sin(x) * SCALE


def shifted(x):
    return torch.sin(x) + OPTIONS["shift"]


def noted(x):
    CALLS.append(1)
    return x.sin()


def weighted(x):
    return x * WEIGHT


def half(x):
    return x * 0.5


def by_another(x):
    return half(x) + 1


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.scale, self.count = nn.Linear(4, 4), 2.0, 0

    def forward(self, x):
        self.count += 1
        return self.linear(x) * self.scale + self.count


class Plain(nn.Module):
    factor = 3.0

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 4), 1 / math.sqrt(4)
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def helped(self, x):
        return F.relu(x) * self.scale

    @property
    def twice(self):
        return 2 * self.factor

    def forward(self, x):
        batch = x.shape[0]
        for layer in self.layers:
            x = self.helped(layer(x))
        first, second = self.linear(x).chunk(2, -1)
        with torch.no_grad():
            mean = first.mean(dim=-1, keepdim=True)
        return [(first + mean).view(batch, -1) * self.twice, second] if self.training else second


def equal(compiled, model, x):
    found, wanted = compiled(x), model(x)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [scaled, shifted, weighted, by_another])
def test_what_functions_read_may_change(function, monkeypatch):
    x = torch.randn(4, 4)
    compiled = pf.torch.compile(function, background=False)
    for _ in range(3):
        equal(compiled, function, x)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    monkeypatch.setitem(OPTIONS, "shift", 7.0)
    monkeypatch.setitem(globals(), "half", lambda x: x * 0.25)
    WEIGHT.mul_(2)
    equal(compiled, function, x)
    monkeypatch.setitem(globals(), "WEIGHT", torch.full((4,), 9.0))
    equal(compiled, function, x)


def test_effects_are_had_at_each_call():
    CALLS.clear()
    compiled = pf.torch.compile(noted, background=False)
    for _ in range(4):
        compiled(torch.ones(3))
    assert len(CALLS) == 4
    eager, other = Counting(), Counting()
    other.load_state_dict(eager.state_dict())
    compiled = pf.torch.compile(other, background=False)
    x = torch.randn(2, 4)
    for _ in range(4):
        equal(compiled, eager, x)
    assert other.count == eager.count == 4
    assert "calls went through Dynamo: forward has an instruction STORE_ATTR" in compiled.explain()


def test_a_closed_module_is_exported_once_and_follows_its_values():
    eager, other = Plain(), Plain()
    other.load_state_dict(eager.state_dict())
    compiled = pf.torch.compile(other, background=False)
    x = torch.randn(2, 4)
    for _ in range(3):
        equal(compiled, eager, x)
    counters = compiled.calls.counters
    assert (counters["exports"], counters["dynamo_calls"], counters["torch_calls"]) == (1, 0, 0)
    eager.scale = other.scale = 3.0
    equal(compiled, eager, x)
    assert counters["exports"] == 2
    try:
        Plain.factor = 7.0
        equal(compiled, eager, x)
    finally:
        Plain.factor = 3.0
    eager.eval(), other.eval()
    equal(compiled, eager, x)


def test_hooks_that_come_later_are_called():
    other = Plain().eval()
    compiled = pf.torch.compile(other, background=False)
    x = torch.randn(2, 4)
    compiled(x)
    met = []
    other.linear.register_forward_hook(lambda *_: met.append(1))
    for _ in range(3):
        equal(compiled, other, x)
    assert len(met) == 6


OPEN = {
    "a dict": (lambda x: x * OPTIONS["shift"], "reads OPTIONS, a dict"),
    "print": (lambda x: print(x), "reads print"),
    "the generator": (lambda x: torch.manual_seed(0), "manual_seed"),
    "an attribute of something": (lambda x: x.anything, "asks for an attribute anything"),
    "a gradient": (lambda x: x.grad, "asks for an attribute grad"),
    "an import": (eval("lambda x: __import__('time').time() * x"), "reads __import__"),
    "no function": (math.sin, "is a builtin_function_or_method"),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_known_to_be_closed_is_open(name):
    function, reason = OPEN[name]
    with pytest.raises(OpenCodeError, match=reason):
        ClosedCode(function)


def test_modules_of_torch_are_closed():
    modules = [nn.LSTM(3, 3), nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.MultiheadAttention(8, 2)]
    for module in (*modules, nn.TransformerEncoderLayer(8, 2)) if EVERY_CASE else modules[1:]:
        assert ClosedCode(nn.Sequential(module, nn.Dropout(0.5))).is_current()


def test_a_variable_that_is_gone_is_the_error_of_python():
    factor = 2.0

    def scaled(x):
        return x * factor  # noqa: F821

    compiled = pf.torch.compile(scaled, strategy=[("static", 0)])
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))
    del factor
    with pytest.raises(NameError, match="factor"):
        compiled(torch.ones(2))
