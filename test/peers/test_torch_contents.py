"""Functions of torch that check contents, and layers that ask for sizes and rows, in compiled models; needs torch."""

from __future__ import annotations

import copy

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def regular(x):
    return x @ x.mT + 2 * torch.eye(x.shape[0], dtype=x.dtype)


FUNCTIONS = {
    "solve": lambda x: torch.linalg.solve(regular(x), x),
    "cholesky": lambda x: torch.linalg.cholesky(regular(x)),
    "inv": lambda x: torch.linalg.inv(regular(x)),
    "lu_factor": lambda x: torch.linalg.lu_factor(regular(x))[0],
    "lu_solve": lambda x: torch.lu_solve(x, *torch.linalg.lu_factor(regular(x))),
    "lstsq": lambda x: torch.linalg.lstsq(regular(x), x).solution,
    "matrix_exp": lambda x: torch.matrix_exp(regular(x) / 8),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 1),
    "one_hot": lambda x: F.one_hot(x.argmax(1), 5) * x,
    "repeat": lambda x: x[0].repeat(x.shape[0], 2),
    "histc": lambda x: torch.histc(x.detach(), 5, -1, 1) + x.sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    fn = FUNCTIONS[name]
    torch._dynamo.reset()
    compiled = pf.torch.compile(fn, background=False)
    for count in (3, 3, 3, 4):
        x = torch.randn(count, 5, dtype=torch.float64, requires_grad=True)
        pairs = []
        for f in (fn, compiled):
            y = f(x)
            pairs.append((y, torch.autograd.grad((y * torch.arange(y.numel()).reshape(y.shape)).sum(), x)[0]))
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(b, a, rtol=1e-6, atol=1e-8)
    assert not compiled.calls.counters["torch_calls"] and not compiled.calls.counters["torch_ops"], compiled.explain()


@pytest.mark.parametrize(
    ("fn", "good", "bad"),
    [
        (lambda x: torch.linalg.lu_factor(x)[0], torch.eye(2), torch.ones(2, 2)),
        (torch.linalg.inv, torch.eye(2), torch.ones(2, 2)),
        (torch.linalg.cholesky, torch.eye(2), -torch.eye(2)),
        (lambda x: F.one_hot(x, 3), torch.tensor([0, 2]), torch.tensor([0, 3])),
    ],
)
def test_contents_that_are_errors_are_those_of_torch(fn, good, bad):
    torch._dynamo.reset()
    compiled = pf.torch.compile(fn, background=False)
    for _ in range(3):
        torch.testing.assert_close(compiled(good), fn(good))
    with pytest.raises(RuntimeError) as theirs:
        fn(bad)
    with pytest.raises(RuntimeError) as ours:
        compiled(bad)
    assert type(ours.value) is type(theirs.value) and str(ours.value) == str(theirs.value)
    torch.testing.assert_close(compiled(good), fn(good))


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm2d(3, affine=True)

    def forward(self, x):
        return self.norm(x)


def bags(count):
    return torch.arange(3 * count) % 7, torch.arange(0, 3 * count, 3)


LAYERS = {
    "norm of each image": (Norm, lambda count: (torch.randn(count, 3, 4, 4),)),
    "sums of rows": (lambda: nn.EmbeddingBag(7, 4, mode="sum", padding_idx=1), bags),
    "means of rows": (lambda: nn.EmbeddingBag(7, 4), bags),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_trained(name):
    build, inputs = LAYERS[name]
    model = build()
    compiled = pf.torch.compile(copy.deepcopy(model), background=False)
    for count in (2, 2, 2, 3):
        arguments = inputs(count)
        for one in (model, compiled):
            one.zero_grad()
            one(*arguments).square().sum().backward()
        for a, b in zip(model.parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-5)
    assert compiled.calls.counters["exports"] == 1 and not compiled.calls.counters["torch_calls"], compiled.explain()
