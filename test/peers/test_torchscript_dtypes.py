"""Types of TorchScript's results against torch.jit: numbers in promotion, narrow floats, complex numbers, tuples."""

from __future__ import annotations

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and says so at each use

from script_conformance import check_same  # noqa: E402 - it imports torch


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(3,), ()], ids=str)
def test_numbers_of_traces_are_numbers_in_promotion(tmp_path, dtype, shape):
    """A trace has tensors of float64 and int64 for them; tensors of the user's count as such where torch says so."""
    double, whole = torch.tensor(2.5, dtype=torch.float64), torch.tensor(2, dtype=torch.int32)

    def numbers(x):
        y = x + 1
        return y * 2.5, 2.5 * y, y + 2, y - 2.5, y / 2.5, 2.5 / y, torch.add(y, 2, alpha=3), y // 2, y > 1.5, y**2

    def tensors(x):
        y = x + 1
        return y * double, double * y, y + whole, whole + y, y - double, y / whole, torch.maximum(y, whole), y % double

    x = torch.ones(shape).to(dtype)
    for function in (numbers, tensors):
        torch.jit.trace(function, (x,), check_trace=False).save(str(tmp_path / "traced.pt"))
        f, traced = pf.load(tmp_path / "traced.pt", background=False), torch.jit.load(str(tmp_path / "traced.pt"))
        for _ in range(3):
            check_same(f(x), traced(x))


def test_frozen_tensors_without_axes_are_numbers():
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.tensor(2.5, dtype=torch.float64))

        def forward(self, x):
            return x.mean() * self.scale, self.scale * x.mean()

    frozen = torch.jit.freeze(torch.jit.script(Scaled().eval()))
    f = pf.torch.script(frozen, background=False)
    for x in (torch.randn(3), torch.randn(4), torch.randn(4)):
        check_same(f(x), frozen(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_activations_with_numbers(dtype):
    functional = torch.nn.functional

    def activated(x):
        inner = functional.elu(x, 0.5), functional.elu(x), functional.celu(x, 2.0), functional.selu(x)
        return inner, x.clamp(0, 1), x.clamp(0.25, 1), x.clamp(min=0.0), functional.hardtanh(x, -0.5, 0.5)

    x = torch.linspace(-2, 2, 9).to(dtype)
    traced = torch.jit.trace(activated, (x,))
    f = pf.torch.script(traced, background=False)
    for _ in range(3):
        check_same(f(x), traced(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_functions_of_narrow_floats_keep_these(dtype):
    def functions(x):
        return torch.sigmoid(x), torch.erf(x), torch.special.expit(x), torch.special.ndtr(x), x.sigmoid() * x

    x = torch.linspace(-2, 2, 9).to(dtype)
    f = pf.torch.script(torch.jit.script(functions), background=False)
    compiled = pf.torch.compile(functions)
    for _ in range(3):
        for given in (f(x), compiled(x)):
            for ours, theirs in zip(given, functions(x), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU])
def test_recurrent_layers_of_narrow_floats(layer):
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer(4, 3)

        def forward(self, x):
            return self.layer(x)

    script = torch.jit.script(Layer().to(torch.bfloat16))
    f, x = pf.torch.script(script, background=False), torch.randn(5, 2, 4).to(torch.bfloat16)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(f(x)[0], script(x)[0], rtol=2e-2, atol=2e-2)


def test_logarithms_of_complex_determinants_are_complex():
    def logarithms(x):
        return torch.logdet(x), torch.linalg.slogdet(x)

    x = torch.randn(3, 3, dtype=torch.complex64)
    script = torch.jit.script(logarithms)
    f = pf.torch.script(script, background=False)
    for matrix in (x, -x, torch.stack([x, x.t()])):
        for _ in range(2):
            check_same(f(matrix), script(matrix))


def test_tuples_of_operators_are_plain():
    def largest(x):
        return torch.max(x, 0)

    def several(x):
        return x, torch.sort(x, 1), [torch.topk(x, 2)]

    x = torch.tensor([[1.0, 3.0, 2.0], [4.0, 0.0, 5.0]])
    for function in (largest, several):
        script = torch.jit.script(function)
        f = pf.torch.script(script, background=False)
        for _ in range(3):
            check_same(f(x), script(x))
            assert type(f(x)) is type(script(x)) is tuple


def test_weights_without_axes_have_a_dtype_of_their_own_in_interpolations():
    def between(x, y, weight):
        return torch.lerp(x, y, weight)

    script = torch.jit.script(between)
    f = pf.torch.script(script, background=False)
    for shape in ((3,), ()):
        for dtype in (torch.float16, torch.float32):
            x, y, weight = torch.ones(shape, dtype=dtype), torch.zeros(shape, dtype=dtype), torch.tensor(0.75).double()
            for _ in range(3):
                check_same(f(x, y, weight), script(x, y, weight))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_nan_has_a_place_in_orders(dtype):
    """The largest one; among unique elements each is one of its own."""

    def ordered(x, y):
        up, down = x.sort(), x.sort(descending=True)
        parts = x.topk(3)[0], x.topk(3, largest=False)[0], x.kthvalue(2)[0], x.median(), x.nanmedian()
        found = torch.searchsorted(up[0], y), torch.bucketize(y, up[0], right=True)
        return up, down, x.argsort(), parts, found, torch.unique(x, return_counts=True, return_inverse=True)

    nan, inf = float("nan"), float("inf")
    y = torch.tensor([1.0, 0.5, -7.0]).to(dtype)
    script = torch.jit.script(ordered)
    f = pf.torch.script(script, background=False)
    some = [3.0, nan, -inf, 1.0, 0.0, inf, nan, 3.0], [3.0, 2.0, -inf, 1.0], [2.0, nan, -1.0, 3.0]
    for elements in some:
        x = torch.tensor(elements).to(dtype)
        for _ in range(2):
            check_same(f(x, y), script(x, y))


def test_the_logarithm_of_the_gamma_function_at_its_ends():
    x = torch.tensor([-float("inf"), float("inf"), float("nan"), 0.0, -1.0, 0.5])
    script = torch.jit.script(logarithm_of_gamma)
    f = pf.torch.script(script, background=False)
    for _ in range(3):
        check_same(f(x), script(x))


def logarithm_of_gamma(x):
    return torch.lgamma(x)


def test_texts_of_floats_are_those_of_cpp():
    script = torch.jit.script(texts_of)
    f = pf.torch.script(script, background=False)
    for number in (2.0, -0.0, 0.1, 1e-7, 123456789.123, 1e17, 1e20, -5.0, float("inf"), float("nan")):
        assert f(number, 3) == script(number, 3)


def texts_of(number: float, count: int):
    several = [number, number]
    formatted = f"{number} {count}", "%s of %d" % (number, count)  # noqa: UP031 - TorchScript has it, too
    return str(number), formatted, str(several), str((number, count)), str((count,))
