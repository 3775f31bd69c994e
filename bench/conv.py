"""Convolutions of images: torch, whose CPU code is oneDNN's, against ours.

The layers are those of residual networks, at one image. Each way runs in turn, round after round,
on one thread by default; the times are those that the thread itself has had of the processor, so
that other programs do not count. Figures are ratios of the least times, torch / ours; 1 = as fast.
The spread is that of the ratios of single rounds, first and third quartile.

    python bench/conv.py [--threads 2] [--only REGEX] [--rounds 30] [--images 1] [--json out.json]

*op* is ``pf.op("conv2d")``, *NumPy form* the same convolution written as windows and a product of
matrices, and compiled, *NumPy* that form run by NumPy. *gradients* are those by the image and the
weights, for a given gradient of the result, without the forward run in torch's time.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

_PARSER = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
_PARSER.add_argument("--threads", type=int, default=1)
_PARSER.add_argument("--only", default="", help="part of a row's name, as a regular expression")
_PARSER.add_argument("--rounds", type=int, default=30)
_PARSER.add_argument("--images", type=int, default=1)
_PARSER.add_argument("--json", help="file for the figures")
OPTIONS = _PARSER.parse_args() if __name__ == "__main__" else _PARSER.parse_args([])

# The libraries read these once, when they are loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PROFUSE_THREADS"):
    os.environ[_name] = str(OPTIONS.threads)
os.environ["PROFUSE_CACHE"] = "off"

import numpy as np  # noqa: E402
import profuse as pf  # noqa: E402
import torch  # noqa: E402
from common import timed, timed_by_cpu, write_results  # noqa: E402
from torch.nn import functional  # noqa: E402


@dataclass(frozen=True)
class Layer:
    """Channels, rows and columns of an image, results, side of a window, stride, padding, groups."""

    channels: int
    side: int
    outputs: int
    window: int
    stride: int = 1
    padding: int = 0
    groups: int = 1


LAYERS = {
    "56x56 64->64 3x3": Layer(64, 56, 64, 3, padding=1),
    "28x28 128->128 3x3": Layer(128, 28, 128, 3, padding=1),
    "14x14 256->256 3x3": Layer(256, 14, 256, 3, padding=1),
    "7x7 512->512 3x3": Layer(512, 7, 512, 3, padding=1),
    "56x56 64->256 1x1": Layer(64, 56, 256, 1),
    "224x224 3->64 7x7 s2": Layer(3, 224, 64, 7, stride=2, padding=3),
    "56x56 64->128 3x3 s2": Layer(64, 56, 128, 3, stride=2, padding=1),
}
OTHERS = {
    "56x56 64->64 3x3 g4": Layer(64, 56, 64, 3, padding=1, groups=4),
    "56x56 128 depthwise 3x3": Layer(128, 56, 128, 3, padding=1, groups=128),
    "56x56 128 depthwise 5x5": Layer(128, 56, 128, 5, padding=2, groups=128),
    "14x14 512 depthwise 3x3": Layer(512, 14, 512, 3, padding=1, groups=512),
}
conv2d = pf.op("conv2d")


def numpy_form(x: np.ndarray, w: np.ndarray, layer: Layer) -> np.ndarray:
    """The convolution as a product of the weights with a matrix of windows."""
    count, size, side, p, s = len(x), layer.window, layer.window, layer.padding, layer.stride
    if p:
        x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    parts = np.lib.stride_tricks.sliding_window_view(x, (size, side), (2, 3))[:, :, ::s, ::s]
    rows, columns = parts.shape[2:4]
    matrix = parts.transpose(0, 1, 4, 5, 2, 3).reshape(count, layer.channels * size * side, rows * columns)
    return np.matmul(w.reshape(layer.outputs, -1), matrix).reshape(count, layer.outputs, rows, columns)


@dataclass
class Row:
    """Least times of a way in seconds; ``spread``: quartiles of torch / ours over the rounds."""

    name: str
    way: str
    ours: float
    torch: float
    spread: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.torch / self.ours

    def line(self) -> str:
        low, high = self.spread
        return (
            f"{self.name:26}{self.way:12}{self.ours * 1e3:9.3f} ms  torch {self.torch * 1e3:8.3f} ms"
            f"  ratio {self.ratio:5.2f} (rounds {low:.2f} - {high:.2f})"
        )


def arguments(layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """An image and weights, such that results are of the order of 1."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((OPTIONS.images, layer.channels, layer.side, layer.side)).astype(np.float32)
    inner = layer.channels // layer.groups * layer.window**2
    w = rng.standard_normal((layer.outputs, inner)) / np.sqrt(inner)
    return x, w.astype(np.float32).reshape(layer.outputs, -1, layer.window, layer.window)


def compiled(function: Callable[..., object], *args: np.ndarray) -> Callable[[], object]:
    """A call of what a function is compiled to."""
    jitted = pf.jit(background=False)(function)
    for _ in range(4):
        jitted(*args)
    return lambda: jitted(*args)


def forward(layer: Layer) -> tuple[Callable[[], object], dict[str, Callable[[], object]]]:
    """A call of torch, and of each of our ways."""
    x, w = arguments(layer)
    attrs = {"stride": (layer.stride,) * 2, "padding": (layer.padding,) * 2, "groups": layer.groups}
    tx, tw = torch.from_numpy(x), torch.from_numpy(w)

    def reference() -> object:
        with torch.no_grad():
            return functional.conv2d(tx, tw, **attrs)

    ways: dict[str, Callable[[], object]] = {"op": compiled(lambda x, w: conv2d(x, w, **attrs), x, w)}
    if layer.groups == 1:
        ways["NumPy form"] = compiled(lambda x, w: numpy_form(x, w, layer), x, w)
        ways["NumPy"] = lambda: numpy_form(x, w, layer)
    for call in ways.values():
        np.testing.assert_allclose(call(), reference().numpy(), rtol=1e-3, atol=1e-3)
    return reference, ways


def gradients(layer: Layer) -> tuple[Callable[[], object], dict[str, Callable[[], object]]]:
    """A call of torch's reverse run, and of ours, each from a gradient of the result."""
    x, w = arguments(layer)
    attrs = {"stride": (layer.stride,) * 2, "padding": (layer.padding,) * 2, "groups": layer.groups}
    tx, tw = (torch.from_numpy(a).requires_grad_() for a in (x, w))
    result = functional.conv2d(tx, tw, **attrs)
    g = np.random.default_rng(1).standard_normal(result.shape).astype(np.float32)
    tg = torch.from_numpy(g)

    def reference() -> object:
        return torch.autograd.grad(result, (tx, tw), tg, retain_graph=True)

    def ours(x, w, g):
        return pf.grad(lambda x, w: (conv2d(x, w, **attrs) * g).sum(), wrt=(0, 1))(x, w)

    call = compiled(ours, x, w, g)
    for one, other in zip(call(), reference(), strict=True):
        scale = float(np.abs(other.numpy()).max())
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-3, atol=1e-4 * scale)
    return reference, {"gradients": call}


def measured(name: str, layer: Layer, rounds: int) -> Iterator[Row]:
    """Measure one layer."""
    clock = timed_by_cpu if OPTIONS.threads == 1 else timed
    for make in (forward, gradients):
        reference, ways = make(layer)
        calls = [reference, *ways.values()]
        for call in calls:
            call()
        times = [[clock(call) for call in calls] for _ in range(rounds)]
        least = [min(column) for column in zip(*times, strict=True)]
        for k, way in enumerate(ways, 1):
            low, _, high = statistics.quantiles([t[0] / t[k] for t in times], n=4)
            yield Row(name, way, least[k], least[0], (low, high))


def main() -> int:
    torch.set_num_threads(OPTIONS.threads)
    rows = []
    for name, layer in {**LAYERS, **OTHERS}.items():
        if re.search(OPTIONS.only, name):
            for row in measured(name, layer, OPTIONS.rounds):
                print(row.line(), flush=True)
                rows.append(row)
    for way in dict.fromkeys(row.way for row in rows):
        ratios = {row.name: row.ratio for row in rows if row.way == way and row.name in LAYERS}
        if ratios:
            worst = min(ratios, key=ratios.__getitem__)
            mean = statistics.geometric_mean(ratios.values())
            print(f"{way}: torch / ours {mean:.2f} over the layers, least {ratios[worst]:.2f} ({worst})")
    shown = [asdict(row) for row in rows]
    write_results(OPTIONS.json, threads=OPTIONS.threads, images=OPTIONS.images, torch=torch.__version__, rows=shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
