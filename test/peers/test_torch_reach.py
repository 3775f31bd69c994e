"""What no gradient of torch's flows to has none, and is not given zeros; operands that torch refuses are errors."""

from __future__ import annotations

import copy

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
OP_BY_OP = [("static", 0)]


class Model(nn.Module):
    """One parameter is not used, one has no gradient, and each of two results is of one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(2, 2)
        self.bound = nn.Parameter(torch.ones(2))

    def forward(self, x):
        with torch.no_grad():
            bound = self.bound * 2
        return self.first(x).clamp(max=bound), self.second(x.detach())


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_parameters_without_a_gradient_have_none(used):
    model = Model()
    twin = copy.deepcopy(model)
    compiled = pf.torch.compile(model, strategy=OP_BY_OP)
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    for _ in range(3):
        inputs = x.clone().requires_grad_(), x.clone().requires_grad_()
        for run, own, at in ((compiled, model, inputs[0]), (twin, twin, inputs[1])):
            optimizer = torch.optim.SGD(own.parameters(), lr=0.1, weight_decay=0.5)
            optimizer.zero_grad()
            results = run(at)
            sum(results[k].square().sum() for k in used).backward()
            optimizer.step()
        assert (inputs[0].grad is None) == (inputs[1].grad is None) == (0 not in used)
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None)
            torch.testing.assert_close(p, q)
    assert compiled.calls.counters["torch_calls"] == 0


def test_results_without_a_gradient_are_computed_as_such():
    compiled = pf.torch.compile(lambda x: x.detach() * 2, strategy=OP_BY_OP)
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        result = compiled(x)
        assert not result.requires_grad and result.is_leaf and result.tolist() == [2, 2, 2]
    (function,) = compiled.calls.functions()
    assert "_forward" not in function.__name__  # that which is differentiated
    assert compiled.calls.counters["torch_calls"] == 0


def test_what_no_gradient_flows_to_may_write_to_arguments():
    class Hits(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(3))

        def forward(self, x, labels, counts):
            right = (x @ self.weight).argmax(-1) == labels
            counts += right
            return right.float().mean(), x

    model, counts = Hits(), torch.zeros(2)
    compiled = pf.torch.compile(model, strategy=OP_BY_OP)
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
    for number in range(1, 4):
        mean, same = compiled(x, torch.tensor([0, 2]), counts)
        assert mean.item() == 0.5 and not mean.requires_grad and same is x
        assert counts.tolist() == [number, 0]
    assert compiled.calls.counters["torch_calls"] == 0, compiled.explain()


def test_what_does_not_depend_on_an_argument_says_so():
    compiled = pf.torch.compile(lambda x, y: (x * 2, y * 3), strategy=OP_BY_OP)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, _ = compiled(x, y)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(first.sum(), y)


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (nn.Linear(3, 2), torch.ones(2, 3, dtype=torch.int64)),
        (nn.Linear(3, 2), torch.ones(2, 3, dtype=torch.float64)),
        (nn.Conv2d(1, 2, 2), torch.ones(1, 1, 3, 3, dtype=torch.float64)),
        (torch.matmul, torch.ones(2, 2, dtype=torch.int32)),
    ],
    ids=["ints", "doubles", "convolution", "product"],
)
def test_operands_of_two_dtypes_are_the_error_of_torch(model, x):
    args = (x, torch.ones(2, 2)) if model is torch.matmul else (x,)
    function = model if isinstance(model, nn.Module) else lambda a, b: torch.matmul(a, b)
    compiled = pf.torch.compile(function, strategy=OP_BY_OP)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"dtype|type|scalar"):
            compiled(*args)
