"""Calls of compiled models of torch that are like those before: whatever has changed is seen all the same."""

from __future__ import annotations

import copy
import types

import profuse as pf
import pytest
from internals import is_known

torch = pytest.importorskip("torch", reason="torch is not installed")

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
X = torch.linspace(-1, 1, 12).reshape(3, 4)
SCALE = 2.0
activation = torch.tanh


def tripled(x, *, by=3.0):
    return x * by


def softened(x):
    return F.softplus(x)


def shifted(x, by=1.0):
    return x + by


class Model(nn.Module):
    """Reads globals, functions with defaults, plain attributes, parameters and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.5))
        self.register_buffer("offset", torch.ones(5))
        self.factor = 2

    def forward(self, x):
        y = activation(self.inner(x)) * SCALE + self.offset
        return shifted(tripled(y)) * self.factor


def warmed(model=None):
    """A model, and a compiled one with the same modules that knows calls with `X`."""
    torch.manual_seed(0)
    model = Model().eval() if model is None else model
    compiled = pf.torch.compile(model, background=False)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(compiled(X), model(X))
        assert is_known(compiled, X) and compiled.calls.counters["exports"] == 1
    return model, compiled


def to_double(model):
    model.inner[0] = nn.Linear(4, 5).eval()


def other_memory(model):
    model.offset.data = torch.full((5,), 7.0)


def other_strides(model):
    weight = model.inner[0].weight
    weight.data = weight.data.as_strided((5, 4), (1, 5))


def other_parameter(model):
    model.inner[0].weight = nn.Parameter(torch.ones(5, 4))


def other_class(model):
    model.inner[1].__class__ = nn.Tanh


def more_modules(model):
    model.inner.append(nn.Sigmoid())


def another_order(model):
    held = model.inner._modules
    held["0"], held["1"] = held["1"], held["0"]
    held["1"] = nn.Linear(4, 5, bias=False)
    held["0"] = nn.Identity()


def number_of_another_type(model):
    model.factor = 2.5 - 0.5


def hooked(model):
    model.inner[1].register_forward_hook(lambda module, args, result: result * 5)


def own_forward(model):
    model.inner[1].forward = torch.cos


CHANGES = {f.__name__: f for f in (
    to_double, other_memory, other_strides, other_parameter, other_class, more_modules, another_order,
    number_of_another_type, hooked, own_forward,
)}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_the_module_are_seen(name):
    model, compiled = warmed()
    CHANGES[name](model)
    with torch.no_grad():
        assert not is_known(compiled, X)
        for _ in range(4):
            torch.testing.assert_close(compiled(X), model(X), check_dtype=True)


@pytest.mark.parametrize(
    ("name", "value"), [("SCALE", 3.0), ("SCALE", 2), ("activation", torch.cos), ("tripled", shifted), ("F", torch)]
)
def test_changes_of_names_are_seen(monkeypatch, name, value):
    model, compiled = warmed()
    with monkeypatch.context() as patch:
        patch.setitem(globals(), name, value)
        with torch.no_grad():
            assert is_known(compiled, X) == (name == "F")  # which the model does not read
            for _ in range(4):
                torch.testing.assert_close(compiled(X), model(X))


@pytest.mark.parametrize(
    ("function", "part", "value"),
    [
        (shifted, "__defaults__", (4.0,)),
        (tripled, "__kwdefaults__", {"by": 5.0}),
        (shifted, "__code__", (lambda x, by=1.0: x - by).__code__),
    ],
)
def test_changes_of_functions_are_seen(monkeypatch, function, part, value):
    model, compiled = warmed()
    with monkeypatch.context() as patch:
        patch.setattr(function, part, value)
        with torch.no_grad():
            assert not is_known(compiled, X)
            torch.testing.assert_close(compiled(X), model(X))
    with monkeypatch.context() as patch, torch.no_grad():
        patch.setitem(tripled.__kwdefaults__, "by", 7.0)
        torch.testing.assert_close(compiled(X), model(X))


def test_variables_of_enclosing_functions_are_seen():
    by = 2.0

    def scaled(x):
        return torch.tanh(x) * by

    _, compiled = warmed(scaled)
    by = 3.0
    assert not is_known(compiled, X)
    torch.testing.assert_close(compiled(X), torch.tanh(X) * 3)


class Plus(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result + 1 if func in (torch.Tensor.mul, F.softplus) else result


@pytest.mark.parametrize(
    "x",
    [
        X.double(), X[:, :2].repeat(1, 2), X.t().contiguous().t(), torch.ones(5, 4), X[0], X.expand(2, 3, 4),
        torch.complex(X, X).conj().imag, nn.Parameter(X), X.as_subclass(Plus), X.clone().requires_grad_(),
    ],
    ids=["dtype", "same", "strides", "size", "rank", "expanded", "negative", "parameter", "subclass", "requires"],
)  # fmt: skip
def test_other_arguments_are_seen(x):
    _, compiled = warmed(softened)
    for _ in range(3):
        result, expected = compiled(x), softened(x)
        assert (type(result), result.requires_grad) == (type(expected), expected.requires_grad)
        torch.testing.assert_close(result, expected)


def test_tensors_without_memory_are_seen():
    _, compiled = warmed(softened)
    assert compiled(X.to("meta")).device.type == "meta"
    assert compiled(X.to_sparse().to_dense()).equal(compiled(X))
    with pytest.raises(NotImplementedError):
        compiled(X.to_sparse())


def test_modes_and_settings_are_seen():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen = []
    model, compiled = warmed()
    with torch.no_grad():
        with Seen():
            result = compiled(X)
        assert len(seen) > 6
        torch.testing.assert_close(result, model(X))
        with torch.autocast("cpu", torch.bfloat16):
            assert compiled(X).dtype == model(X).dtype
            assert not is_known(compiled, X)
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            assert not is_known(compiled, X)
            torch.testing.assert_close(compiled(X), model(X))
        finally:
            torch.set_default_dtype(before)
        handle = nn.modules.module.register_module_forward_hook(lambda module, args, result: seen.append(module))
        try:
            assert not is_known(compiled, X)
            seen.clear()
            torch.testing.assert_close(compiled(X), model(X))
            assert any(type(module) is nn.ReLU for module in seen)
        finally:
            handle.remove()
        torch.testing.assert_close(compiled(X), model(X))
    model.train()
    for _ in range(3):
        assert (compiled(X) == torch.tensor(float(shifted(tripled(model.offset[0])) * 2))).any()  # what was dropped
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), model(X))


def test_gradients_are_those_of_the_parameters_that_require_them():
    model, compiled = warmed()
    twin = copy.deepcopy(model)
    for step in range(8):
        for one in (model, twin):
            one.inner[0].bias.requires_grad_(step % 4 < 2)
            one.zero_grad()
        for given, run in ((X.clone().requires_grad_(step == 5), compiled), (X, twin)):
            result = run(given)
            assert result.requires_grad
            result.square().sum().backward()
            assert (given.grad is not None) == (given.requires_grad)
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad)
    assert is_known(compiled, X)
    for p in model.parameters():
        p.requires_grad_(False)
    assert not compiled(X).requires_grad


def test_modules_with_tensors_of_other_classes_are_torchs():
    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("offset", torch.ones(4).as_subclass(Plus))

        def forward(self, x):
            return x * self.offset

    model = Held()
    compiled = pf.torch.compile(model, background=False)
    for _ in range(3):
        result = compiled(X)
        assert type(result) is Plus
        torch.testing.assert_close(result.as_subclass(torch.Tensor), X + 1)
    assert compiled.calls.counters["torch_calls"] == 3
    assert "torch ran 3 calls: offset of the module is a Plus" in compiled.explain()
    model.offset = torch.ones(4)
    for _ in range(4):
        torch.testing.assert_close(compiled(X), X)
    assert is_known(compiled, X)
    model.offset.__class__ = types.new_class("Other", (torch.Tensor,))
    assert not is_known(compiled, X)
