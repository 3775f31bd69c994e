"""What models of torch do besides computing: compiled, they do the same, or are left to torch with a reason."""

from __future__ import annotations

import copy
import pickle
import threading

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def shown(value):
    """A value as text: dtypes, shapes and flags of tensors, and types of numbers."""
    if isinstance(value, torch.Tensor):
        flags = value.dtype, tuple(value.shape), value.requires_grad
        return repr((*flags, [x if x == x else "nan" for x in value.detach().flatten().tolist()]))
    if isinstance(value, dict):
        return repr({k: shown(x) for k, x in value.items()})
    return repr([shown(x) for x in value]) if isinstance(value, (list, tuple)) else repr(value)


def alike(model, *calls, twin=None):
    """The compiled model, after calls that gave what the model gives; arguments are made anew for each."""
    twin = copy.deepcopy(model) if twin is None else twin
    compiled = pf.torch.compile(twin, background=False)
    for make in calls:
        mine, theirs = make(), make()
        assert shown(compiled(*mine)) == shown(model(*theirs))
        assert shown(mine) == shown(theirs)
    return compiled


def ones(*shape):
    return lambda: (torch.ones(*shape),)


def writes_a_dict(d):
    d["y"] = d["x"] * 2
    return d["y"] + 1


def extends_a_list(x, items):
    items.append(x * 2)
    return x + 1


def takes_from_a_list(items):
    return items.pop() * 2


def replaces_a_number(x, items):
    items[0] = items[0] * 1.0
    return x * items[0]


def turns(x):
    x.t_()
    return x * 2


def gives_its_list(x, items):
    return items


ARGUMENTS = {
    "a dict is written to": (writes_a_dict, lambda: ({"x": torch.ones(3)},), "changes a list or a dict"),
    "a list grows": (extends_a_list, lambda: (torch.ones(2), []), "changes a list or a dict"),
    "a list shrinks": (takes_from_a_list, lambda: ([torch.ones(1), torch.ones(2)],), "changes a list or a dict"),
    "a number changes its type": (replaces_a_number, lambda: (torch.arange(2), [2]), "changes a list or a dict"),
    "a shape changes in place": (turns, ones(2, 3), "another shape in place"),
    "a list comes back": (gives_its_list, lambda: (torch.ones(2), [1]), "returns a list or a dict that is an argument"),
    "numbers are read from others": (lambda x: x.view(torch.int32), ones(2), "reads it as other numbers"),
    "a set is made": (lambda x: {1, 2}, ones(2), "is a set, which each call makes anew"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_done_to_arguments_is_torchs(name):
    function, make, reason = ARGUMENTS[name]
    compiled = alike(function, make, make)
    assert (compiled.calls.counters["torch_calls"], compiled.calls.counters["exports"]) == (2, 0)
    assert reason in compiled.explain()


class Changing(nn.Module):
    """A module that does something to itself by `act`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.listed, self.spare = nn.Linear(2, 2), nn.ModuleList([nn.Linear(2, 2)]), nn.Tanh()
        self.register_buffer("last", torch.zeros(2))
        self.options = {"k": 2.0}


class Registering(Changing):
    def forward(self, x):
        self.register_buffer("met", x * 2)
        return self.inner(x)


class Growing(Changing):
    def forward(self, x):
        for layer in self.listed:
            x = layer(x)
        self.listed.append(self.spare)
        return x


class Evaluating(Changing):
    def forward(self, x):
        self.eval()
        return F.dropout(self.inner(x), 0.5, self.training)


class Clearing(Changing):
    def forward(self, x):
        self.zero_grad()
        return self.inner(x)


class Looking(Changing):
    def forward(self, x):
        return x * self.__dict__["options"]["k"]


@pytest.mark.parametrize("kind", [Registering, Growing, Evaluating, Clearing, Looking])
def test_what_is_done_to_modules_is_torchs(kind):
    eager = kind()
    other = copy.deepcopy(eager)
    torch._dynamo.reset()
    compiled = alike(eager, ones(1, 2), ones(1, 2), twin=other)
    assert compiled.calls.counters["exports"] == 0
    eager.options["k"] = other.options["k"] = 5.0
    assert shown(compiled(torch.ones(1, 2))) == shown(eager(torch.ones(1, 2)))
    for model in (eager, other):
        model.inner.weight.grad = torch.ones(2, 2)
    compiled(torch.ones(1, 2)), eager(torch.ones(1, 2))
    assert shown(other.inner.weight.grad) == shown(eager.inner.weight.grad)
    assert [name for name, _ in other.named_buffers()] == [name for name, _ in eager.named_buffers()]
    assert (len(other.listed), other.training) == (len(eager.listed), eager.training)
    torch._dynamo.reset()


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2

    def forward(self, x):
        return 1 / (x * (self.k[0] if isinstance(self.k, tuple) else self.k))


def test_numbers_that_are_equal_are_not_the_same():
    alike(lambda x, k: 1 / (x * k), *[lambda k=k: (torch.ones(2), k) for k in (0.0, -0.0, 2, 2.0, True, 1)])
    alike(lambda d: sum(x * k for k, x in d.items()), *[lambda k=k: ({k: torch.arange(2)},) for k in (1, 1.0, True)])
    eager, other = Scaled(), Scaled()
    compiled = pf.torch.compile(other, background=False)
    for k in (2, 2.0, True, 1, 0.0, -0.0, [3.0], [4.0], [5.0]):
        del eager.k, other.k  # so that a tuple may get the address of one before it
        eager.k = other.k = tuple(k) if type(k) is list else k
        assert shown(compiled(torch.arange(2))) == shown(eager(torch.arange(2)))


def names_by_size(x):
    return {f"n{x.shape[0]}": x * 2, f"{x.shape[1]}": x * len(str(x.shape[0])), "half": x.shape[0] / 2}


def asks_for_a_number(x):
    return x * 2 if isinstance(x.shape[0], int) else x * 3


def matches_a_number(x):
    match x.shape[0]:
        case int():
            return x * 2
    return x * 3


@pytest.mark.parametrize("function", [names_by_size, asks_for_a_number, matches_a_number])
def test_sizes_are_numbers_to_python(function):
    compiled = alike(function, *[ones(n, 2) for n in (3, 4, 12)])
    assert (compiled.calls.counters["torch_calls"], compiled.calls.counters["exports"]) == (0, 3)


def divides_a_size(x):
    return x * divmod(x.shape[0], 2)[0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (asks_for_a_number, "its code asks whether something is an int or a float"),
        (divides_a_size, "TypeError: unsupported operand type(s) for divmod()"),
    ],
)
def test_exports_for_one_size_are_counted_with_the_reason(function, why):
    compiled = alike(function, *[ones(n, 2) for n in (3, 4, 3)])
    assert (compiled.calls.counters["fixed_exports"], compiled.calls.counters["exports"]) == (2, 2)
    assert f"  2 exports hold for one combination of sizes: {why}" in compiled.explain()
    assert any(why in event.reason for event in pf.events() if event.kind == "slower")
    wanted = pf.torch.compile(function, dynamic=False, background=False)
    wanted(torch.ones(3, 2))
    assert wanted.calls.counters["exports"] == 1 and not wanted.calls.fixed


def without_any_graph(x):
    return torch.hash_tensor(x)


def test_what_torch_runs_as_a_whole_is_counted_with_the_reason():
    compiled = alike(without_any_graph, *[ones(4)] * 3)
    (why, count), *others = compiled.calls.reasons.items()
    assert "has no operator that is supported: hash_tensor (1" in why and count == 3 and not others
    assert compiled.calls.counters["torch_calls"] == 3
    torch._dynamo.reset()
    through_dynamo = torch.compile(without_any_graph, backend="profuse")
    before = {id(graph) for graph in pf.torch.dynamo_graphs()}
    for _ in range(3):
        torch.testing.assert_close(through_dynamo(torch.ones(4)), without_any_graph(torch.ones(4)))
    (graph,) = [graph for graph in pf.torch.dynamo_graphs() if id(graph) not in before]
    assert graph.torch_calls == 3 and not graph.calls() and not graph.functions() and graph.wait()
    assert "torch runs it as a whole: " in graph.explain() and "hash_tensor (1" in graph.explain()
    torch._dynamo.reset()


def test_results_share_memory_as_in_torch():
    def fn(x):
        y = x * 2
        return y, y, y[0], y.view(-1), x.detach()

    compiled = pf.torch.compile(fn, background=False)
    for rows in (2, 2, 3, 4):
        x = torch.ones(rows, 2, requires_grad=True)
        whole, same, row, flat, given = compiled(x)
        assert same is whole and flat.data_ptr() == whole.data_ptr() and row.data_ptr() == whole.data_ptr()
        assert [t.requires_grad for t in (whole, row, given)] == [True, True, False]
        assert given.data_ptr() == x.data_ptr()
        (gradient,) = torch.autograd.grad((whole.sum() + row.sum() + flat.sum()), x)
        assert gradient[0].tolist() == [6.0, 6.0] and gradient[1].tolist() == [4.0, 4.0]
        with torch.no_grad():
            flat.add_(1)
            assert whole.unique().tolist() == [3.0]
    assert (compiled.calls.counters["exports"], compiled.calls.counters["torch_calls"]) == (1, 0)
    parts = alike(lambda x: (x * 2).chunk(2, -1), ones(2, 4), ones(3, 4))  # apart from each other
    assert (parts.calls.counters["exports"], parts.calls.counters["torch_calls"]) == (1, 0)
    shared = pf.torch.compile(lambda x: ((y := x * 2)[:2], y[1:]), background=False)
    first, second = shared(torch.ones(3))
    first.add_(1)
    assert second.tolist() == [3.0, 2.0] and "share elements in memory" in shared.explain()


def test_views_of_arguments_with_strides_of_their_own():
    fn = lambda x: (x.T, x[::2], x.diagonal(), x.unfold(0, 2, 1))  # noqa: E731
    base = torch.arange(30.0).reshape(5, 6)
    compiled = pf.torch.compile(fn, background=False)
    for x in (base[:3, :3], base[1:4, 2:5], base[:4, :4]):
        for a, b in zip(compiled(x), fn(x), strict=True):
            assert shown(a) == shown(b) and a.stride() == b.stride() and a.data_ptr() == b.data_ptr()
    assert compiled.calls.counters["torch_calls"] == 0


def factored(a):
    try:
        return torch.linalg.cholesky(a * 2) + 1
    except RuntimeError:
        return torch.linalg.cholesky(a + 10 * torch.eye(2))


LEFT = {
    "exceptions of contents": (factored, lambda: (-torch.eye(2),), "handles exceptions"),
    "whether it is a leaf": (lambda x: x * 2 if x.is_leaf else x, ones(2), "asks for is_leaf"),
    "its version": (lambda x: x * x._version, lambda: (torch.ones(2).add_(1),), "asks for _version"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_only_contents_and_origins_tell_is_torchs(name):
    function, make, reason = LEFT[name]
    compiled = alike(function, make, make)
    assert reason in compiled.explain()
    assert (compiled.calls.counters["torch_calls"], compiled.calls.counters["dynamo_calls"]) == (2, 0)


def test_the_state_of_torch_around_a_call():
    make = lambda x: torch.zeros(2) + x  # noqa: E731
    compiled = alike(make, lambda: (torch.ones(2, dtype=torch.int64),))
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(torch.ones(2, dtype=torch.int64)).dtype == torch.float64
        assert "default dtype" in compiled.explain()
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert pf.torch.compile(lambda x: torch.zeros(2))(torch.ones(2, device="cpu")).device.type == "meta"
    model, met = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    compiled = pf.torch.compile(model, background=False)
    compiled(torch.ones(1, 2))
    handle = nn.modules.module.register_module_forward_hook(lambda m, *_: met.append(type(m)))
    try:
        compiled(torch.ones(1, 2))
        assert met.count(nn.Tanh) == 1
    finally:
        handle.remove()


def test_classes_and_tables_may_change():
    class First(nn.Module):
        def forward(self, x):
            return x * 2

    class Second(First):
        def forward(self, x):
            return x * 3

    model = First()
    compiled = pf.torch.compile(model, background=False)
    assert compiled(torch.ones(1)).item() == 2
    model.__class__ = Second
    assert compiled(torch.ones(1)).item() == 3
    Second.forward = lambda self, x: x * 4
    assert compiled(torch.ones(1)).item() == 4

    class Summed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x, *, k=1.0):
            return k * x * sum(p.sum() for p in self.parameters())

    eager = Summed()
    compiled = alike(eager, ones(2), twin=eager)
    eager.inner.register_parameter("more", nn.Parameter(torch.ones(1)))
    assert shown(compiled(torch.ones(2))) == shown(eager(torch.ones(2)))
    Summed.forward.__kwdefaults__["k"] = 3.0
    assert shown(compiled(torch.ones(2))) == shown(eager(torch.ones(2)))


def test_a_compiled_module_is_set_copied_and_pickled_like_the_module():
    compiled = pf.torch.compile(nn.Linear(2, 2), background=False)
    x = torch.ones(1, 2)
    expected = compiled(x)
    copied, read = copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))
    with torch.no_grad():
        copied.weight.zero_()
    torch.testing.assert_close(compiled(x), expected)
    torch.testing.assert_close(read(x), expected)
    assert torch.equal(copied(x)[0], copied.bias) and copied.calls.counters["exports"] == 1
    compiled.bias = None
    torch.testing.assert_close(compiled(x), F.linear(x, compiled.weight))
    compiled.eval()
    assert not compiled.training and not compiled.get_submodule("_orig_mod").training


def test_threads_may_call_while_another_exports():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    compiled = pf.torch.compile(model, background=False)
    expected, found = model(torch.ones(3, 4)).detach(), []

    def call():
        for rows in (1, 2, 3):
            found.append(compiled(torch.ones(rows, 4)).detach()[0])
            found.append(model(torch.ones(rows, 4)).detach()[0])

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24
    for row in found:
        torch.testing.assert_close(row, expected[0])


def test_dynamo_does_not_trace_this_package():
    net = nn.Linear(2, 1)

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(step, backend="profuse", options={"background": False})
    x = torch.ones(3, 2)
    for _ in range(3):
        gradients = []
        for function in (compiled, step):
            net.zero_grad()
            torch.testing.assert_close(function(x), step(x).detach())
            gradients.append(net.weight.grad.clone())
        torch.testing.assert_close(*gradients)
    assert torch._dynamo.utils.counters["frames"]["total"] <= 4  # those of `step`, and of what it is broken into
    torch._dynamo.reset()


def test_memory_that_a_module_has_twice():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("a", torch.arange(4.0))
            self.register_buffer("b", self.a[1:3])

        def forward(self, x):
            self.a.add_(1)
            return x * self.b

    compiled = pf.torch.compile(Twice(), background=False)
    assert [compiled(torch.ones(2)).tolist() for _ in range(2)] == [[2.0, 3.0], [3.0, 4.0]]
    assert compiled.calls.counters["torch_calls"] == 2


def test_averages_of_parameters_in_a_model_that_is_trained():
    class Averaged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.average = nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)

        def forward(self, x):
            with torch.no_grad():
                self.average.weight.lerp_(self.inner.weight, 0.5)
            return self.inner(x) + self.average(x) * x.sum()

    eager = Averaged()
    other = copy.deepcopy(eager)
    compiled = pf.torch.compile(other, background=False)
    for _ in range(3):
        for model in (eager, compiled):
            x = torch.ones(1, 2, requires_grad=True)
            model(x).sum().backward()
        for a, b in zip(eager.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(b, a)
            torch.testing.assert_close(b.grad, a.grad)
    assert (compiled.calls.counters["exports"], compiled.calls.counters["torch_calls"]) == (0, 3)
    assert "a write where gradients are off" in compiled.explain()


def test_gradients_that_no_graph_has_are_torchs():
    for model, arguments in (
        (nn.Embedding(5, 2, sparse=True), (torch.tensor([1, 1]),)),
        (nn.EmbeddingBag(5, 2), (torch.tensor([0, 1, 2]), torch.tensor([0, 2]))),
    ):
        compiled = pf.torch.compile(copy.deepcopy(model), background=False)
        for one in (compiled, model):
            one(*arguments).sum().backward()
        assert compiled.weight.grad.is_sparse == model.weight.grad.is_sparse
        torch.testing.assert_close(compiled.weight.grad.to_dense(), model.weight.grad.to_dense())


def test_parameters_written_to_in_a_model_that_is_trained():
    class Decaying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            with torch.no_grad():
                self.w.mul_(2)
            return x * self.w

    eager, other = Decaying(), Decaying()
    compiled = pf.torch.compile(other, background=False)
    for _ in range(2):
        for model in (eager, compiled):
            model(torch.ones(2)).sum().backward()
        assert shown([other.w, other.w.grad]) == shown([eager.w, eager.w.grad])


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (lambda x, y: x // y, 1, 0),
        (lambda x, y: x % y, 1, 0),
        (lambda x, y: x.gather(0, y), 0, -1),
        (lambda x, y: x.index_select(0, y), 0, -1),
        (lambda x, y: x.scatter(0, y, 5), 0, -1),
    ],
)
def test_errors_of_contents_are_torchs(function, good, bad):
    compiled = pf.torch.compile(function, background=False)
    x = torch.arange(3)
    for _ in range(3):
        good_one = torch.full((2,) if bad else (3,), good)
        assert torch.equal(compiled(x, good_one), function(x, good_one))
    with pytest.raises((RuntimeError, IndexError)) as theirs:
        function(x, torch.full_like(good_one, bad))
    with pytest.raises(theirs.type) as ours:
        compiled(x, torch.full_like(good_one, bad))
    assert str(ours.value) == str(theirs.value)
    assert compiled.state()[0].tier == "optimized"
