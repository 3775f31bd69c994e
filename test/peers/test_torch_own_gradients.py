"""Functions with gradients of their own (`torch.autograd.Function`) in compiled models; skipped without torch."""

from __future__ import annotations

import threading

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * (s + x * s * (1 - s))


class Reversed(torch.autograd.Function):
    """What is no gradient of its forward half, with a number, and an argument that has none."""

    @staticmethod
    def forward(ctx, x, factor, w):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.factor * gradient, None, None


class Clipped(torch.autograd.Function):
    """A backward half that is not linear: gradients are summed before it."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-0.5, 0.5)


class WithSetup(torch.autograd.Function):
    @staticmethod
    def forward(x):
        y = torch.exp(x)
        return y, torch.argmax(x, -1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, gradient, _):
        return 3 * gradient * ctx.saved_tensors[0]


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return (a + b).clamp(-1, 1)


def clipped(x, w):
    y = Clipped.apply(x @ w)
    return y * 3 + y * y


FUNCTIONS = {
    "one": lambda x, w: Swish.apply(x @ w) + x,
    "two behind each other": lambda x, w: Reversed.apply(Swish.apply(x @ w), 0.5, w) * w.sum(),
    "one that is not linear": clipped,
    "one with a result that has none": lambda x, w: WithSetup.apply(x @ w)[0] * 2,
    "one that is used twice": lambda x, w: Swish.apply(x) * Swish.apply(w),
}


def both(fn, compiled, count):
    torch.manual_seed(count)
    inputs = [torch.randn(count, count, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    return [(y, torch.autograd.grad(y.cos().sum(), inputs)) for y in (fn(*inputs), compiled(*inputs))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_function(name):
    torch._dynamo.reset()
    fn = FUNCTIONS[name]
    compiled = pf.torch.compile(fn, background=False)
    for count in (4, 4, 4, 5, 5):
        (y, expected), (result, gradients) = both(fn, compiled, count)
        torch.testing.assert_close(result, y)
        for a, b in zip(gradients, expected, strict=True):
            torch.testing.assert_close(a, b)
    assert not compiled.calls.counters["torch_calls"] and not compiled.calls.counters["torch_ops"], compiled.explain()
    with torch.no_grad():
        x = torch.randn(4, 4, dtype=torch.float64)
        torch.testing.assert_close(compiled(x, x), fn(x, x))


def test_gradients_of_gradients_go_through_the_backward_half():
    torch._dynamo.reset()
    compiled = pf.torch.compile(FUNCTIONS["one"], background=False)
    x, w = (torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for _ in range(3):
        second = []
        for f in (FUNCTIONS["one"], compiled):
            (first,) = torch.autograd.grad(f(x, w).sin().sum(), x, create_graph=True)
            second.append(torch.autograd.grad(first.pow(2).sum(), (x, w)))
        for a, b in zip(*second, strict=True):
            torch.testing.assert_close(b, a)


@pytest.mark.parametrize(
    ("fn", "words"),
    [(lambda x: sum(Two.apply(x)), "2 results of floats"), (lambda x: Reversed.apply(x, 1.0, x).view(-1), None)],
)
def test_others_are_torchs_and_right(fn, words):
    torch._dynamo.reset()
    compiled = pf.torch.compile(fn, background=False)
    for _ in range(2):
        x = torch.randn(3, 2, requires_grad=True)
        expected, found = (torch.autograd.grad(f(x).sin().sum(), x)[0] for f in (fn, compiled))
        torch.testing.assert_close(found, expected)
    if words:
        assert words in compiled.explain()


class Bare(torch.autograd.Function):
    """A result that is the argument."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 5


def test_a_result_that_shares_memory_keeps_the_gradient():
    torch._dynamo.reset()
    compiled = pf.torch.compile(lambda x: Bare.apply(x), background=False)
    for _ in range(2):
        x = torch.ones(3, requires_grad=True)
        assert torch.autograd.grad(compiled(x).sum(), x)[0].tolist() == [5.0] * 3


class TracedBeside(torch.autograd.Function):
    """While its forward half is traced, another thread begins and ends a trace."""

    @staticmethod
    def forward(ctx, x):
        from profuse.dialect.importers.foreign.fx.custom_gradients import noting

        def trace():
            with noting(object()):
                pass

        thread = threading.Thread(target=trace)
        thread.start()
        thread.join()
        return x + 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


def test_threads_note_gradients_at_the_same_time():
    torch._dynamo.reset()
    compiled = pf.torch.compile(lambda x: Reversed.apply(TracedBeside.apply(x), 3, None), background=False)
    for _ in range(2):
        x = torch.ones(3, requires_grad=True)
        assert torch.autograd.grad(compiled(x).sum(), x)[0].tolist() == [-21.0] * 3
    assert not compiled.calls.counters["torch_ops"], compiled.explain()
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)
