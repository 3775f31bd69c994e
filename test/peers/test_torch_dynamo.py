"""Graphs of Dynamo: numbers that they read, and those that torch runs; skipped without torch."""

from __future__ import annotations

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def forgotten():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Scaled(nn.Module):
    """Reads a number in a dict, which no export may, so that calls go through Dynamo."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.numbers = nn.Linear(4, 3), {"scale": 0.5}

    def forward(self, x):
        return torch.tanh(self.linear(x)) * self.numbers["scale"]


@pytest.mark.parametrize("gradients", [False, True])
def test_graphs_hold_numbers_of_python(gradients):
    model = Scaled()
    compiled = pf.torch.compile(model, background=False)
    x = torch.randn(5, 4)

    def equal():
        for _ in range(3):
            with torch.set_grad_enabled(gradients):
                y, expected = compiled(x), model(x)
            torch.testing.assert_close(y, expected)
            assert torch.equal(y.signbit(), expected.signbit())
            if gradients:
                wrt = list(model.parameters())
                for a, b in zip(
                    torch.autograd.grad(y.square().sum(), wrt),
                    torch.autograd.grad(expected.square().sum(), wrt),
                    strict=True,
                ):
                    torch.testing.assert_close(a, b)

    for scale in (0.5, 2.0, 0.0, -0.0):
        model.numbers["scale"] = scale
        equal()
    calls = compiled.calls
    assert len(calls.exports()) == 4 and not calls.reasons and calls.counters["torch_calls"] == 0
    assert calls.counters["dynamo_calls"] == 12
    tiers = [f.state().tier for f in calls.functions()]
    assert tiers == ["optimized"] * (8 if gradients else 4), tiers


def test_the_numbers_that_a_graph_holds_are_few():
    model = Scaled()
    compiled = pf.torch.compile(model)
    with torch.no_grad():
        for k in range(20):
            model.numbers["scale"] = k / 8
            x = torch.randn(5, 4)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(compiled.calls.exports()) == 16 and compiled.calls.counters["torch_calls"] == 4
    assert "has 16 exports for other numbers" in compiled.explain()


@torch.library.custom_op("profuse_test::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


doubled.register_fake(torch.empty_like)


def test_graphs_that_torch_runs_are_counted():
    table = {"other": doubled}
    compiled = pf.torch.compile(lambda x: table["other"](x), background=False)
    with torch.no_grad():
        for _ in range(3):
            assert compiled(torch.ones(3)).tolist() == [2.0] * 3
    assert compiled.calls.counters["torch_calls"] == 3
    (reason,) = compiled.calls.reasons
    assert "has no operator that is supported: profuse_test::doubled" in reason
    assert f"torch runs it as a whole: {reason}" in compiled.explain()
    assert 3 in [graph.torch_calls for graph in pf.torch.dynamo_graphs()]


def test_graphs_that_hold_no_symbols_have_an_export_for_each_size():
    numbers = {"beta": 2.0}

    def fn(x, y, z):
        return torch.tanh(x.baddbmm(y, z, beta=numbers["beta"]))  # torch's own rule of shapes takes no symbols

    compiled = pf.torch.compile(fn, background=False)
    with torch.no_grad():
        for length in (6, 7, 6, 7, 6, 7):
            x, y, z = torch.randn(2, 1, length), torch.randn(2, 5, 3), torch.randn(2, 3, length)
            torch.testing.assert_close(compiled(x, y, z), fn(x, y, z))
    calls = compiled.calls
    assert calls.counters["torch_calls"] == 0 and not calls.reasons
    assert len(calls.exports()) == calls.counters["fixed_exports"] == 2
    assert "  2 exports hold for one combination of sizes: RuntimeError" in compiled.explain()
