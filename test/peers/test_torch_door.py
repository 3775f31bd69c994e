"""`pf.torch.compile`: values, gradients, promises of results, state of modules; skipped without torch."""

from __future__ import annotations

import copy

import profuse as pf
import pytest
from every_case import EVERY_CASE

torch = pytest.importorskip("torch", reason="torch is not installed")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))

    def forward(self, x):
        return F.log_softmax(self.layers(x), -1)


class Block(nn.Module):
    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.joint(self.before(x)).split(width, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.behind(x)), approximate="tanh"))


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.deep, self.last = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Linear(4, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.last(F.adaptive_avg_pool2d(x + F.silu(self.deep(x)), 1).flatten(1))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 8)

    def forward(self, x):
        h, c = self.cell(x)
        return h + c


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.GRU(4, 8, batch_first=True)

    def forward(self, x):
        return self.steps(x)[0]


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(10, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.table(x).mean(1))


MODELS = {
    "perceptron": (Perceptron, lambda: torch.randn(8, 12)),
    "block": (Block, lambda: torch.randn(2, 5, 16)),
    "images": (Images, lambda: torch.randn(3, 3, 8, 8)),
    "cell": (Cell, lambda: torch.randn(3, 4)),
    "recurrent": (Recurrent, lambda: torch.randn(2, 3, 4)),
    "embedded": (Embedded, lambda: torch.randint(0, 10, (3, 4))),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def pair(kind):
    eager = kind()
    return eager, pf.torch.compile(copy.deepcopy(eager), background=False)


def served(compiled) -> None:
    calls = compiled.calls
    assert not calls.counters["torch_calls"] and not calls.counters["torch_ops"], compiled.explain()


@pytest.mark.parametrize("name", MODELS if EVERY_CASE else ["block"])
def test_inference_in_all_tiers(name):
    kind, inputs = MODELS[name]
    eager, compiled = pair(kind)
    x = inputs()
    with torch.no_grad():
        expected = eager.eval()(x)
        compiled.eval()
        for _ in range(3):
            result = compiled(x)
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
            assert result.stride() == expected.stride() and not result.requires_grad
    served(compiled)
    (state,) = compiled.state()
    assert (state.tier, state.counters["traces"], state.counters["compiles"]) == ("optimized", 1, 1)


@pytest.mark.parametrize("name", MODELS if EVERY_CASE else ["images"])
def test_twenty_steps_of_descent_are_those_of_torch(name):
    kind, inputs = MODELS[name]
    eager, compiled = pair(kind)
    rates = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, compiled)]
    for _ in range(20):
        x = inputs()
        for model, rate in zip((eager, compiled), rates, strict=True):
            rate.zero_grad()
            model(x).square().mean().backward()
            rate.step()
    served(compiled)
    for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
    for a, b in zip(eager.buffers(), compiled.buffers(), strict=True):  # running statistics and their count
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)


def float64(*shape, positive=False):
    x = torch.rand(*shape, dtype=torch.float64) + 0.5 if positive else torch.randn(*shape, dtype=torch.float64)
    return x.requires_grad_()


CHECKED = {
    "product": (lambda a, b: a @ b, ((3, 4), (4, 2))),
    "broadcast": (lambda a, b: a + b * a, ((3, 4), (4,))),
    "tanh": (torch.tanh, ((3, 4),)),
    "sigmoid": (torch.sigmoid, ((3,),)),
    "exp": (torch.exp, ((3,),)),
    "power": (lambda a: a**3, ((4,),)),
    "division": (lambda a, b: a / (b * b + 1), ((3,), (3,))),
    "softmax": (lambda a: F.softmax(a, -1), ((3, 4),)),
    "log_softmax": (lambda a: F.log_softmax(a, -1), ((3, 4),)),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (4,), w, b), ((3, 4), (4,), (4,))),
    "gelu": (F.gelu, ((4,),)),
    "silu": (F.silu, ((4,),)),
    "softplus": (F.softplus, ((4,),)),
    "linear": (F.linear, ((2, 3), (4, 3), (4,))),
    "logsumexp": (lambda a: torch.logsumexp(a, -1), ((3, 4),)),
    "mean": (lambda a: a.mean((0, 1)), ((3, 4),)),
    "variance": (lambda a: a.var(-1), ((3, 4),)),
    "join": (lambda a, b: torch.cat([a, b], 1) * 2, ((2, 3), (2, 2))),
    "index": (lambda a: a[torch.tensor([0, 2, 0])] ** 2, ((3, 2),)),
    "gather": (lambda a: a.gather(1, torch.tensor([[0], [1]])).sin(), ((2, 3),)),
    "where": (lambda a, b: torch.where(a > 0, a * b, b), ((4,), (4,))),
    "slice": (lambda a: a[1:, ::2].cos(), ((3, 4),)),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), ((1, 2, 4, 4), (3, 2, 3, 3))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((4, 3), (3,), (3,))),
    "attention": (F.scaled_dot_product_attention, ((1, 2, 3, 4),) * 3),
    "cumsum": (lambda a: a.cumsum(0) * a, ((4,),)),
    "writes": (lambda a: (a * 2).add_(a.sin()).mul_(a), ((4,),)),
    "two results": (lambda a: (a.sin(), a.cos()), ((3,),)),
    "squares": (F.mse_loss, ((3, 2), (3, 2))),
    "cross_entropy": (lambda a: F.cross_entropy(a, torch.tensor([1, 0])), ((2, 3),)),
    "maximum": (lambda a: a.amax(1), ((3, 4),)),
    "pad": (lambda a: F.pad(a, (1, 2)) * 1.5, ((2, 3),)),
}


@pytest.mark.parametrize("name", CHECKED if EVERY_CASE else ["layer_norm", "writes"])
def test_gradients_and_their_gradients_by_torchs_own_check(name):
    fn, shapes = CHECKED[name]
    compiled = pf.torch.compile(fn, background=False)
    inputs = [float64(*shape) for shape in shapes]
    # The first run is op by op: its last bits differ from those of kernels.
    assert torch.autograd.gradcheck(compiled, inputs, nondet_tol=1e-10)
    assert torch.autograd.gradgradcheck(compiled, inputs, nondet_tol=1e-10)
    served(compiled)


def test_gradients_of_gradients_of_gradients():
    compiled = pf.torch.compile(lambda x: x**3 * 5, background=False)
    x = torch.tensor([2.0], requires_grad=True)
    y = compiled(x)
    found = []
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(float(y))
    assert found == [60.0, 60.0, 30.0]
    served(compiled)


def test_one_export_and_one_trace_serve_all_sizes():
    eager, compiled = pair(Block)
    compiles = []
    with torch.no_grad():
        for batch, length in ((3, 6), (2, 10), (5, 7), (4, 12), (7, 3)):
            x = torch.randn(batch, length, 16)
            for _ in range(2):
                torch.testing.assert_close(compiled(x), eager(x), rtol=1e-4, atol=1e-5)
            compiles.append(compiled.state()[0].counters["compiles"])
    served(compiled)
    assert compiled.calls.counters["exports"] == 1
    assert compiled.state()[0].counters["traces"] == 1
    assert compiles[2] == compiles[-1], compiles  # two static ones, and then one that serves all sizes


def test_decisions_by_size_have_exports_of_their_own():
    def fn(x):
        return x.sum(0) if x.shape[0] > 4 else x * 2

    compiled = pf.torch.compile(fn, background=False)
    for rows in (3, 6, 2, 8):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(x), fn(x))
    assert compiled.calls.counters["exports"] == 2
    served(compiled)


def test_structures_numbers_and_names():
    def fn(pair, *, scale, add=None):
        out = {"sum": pair[0] + pair[1] * scale, "rows": pair[0].shape[0], "given": add}
        return out, [pair[0].T]

    compiled = pf.torch.compile(fn, background=False)
    for rows, scale in ((2, 3), (4, 3), (2, 0.5)):
        a, b = torch.randn(rows, 3), torch.randn(rows, 3)
        (out, (turned,)) = compiled((a, b), scale=scale)
        torch.testing.assert_close(out["sum"], a + b * scale)
        assert out["rows"] == rows and out["given"] is None
        assert turned.data_ptr() == a.data_ptr() and turned.stride() == a.T.stride()  # a view, as in torch
    assert compiled.calls.counters["exports"] == 2  # one per number


def test_arguments_and_views_come_back_as_such_and_writes_are_seen():
    def fn(x, y):
        x.mul_(2)
        return x, y[1:], x + y

    compiled = pf.torch.compile(fn, background=False)
    for _ in range(3):
        x, y = torch.ones(3), torch.arange(3.0)
        same, view, total = compiled(x, y)
        assert same is x and x.tolist() == [2.0] * 3
        assert total.tolist() == [2.0, 3.0, 4.0]
        view[0] = 7
        assert y[1] == 7
    x = torch.ones(3)
    compiled(x, x)  # memory that is written to and read under two names is torch's
    assert compiled.calls.counters["torch_calls"] == 1


def test_the_order_in_memory_is_torchs():
    compiled = pf.torch.compile(lambda x: x.transpose(1, 2).contiguous().transpose(1, 2) * 2, background=False)
    x = torch.randn(2, 3, 4)
    for _ in range(3):
        result = compiled(x)
        torch.testing.assert_close(result, x * 2)
        assert result.stride() == (12, 1, 3)


def test_gradients_stop_where_the_model_stops_them():
    def fn(x, y):
        with torch.no_grad():
            scale = (y * y).exp()
        return x * scale + y.detach() * x + y

    compiled = pf.torch.compile(fn, background=False)
    for _ in range(3):
        x, y = float64(3), float64(3)
        expected = torch.autograd.grad(fn(x, y).sum(), (x, y))
        for a, b in zip(torch.autograd.grad(compiled(x, y).sum(), (x, y)), expected, strict=True):
            torch.testing.assert_close(a, b)
    served(compiled)


def test_gradients_of_the_users_own_are_torchs():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    compiled = pf.torch.compile(lambda x: Twice.apply(x) + 1, background=False)
    x = torch.ones(3, requires_grad=True)
    assert torch.autograd.grad(compiled(x).sum(), x)[0].tolist() == [2.0] * 3
    assert "calls went through Dynamo: <lambda> reads Twice, a FunctionMeta" in compiled.explain()
    with torch.no_grad():
        assert compiled(x).tolist() == [2.0] * 3
    assert compiled.calls.counters["dynamo_calls"] == 2


@torch.library.custom_op("profuse_test::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


cube.register_fake(torch.empty_like)
cube.register_autograd(
    lambda ctx, gradient: gradient * 3 * ctx.saved_tensors[0] ** 2,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def test_operators_that_are_missing_are_torchs_between_kernels():
    def fn(x):
        y = cube(x * 2)
        return torch.tanh(y) * x

    compiled = pf.torch.compile(fn, background=False)
    for _ in range(3):
        x = torch.randn(4, requires_grad=True)
        a, b = fn(x), compiled(x)
        torch.testing.assert_close(b, a)
        torch.testing.assert_close(torch.autograd.grad(b.sum(), x), torch.autograd.grad(a.sum(), x))
    calls = compiled.calls
    assert (calls.counters["torch_ops"], calls.counters["torch_calls"]) == (3, 0)
    text = compiled.explain()
    assert "profuse_test::cube" in text and f"{__file__}:{fn.__code__.co_firstlineno + 1}" in text
    assert len(compiled.state()) == 4  # a part on each side, each in two halves


def test_modules_may_change_between_calls():
    eager, compiled = pair(Perceptron)
    x = torch.randn(4, 12)

    def equal():
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), eager(x), rtol=1e-4, atol=1e-6)

    equal()
    for module in (eager, compiled.get_submodule("_orig_mod")):
        with torch.no_grad():
            module.layers[0].weight.mul_(2)  # in place
        module.layers[3].weight.data = module.layers[3].weight.data * 3  # other memory
    equal()
    for module in (eager, compiled.get_submodule("_orig_mod")):
        module.layers[2].eps = 10.0  # a number that the code reads
    equal()
    for module in (eager, compiled.get_submodule("_orig_mod")):
        module.layers[1] = nn.ReLU()
    equal()
    served(compiled)


def test_sums_of_sizes_are_sizes():
    def fn(*arrays):
        return torch.tanh(torch.cat(arrays).sum() + torch.zeros(torch.sym_sum([x.shape[0] for x in arrays])))

    compiled = pf.torch.compile(fn, background=False)
    for k in range(3):
        arrays = [torch.randn(n + k) for n in (3, 4, 5)]
        torch.testing.assert_close(compiled(*arrays), fn(*arrays))
    served(compiled)


def test_what_a_module_stores_while_it_runs_is_not_a_tensor_of_the_trace():
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache = {}

        def forward(self, x):
            if "scale" not in self.cache:
                self.cache["scale"] = x.new_ones(3) * 2
            return x * self.cache["scale"]

    compiled = pf.torch.compile(Cached(), background=False)
    for _ in range(3):
        assert compiled(torch.ones(3)).tolist() == [2.0] * 3
    assert type(compiled.cache["scale"]) is torch.Tensor
    assert "Cached.cache is a dict" in compiled.explain() and compiled.calls.counters["dynamo_calls"] == 3


def test_training_and_evaluation_have_graphs_of_their_own():
    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x) * 2

    compiled = pf.torch.compile(Dropped(), background=False)
    x = torch.ones(64, 64, requires_grad=True)
    first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second) and set(first.unique().tolist()) == {0.0, 4.0}
    assert abs(float((first > 0).float().mean()) - 0.5) < 0.05
    (gradient,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(gradient, first.detach())  # of the same numbers
    draws = []
    for _ in range(2):
        pf.manual_seed(3)
        draws.append(compiled(x).detach())
    assert torch.equal(*draws)
    compiled.eval()
    assert torch.equal(compiled(x), x * 2)
    served(compiled)


def test_recorded_casts_of_autocast():
    eager, compiled = pair(Perceptron)
    x = torch.randn(4, 12)
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            expected, result = eager(x), compiled(x)
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected, rtol=3e-2, atol=3e-2)
    served(compiled)


def test_checkpoints_around_compiled_functions():
    from torch.utils.checkpoint import checkpoint

    eager, compiled = pair(Perceptron)
    x = torch.randn(4, 12, requires_grad=True)
    expected = torch.autograd.grad(eager(x).square().sum(), x)[0]
    for _ in range(3):
        compiled(x).square().sum().backward()
    for _ in range(3):
        result = checkpoint(compiled, x, use_reentrant=False)
        torch.testing.assert_close(torch.autograd.grad(result.square().sum(), x)[0], expected, rtol=1e-4, atol=1e-5)
    served(compiled)


def test_a_write_to_what_a_gradient_needs_is_an_error_as_in_torch():
    compiled = pf.torch.compile(lambda x, w: x * w, background=False)
    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    y = compiled(x, w).sum()
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_errors_are_torchs():
    compiled = pf.torch.compile(lambda x, y: x @ y, background=False)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        compiled(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(pf.ArgumentError, match=r"torch\.compile takes a module or a function"):
        pf.torch.compile(3)


def test_a_file_serves_another_process(tmp_path):
    _, compiled = pair(Perceptron)
    x = torch.randn(4, 12)
    with torch.no_grad():
        for _ in range(3):
            expected = compiled(x)
        compiled.save(tmp_path / "model.profuse")
        loaded = pf.load(tmp_path / "model.profuse")
        torch.testing.assert_close(loaded(x)[0], expected)
        assert loaded.state().counters["profiles_restored"] == 1


@pytest.mark.parametrize("name", MODELS if EVERY_CASE else ["perceptron"])
@torch._dynamo.config.patch(allow_rnn=True)  # by default Dynamo leaves recurrent layers to torch
def test_the_backend_of_torch_compile(name):
    kind, inputs = MODELS[name]
    eager = kind()
    model = copy.deepcopy(eager)
    torch._dynamo.reset()
    others = set(pf.torch.dynamo_graphs())
    compiled = torch.compile(model, backend="profuse", options={"background": False})
    x = inputs()
    for _ in range(3):
        a, b = eager(x), compiled(x)
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
        for p, q in zip(
            torch.autograd.grad(a.square().mean(), list(eager.parameters())),
            torch.autograd.grad(b.square().mean(), list(model.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(q, p, rtol=1e-3, atol=1e-5)
    graphs = set(pf.torch.dynamo_graphs()) - others
    assert graphs and not any(graph.torch_calls for graph in graphs)
    assert all(graph.wait() for graph in graphs)
    assert any(f.state().tier == "optimized" for graph in graphs for f in graph.functions())
    torch._dynamo.reset()
