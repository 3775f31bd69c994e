"""TorchScript's values against torch.jit: shared memory, views that are written, layers, files, random values."""

import math
from typing import List, NamedTuple, Union  # noqa: UP035 - TorchScript knows these names

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and says so at each use

import script_value_conformance  # noqa: E402 - these import torch
from script_conformance import check_same  # noqa: E402
from torch import nn  # noqa: E402

OP_BY_OP = [("static", 0)]
USERS = script_value_conformance.USERS
VALUE_PROGRAMS = [*range(2000), *range(USERS, USERS + 1000)] if EVERY_CASE else [*range(80), *range(USERS, USERS + 60)]
COMPILED_PROGRAMS = range(500) if EVERY_CASE else range(0, 60, 20)


class Layer(nn.Module):
    """Calls a layer with its argument."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **options)

    def forward(self, x, y, pad: torch.Tensor):
        return self.attention(x, y, y, key_padding_mask=pad)


def compared(module, *args, training=False, calls=3):
    """A function of a module, whose calls give what torch's give."""
    script = torch.jit.script(module.train(training))
    f = pf.torch.script(script, background=False)
    with torch.no_grad():
        for _ in range(calls):
            check_same(f(*args), script(*args))
    state = f.state()
    assert (state.tier, state.counters["traces"], state.counters["python_calls"]) == ("optimized", 1, 0)
    return f


def test_parameters_that_are_views_of_the_same_memory_in_another_way():
    layer = nn.Linear(4, 4, bias=False)
    script = torch.jit.script(layer)
    f, x = pf.torch.script(script, background=False), torch.linspace(-1, 1, 12).reshape(3, 4)
    with torch.no_grad():
        for turn in (torch.clone, torch.t, torch.t):
            layer.weight.data = turn(layer.weight.data)
            for _ in range(3):
                check_same(f(x), script(x))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        nn.RNN(8, 6, nonlinearity="relu"),
        nn.GRU(8, 6, num_layers=2, bidirectional=True, batch_first=True),
        nn.LSTM(8, 6, proj_size=3),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_recurrent_layers(layer, training):
    compared(Layer(layer), torch.randn(12, 3, 8), training=training)  # more steps than are recorded one by one


def under_masks(x, edges):
    y = x.clone()
    y[y < 0] = 0.5
    bins = torch.bucketize(x, edges)
    y[bins == 1] += 1.0
    part = y[y > 1]
    part *= 2
    return y, part.sum()


def python_values(x, y: Union[torch.Tensor, List[torch.Tensor]], text: str):  # noqa: UP006
    z = torch.stack(y).sum(0) if isinstance(y, list) else y
    numbers = [3, x.size(0), 1]
    numbers.sort()
    numbers.remove(1)
    counts = {"a": 1}
    counts.update({"b": 2})
    pair = (x, 1, z)
    first, rest = pair[0], pair[1:]
    words = [word[:-1] if word[-1] in [".", ","] else word for word in text.lower().split(" ")]
    is_known = words[0].startswith("a") or words[-1].find("t") == 2 or words[0].isdigit()
    shown = "%d %s" % (len(words), words[0])  # noqa: UP031
    return first + rest[1], numbers, counts.setdefault("c", 5), words, is_known, shown, ord("a"), words[0].title()


def test_writes_under_a_mask():
    script = torch.jit.script(under_masks)
    f, edges = pf.torch.script(script, background=False), torch.tensor([-1.0, 0.0, 1.0])
    for k in range(4):
        x = torch.linspace(-2, 2 + k, 12).reshape(3, 4)
        check_same(f(x, edges), script(x, edges))
    assert f.state().counters["traces"] == 1


def test_values_of_python():
    script = torch.jit.script(python_values)
    f, x = pf.torch.script(script, background=False), torch.ones(2, 3)
    for args in ((x, x * 2, "A cat."), (x, [x, x], "the mat sat"), (x, x, "7 b"), (x, x, "abc")):
        for _ in range(2):
            check_same(f(*args), script(*args))


def arithmetic(a: float, b: float, n: int, x: torch.Tensor):
    return a / b, a // b, a % b, n / b, math.fmod(a, b), x * (a / b), a**0.5, math.pow(a, b), divmod(n, -2)


def functions(a: float, x: torch.Tensor):
    return math.sqrt(a), math.log(a), math.log1p(a), math.acos(a), math.exp(a), x * math.log(a)


def of_contents(x: torch.Tensor):
    total = float(x.sum())
    return total / float(x[0]), math.log(total), math.sqrt(float(x[0]))


def check_numbers(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert type(a) is type(b)
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0, equal_nan=True)
        if type(b) is float:
            assert math.copysign(1, a) == math.copysign(1, b) or math.isnan(b)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (
            arithmetic,
            [(a, b, 3) for a, b in ((7.0, -2.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (-8.0, 1 / 3), (0.0, 4.0))],
        ),
        (functions, [(0.5,), (0.0,), (-1.0,), (2.0,), (1e4,), (-0.5,)]),
    ],
)
def test_numbers_are_infinite_where_python_raises(function, calls):
    script = torch.jit.script(function)
    f, x = pf.torch.script(script, background=False), torch.ones(2)
    for numbers in calls * 2:
        check_numbers(f(*numbers, x), script(*numbers, x))


def test_numbers_of_contents_are_infinite_where_python_raises():
    script = torch.jit.script(of_contents)
    f = pf.torch.script(script, background=False)
    for numbers in ([1.0, 2.0], [0.0, 2.0], [0.0, 0.0], [-1.0, 0.5], [4.0, 1.0]):
        for _ in range(2):
            check_numbers(f(torch.tensor(numbers)), script(torch.tensor(numbers)))


def test_recurrent_layers_alone_take_tensors():
    layer = nn.LSTM(8, 6)
    f, x = pf.torch.script(torch.jit.script(layer), background=False), torch.randn(5, 3, 8)
    with torch.no_grad():
        for _ in range(3):
            check_same(f(x), layer(x))
        with pytest.raises(pf.TraceError, match="a recurrent layer is not supported of a sequence without elements"):
            f(x[:0])


def test_gradients_of_recurrent_layers_are_those_of_torch():
    layer = nn.GRU(4, 5)
    f = pf.torch.script(torch.jit.script(Layer(layer)), background=False)
    x = torch.randn(9, 2, 4)
    layer(x)[0].square().sum().backward()
    step = pf.grad(lambda weights, x: np.sum(f.functional_call(weights, x)[0] ** 2), background=False)
    for _ in range(2):
        gradients = step(f.tensors(), x.numpy())
    for name, parameter in layer.named_parameters():
        np.testing.assert_allclose(gradients[f"layer.{name}"], parameter.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_attention_and_encoder_layers(training):
    x = torch.randn(2, 5, 8)
    pad = torch.zeros(2, 5, dtype=torch.bool)
    pad[0, 3:] = True
    compared(Attention(batch_first=True), x, x + 1, pad, training=training)
    compared(Attention(), x, x + 1, torch.zeros(5, 2, dtype=torch.bool), training=training)
    for norm_first, activation in ((False, "relu"), (True, "gelu")):
        options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first, "activation": activation}
        compared(nn.TransformerEncoderLayer(8, 2, 16, **options), x, training=training)
    compared(nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), x, x + 1, training=training)


def test_arguments_that_are_one_object_are_told_from_equal_ones():
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    f, script, x = (
        pf.torch.script(torch.jit.script(layer), background=False),
        torch.jit.script(layer),
        torch.ones(2, 3, 8),
    )
    with torch.no_grad():
        for args in ((x, x, x), (x, x.clone(), x.clone()), (x, x + 1, x)):
            check_same(f(*args), script(*args))


def test_the_gradient_mode_is_looked_at():
    def mode(x):
        return x * 2 if torch.is_grad_enabled() else x * 3

    f, x = pf.torch.script(torch.jit.script(mode), background=False), torch.ones(2)
    for _ in range(2):
        check_same(f(x), torch.full((2,), 2.0))
        with torch.no_grad():
            check_same(f(x), torch.full((2,), 3.0))
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    g, x = pf.torch.script(torch.jit.script(encoder), background=False), torch.randn(2, 3, 8)
    with pytest.raises(pf.TraceError, match=r"whether it requires gradients(.|\n)*torch.no_grad"):
        g(x)
    encoder.requires_grad_(False)
    check_same(pf.torch.script(torch.jit.script(encoder), background=False)(x), encoder(x))


class Ring(nn.Module):
    """Writes to parts of what it holds, and to a list."""

    places: list[int]

    def __init__(self):
        super().__init__()
        self.register_buffer("buffer", torch.zeros(4))
        self.weight = nn.Parameter(torch.ones(4))
        self.at = 0
        self.places = []

    def forward(self, x):
        view = self.buffer
        view[self.at] = x.sum()
        self.weight[1:] *= 0.5
        self.at = (self.at + 1) % 4
        self.places.append(self.at)
        return self.buffer * 2


def test_parts_of_buffers_and_lists_of_modules_are_written():
    scripts = [torch.jit.script(Ring()) for _ in range(2)]
    f = pf.torch.script(scripts[0], background=False)
    with torch.no_grad():
        for k in range(6):
            x = torch.full((3,), 1.0 + k)
            check_same(f(x), scripts[1](x))
            for name in ("buffer", "at", "places"):
                check_same(getattr(scripts[0], name), getattr(scripts[1], name))
            check_same(scripts[0].weight.data, scripts[1].weight.data)


def test_results_share_the_memory_of_arguments():
    def parts(x, y):
        doubled = x * 2
        return x, y[1:], doubled, doubled.t(), x.flip(0), y.clone()

    script = torch.jit.script(parts)
    f = pf.torch.script(script, background=False)
    args = torch.randn(3, 3), torch.randn(3, 3)
    for _ in range(4):
        results, expected = f(*args), script(*args)
        check_same(results, expected)
        assert script_value_conformance.shares(results, args) == script_value_conformance.shares(expected, args)
        assert results[0] is args[0]
    results[1].zero_()
    assert not args[1][1:].any()
    assert f.state().counters["kernel_launches"] > 0


def test_writes_to_views_among_results_count_as_writes_to_the_tensor():
    f = pf.torch.script(torch.jit.script(with_a_part), strategy=OP_BY_OP)
    for _ in range(3):
        x = torch.zeros(3, 4)
        same, part = f(x)
        part += 1
        assert same is x and x[1:].eq(1).all() and x._version == 1


def with_a_part(x):
    return x, x[1:]


def halved(x: torch.Tensor, by: int = 2):
    x[0].div_(by)
    return x.sum()


def first_halved(xs: list[torch.Tensor], y: torch.Tensor):
    xs[0].mul_(0.5)
    return xs[0] + y


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count.add_(x)
        return self.count * 2


@pytest.mark.parametrize("strategy", [OP_BY_OP, None])
def test_numbers_of_the_largest_elements_have_memory_of_their_own(strategy):
    def largest(x):
        a, b = torch.topk(x, 2)
        c, d = torch.kthvalue(x, 2, keepdim=True)
        return a, b, c, d

    script = torch.jit.script(largest)
    f = pf.torch.script(script, strategy=strategy, background=False)
    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    for _ in range(3):
        for ours, theirs in zip(f(x), script(x), strict=True):
            assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()


@pytest.mark.parametrize("strategy", [OP_BY_OP, None])
def test_what_is_written_is_outdated_for_gradients_of_torch(strategy):
    scripts = [torch.jit.script(program) for program in (halved, first_halved, Counted())]
    numbers, listed, counted = [pf.torch.script(s, strategy=strategy, background=False) for s in scripts]
    weight = torch.ones(2, requires_grad=True)
    for _ in range(4):
        x, y = torch.ones(2), torch.ones(2)
        product = x * weight
        numbers(x, 2)
        assert x._version == 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()
        listed([x], y)
        assert (x._version, y._version) == (2, 0)
        before = scripts[2].count._version
        counted(y)
        assert (y._version, scripts[2].count._version) == (0, before + 1)


def test_functions_are_saved_with_their_code(tmp_path):
    layer = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    f, x = pf.torch.script(torch.jit.script(layer), background=False), torch.randn(2, 4)
    with torch.no_grad():
        f.warmup(x)
        assert f.state().tier == "optimized"
        f.save(tmp_path / "layer.profuse")
        g = pf.load(tmp_path / "layer.profuse", background=False)
        check_same(g(x), layer(x))
        np.testing.assert_allclose(g(x.numpy()), layer(x).numpy(), rtol=1e-5)
    assert g.state().tier == "optimized"
    with pytest.raises(pf.ArgumentError, match="changes at, places, buffer, weight of its module"):
        pf.torch.script(torch.jit.script(Ring())).save(tmp_path / "ring")


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


def named(x) -> Pair:
    return Pair(x, x + 1)


def test_named_tuples_are_not_saved(tmp_path):
    f = pf.torch.script(torch.jit.script(named), background=False)
    f(torch.ones(2))
    with pytest.raises(pf.ArgumentError, match="results of named are named tuples"):
        f.save(tmp_path / "named")


def test_warming_up_leaves_state_as_it_was():
    script = torch.jit.script(Ring())
    f = pf.torch.script(script, background=False)
    with torch.no_grad():
        f.warmup(torch.ones(3))
    assert (script.at, script.places, script.buffer.any().item(), script.weight.sum().item()) == (0, [], False, 4.0)
    assert f.state().counters["calls"] >= 2


@pytest.mark.parametrize("seed", VALUE_PROGRAMS)
def test_random_values_op_by_op(seed):
    result = script_value_conformance.value_outcome(seed, compiles=False)
    assert result.kind != "wrong", result.why


@pytest.mark.parametrize("seed", COMPILED_PROGRAMS)
def test_random_values_in_compiled_plans(seed):
    result = script_value_conformance.value_outcome(seed)
    assert result.kind != "wrong", result.why
