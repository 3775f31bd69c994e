"""Transforms of `torch.func` in compiled functions, and what torch's state is where a graph fails; needs torch."""

from __future__ import annotations

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
WEIGHTS = {name: weight.detach() for name, weight in MODEL.named_parameters()}
X = torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(5, 3)


def loss(weights, x):
    return torch.func.functional_call(MODEL, weights, (x,)).square().mean()


def state():
    hooks = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()
    return torch._C._functorch.get_dynamic_layer_stack_depth(), hooks, torch.is_autocast_enabled("cpu")


TRANSFORMS = {
    "gradient": (torch.func.grad_and_value(loss), (WEIGHTS, X)),
    "gradients of samples": (torch.func.vmap(torch.func.grad(loss), (None, 0)), (WEIGHTS, X)),
    "second derivative": (torch.func.grad(lambda x: torch.func.grad(lambda y: (y**3).sum())(x).sum()), (X,)),
    "detached": (torch.func.grad(lambda x: (x * x.detach()).sum()), (X,)),
    "forward": (lambda x: torch.func.jvp(torch.sin, (x,), (x,)), (X,)),
    "rows": (torch.func.vmap(lambda x, y: x * y.sum(), (1, None), 1), (X, X)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_parts_of_the_graph(name):
    fn, args = TRANSFORMS[name]
    torch._dynamo.reset()
    compiled = pf.torch.compile(fn, background=False)
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), fn(*args))
    counters = compiled.calls.counters
    assert not counters["torch_calls"] and not counters["torch_ops"], compiled.explain()


LEARNED = {name: weight.clone().requires_grad_() for name, weight in WEIGHTS.items()}


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (torch.func.hessian(lambda x: (x**3).sum()), (X[0],)),
        (torch.func.vmap(torch.func.grad(loss), (None, 0)), (LEARNED, X)),
    ],
)
def test_a_graph_that_cannot_be_exported_leaves_the_state_of_torch(fn, args):
    torch._dynamo.reset()
    before, compiled = state(), pf.torch.compile(fn, background=False)
    for count in (1, 2):
        torch.testing.assert_close(compiled(*args), fn(*args))
        assert state() == before
        assert compiled.calls.counters["torch_calls"] == count


def test_an_error_within_a_transform_leaves_the_state_of_torch():
    fn = torch.func.grad(lambda x, place: x[place].sum())
    torch._dynamo.reset()
    before, compiled = state(), pf.torch.compile(fn, background=False)
    for _ in range(2):
        with pytest.raises(IndexError, match="out of bounds for dimension 0"):
            compiled(X, torch.tensor([9]))
        assert state() == before
        torch.testing.assert_close(compiled(X, torch.tensor([1])), fn(X, torch.tensor([1])))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        torch.sin(X.clone().requires_grad_())
