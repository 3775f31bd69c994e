"""Writes between a call and its backward run: torch's errors, or the right gradient; skipped without torch."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import profuse as pf  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

# Each with whether torch keeps what this package keeps, so that both raise for the same writes.
FUNCTIONS = {
    "exp": (lambda x, y: torch.exp(x), True),
    "sigmoid": (lambda x, y: torch.sigmoid(x), True),
    "tanh": (lambda x, y: torch.tanh(x), True),
    "sqrt": (lambda x, y: torch.sqrt(x), True),
    "mul": (lambda x, y: x * y, True),
    "matmul": (lambda x, y: x @ y, True),
    "add": (lambda x, y: x + y[0], True),
    "layer norm": (lambda x, y: torch.nn.functional.layer_norm(x, (4,)), True),
    "div": (lambda x, y: x / y, False),  # of the result, in the place of the dividend
    "softmax": (lambda x, y: torch.softmax(x, -1), False),  # of the argument, with maxima and sums of rows
}
WRITES = {
    "none": lambda x, y, r: None,
    "the result": lambda x, y, r: r.add_(1),
    "a view of the result": lambda x, y, r: r[0].mul_(3),
    "the detached result": lambda x, y, r: r.detach().add_(1),
    "an argument": lambda x, y, r: x.add_(1),
    "a view of an argument": lambda x, y, r: x[1].mul_(2),
    "the other argument": lambda x, y, r: y.add_(1),
    "a view of the other argument": lambda x, y, r: y[1].mul_(2),
}
DOORS = {
    "own": lambda fn: pf.torch.compile(fn, background=False),
    "dynamo": lambda fn: torch.compile(fn, backend="profuse", options={"background": False}),
}
ERROR = "modified by an inplace operation"


def run(fn, write, seed):
    generator = torch.Generator().manual_seed(seed)
    leaves = [torch.rand(4, 4, generator=generator, dtype=torch.float64).add_(0.5).requires_grad_() for _ in "xy"]
    x, y = (leaf * 1.0 for leaf in leaves)
    result = fn(x, y)
    write(x, y, result)
    try:
        (result * 2).sum().backward()
    except RuntimeError as error:
        assert ERROR in str(error)
        return None
    return [leaf.grad for leaf in leaves]


@pytest.mark.parametrize(("name", "door"), [*itertools.product(FUNCTIONS, DOORS)])
def test_writes_are_errors_or_change_nothing(name, door):
    fn, is_torchs = FUNCTIONS[name]

    def called(x, y):
        return fn(x, y)

    torch._dynamo.reset()
    compiled = DOORS[door](called)
    for step, (what, write) in enumerate(2 * list(WRITES.items())):  # profiled, and compiled
        expected, gradients = run(fn, write, step), run(compiled, write, step)
        if is_torchs:
            assert (gradients is None) == (expected is None), what
        if expected is None or gradients is None:
            continue
        for a, b in zip(expected, gradients, strict=True):
            assert (a is None) == (b is None), what
            if a is not None:
                torch.testing.assert_close(a, b)


def first_written(x, y):
    x.add_(1)
    return x * y


def second_written(x, y):
    y.mul_(3)
    return x + y


def of_one_tensor(place):
    base = torch.arange(6.0)
    return base, base[:3], base[place : place + 3]


def of_one_array(place):
    base = torch.arange(6.0).numpy()
    return torch.from_numpy(base), torch.from_numpy(base[:3]), torch.from_numpy(base[place : place + 3])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("made", [of_one_tensor, of_one_array])
@pytest.mark.parametrize("function", [first_written, second_written])
def test_what_is_written_to_may_lie_in_the_memory_of_another_argument(function, made, is_noted, door):
    weight = torch.full((3,), 2.0, requires_grad=is_noted)
    torch._dynamo.reset()
    compiled = DOORS[door](lambda x, y, w: function(x, y) * w)
    for place in (3, 3, 2, 1, 3, 2):  # apart, and with elements in common
        outcomes = []
        for run_door in (lambda x, y, w: function(x, y) * w, compiled):
            base, x, y = made(place)
            outcomes.append((run_door(x, y, weight).detach(), base))
        torch.testing.assert_close(outcomes[1], outcomes[0])
