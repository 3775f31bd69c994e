"""Tensors that are read by places in memory in compiled functions; skipped without torch."""

from __future__ import annotations

import profuse as pf
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

FUNCTIONS = {
    "a result": lambda x: (x * 2).as_strided((3, 2), (2, 1), 1).sin(),
    "a turned result": lambda x: (x.t() * 2).as_strided((3, 2), (1, 2)).sin(),
    "an argument": lambda x: torch.as_strided(x, (2, 3), (3, 1)).cos(),
    "an argument of its own sizes": lambda x: x.as_strided((x.shape[1], x.shape[0]), (1, x.shape[1])) + 1,
    "a write in place": lambda x: _written(x.clone()),
}


def _written(x):
    x.as_strided((2,), (2,)).mul_(5)
    return x + 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_places_are_those_of_torch(name):
    fn = FUNCTIONS[name]
    compiled = pf.torch.compile(fn, background=False)
    for count in (4, 4, 4, 6, 6):
        x = torch.randn(count, 5, dtype=torch.float64, requires_grad=True)
        pairs = []
        for f in (fn, compiled):
            y = f(x)
            pairs.append((y, torch.autograd.grad((y * torch.arange(y.numel()).reshape(y.shape)).sum(), x)[0]))
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(b, a)
        assert pairs[0][0].stride() == pairs[1][0].stride()
    assert not compiled.calls.counters["torch_calls"] and not compiled.calls.counters["torch_ops"], compiled.explain()


def test_offsets_count_from_the_beginning_of_memory():
    fn = lambda x: x.as_strided((2,), (1,), 0) * 2  # noqa: E731
    compiled = pf.torch.compile(fn, background=False)
    for x in (torch.arange(6.0), torch.arange(6.0)[2:], torch.arange(6.0)[3:]):
        with torch.no_grad():
            assert compiled(x).tolist() == fn(x).tolist() == [0, 2]


def test_parts_of_memory_are_torchs():
    fn = lambda x: (x * 2)[1:].as_strided((2, 2), (1, 1)) + 1  # noqa: E731
    compiled = pf.torch.compile(fn, background=False)
    x = torch.arange(6.0)
    for _ in range(2):
        assert compiled(x).tolist() == fn(x).tolist()
    assert "reads memory as it lies" in compiled.explain()


def test_what_is_written_by_places_has_the_gradient_of_what_is_written():
    """torch's own gradient of `as_strided_scatter` leaves out what is not written."""

    def by_places(x):
        return torch.as_strided_scatter(x * 3, x[0, :2], (2,), (3,))

    def by_indices(x):
        return (x * 3).index_put((torch.tensor([0, 0]), torch.tensor([0, 3])), x[0, :2])

    compiled = pf.torch.compile(by_places, background=False)
    for _ in range(3):
        x = torch.randn(3, 5, requires_grad=True)
        torch.testing.assert_close(compiled(x), by_places(x))
        wanted, found = (torch.autograd.grad(f(x).sin().sum(), x)[0] for f in (by_indices, compiled))
        torch.testing.assert_close(found, wanted)
    assert not compiled.calls.counters["torch_ops"]


RESAMPLED = {
    "linear": lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "cubic": lambda x: torch.nn.functional.interpolate(x, size=(4, 6), mode="bicubic"),
    "nearest": lambda x: torch.nn.functional.interpolate(x, scale_factor=1.5),
    "by a grid": lambda x: torch.nn.functional.grid_sample(x, x.new_zeros(x.shape[0], 3, 2, 2), align_corners=False),
    "by indices": lambda x: x[:, :, torch.tensor([1, 0])[:, None], torch.tensor([0, 2])],
    "channels last": lambda x: torch.nn.functional.interpolate(
        x.contiguous(memory_format=torch.channels_last), scale_factor=2
    ),
}


@pytest.mark.parametrize("name", RESAMPLED)
def test_results_lie_as_those_of_torch_in_each_tier(name):
    fn = RESAMPLED[name]
    compiled = pf.torch.compile(fn, background=False)
    for count in (5, 5, 5, 7):
        x = torch.randn(2, 3, count, 5)
        result, expected = compiled(x), fn(x)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
        assert result.stride() == expected.stride()
    assert not compiled.calls.counters["torch_calls"], compiled.explain()
