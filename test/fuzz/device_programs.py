"""Random functions for the fuser of device groups: valid for all sizes of their arguments, whose last one is even."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import profuse as pf

SIZES = ((4, 8), (5, 6), (3, 10), (4, 8), (7, 4))
_UNARY = (
    "np.tanh({})",
    "np.exp(np.minimum({}, 1))",
    "np.sqrt(abs({}) + 1)",
    "-{}",
    "{} * 0.5 + 1",
    "np.maximum({}, 0)",
)
_BINARY = ("{} + {}", "{} * {}", "{} - {}", "np.maximum({}, {})", "{} / (abs({}) + 1)")
_NEURAL = ("nn.softmax({}, dim=-1)", "nn.silu({})", "nn.gelu({})", "nn.relu({})", "nn.log_softmax({}, dim=0)")
_NORMS = ("nn.layer_norm({0}, {0}.shape[1:])", "nn.group_norm({}, 2)", "nn.batch_norm({}, None, None, training=True)")
# Kind -> what may be made of it, and of which kind that is.
_VIEWS = {
    "nm": (
        ("{}[:, ::2] + 1", "nh"),
        ("{}[:, ::-1] * 2", "nm"),
        ("{}[::-1]", "nm"),
        ("np.roll({}, 1, axis=1)", "nm"),
        ("{}[1:] - {}[:-1]", "less"),
        ("nn.avg_pool1d({}[None], 2)[0]", "nh"),
        ("np.cumsum({}, axis=1)", "nm"),
        ("np.pad({}, ((0, 0), (1, 1)))[:, 2:]", "nm"),
        ("np.stack([{}, {} * 2], axis=1).sum(axis=1)", "nm"),
    ),
    "nh": (("np.concatenate([{}, {} * 0.5], axis=1)", "nm"), ("np.repeat({}, 2, axis=1)", "nm")),
    "n2h": (("np.swapaxes({}, 1, 2).reshape({}.shape[0], -1)", "nm"), ("{}[:, 0] * {}[:, 1]", "nh")),
    "m": (("np.broadcast_to({}, x.shape) * x", "nm"),),
    "n": (("np.expand_dims({}, 1)", "n1"),),
    "n1": (("np.squeeze({}, axis=1)", "n"),),
}
_LAYOUTS = (
    lambda a: a,
    np.asfortranarray,
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    lambda a: np.ascontiguousarray(a[::-1])[::-1],
)
_CASTS = ("{}.astype(np.float64)", "{}.astype(np.float32)")


@dataclass
class DeviceProgram:
    """A function of three arrays: (n, m), (m,) and (n, 1); m is even.

    Attributes:
        lines: its statements; each assigns a new name.
        results: the names that it returns.
        draws: True if it draws random numbers.
    """

    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    draws: bool = False

    @property
    def source(self) -> str:
        """The function, as Python source."""
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def f(x, b, c):\n{body}\n    return {', '.join(self.results)},\n"

    def function(self) -> Callable[..., Any]:
        """The function."""
        scope = {"np": np, "nn": pf.nn}
        exec(self.source, scope)
        return scope["f"]


def generate(seed: int, *, smooth: bool = False) -> DeviceProgram:
    """A random function; ``smooth``: one whose gradients do not jump."""
    draw = random.Random(seed)
    program = DeviceProgram()
    # Name -> kind of its shape: "nm" (n, m), "nh" (n, m // 2), "m", "n1", "n", "mn", "n2h" (n, 2, m // 2), "nn",
    # "less" (n - 1, m).
    shapes = {"x": "nm", "b": "m", "c": "n1"}

    def new(text: str, kind: str) -> str:
        name = f"v{len(program.lines)}"
        program.lines.append(f"{name} = {text}")
        shapes[name] = kind
        return name

    def some(*kinds: str) -> str | None:
        names = [name for name, kind in shapes.items() if kind in kinds]
        # Late ones first, so that there are chains.
        return draw.choice(names[-4:]) if names else None

    full = {kind: (kind,) for kind in ("m", "n1", "n", "n2h", "less")}
    full |= {"nm": ("nm", "m", "n1"), "nh": ("nh", "n1")}
    for _ in range(draw.randint(4, 10)):
        name = some("nm", "nh", "n2h", "m", "n", "n1", "less") or "x"
        kind = shapes[name]
        turn = draw.random()
        if turn < 0.25:
            choices = _UNARY[:5] if smooth else _UNARY
            new(draw.choice(choices).format(name), kind)
        elif turn < 0.45:
            other = some(*full[kind]) or name
            choices = (_BINARY[0], _BINARY[1], _BINARY[2]) if smooth else _BINARY
            new(draw.choice(choices).format(name, other), kind)
        elif turn < 0.52 and kind in _VIEWS and draw.random() < 0.7:
            text, made = draw.choice(_VIEWS[kind])
            new(text.replace("{}", name), made)
        elif turn < 0.56 and kind == "nm":
            scores = new(f"nn.softmax({name} @ {some('nm')}.T / 4, dim=-1)", "nn")
            new(f"{scores} @ {some('nm')}", "nm")
        elif turn < 0.6 and kind == "nm":
            first = f"np.split({name}, 2, axis=1)"
            halves = new(f"{first}[{draw.randint(0, 1)}]", "nh"), new(f"{first}[1]", "nh")
            new(f"{halves[0]} * np.tanh({halves[1]})", "nh")
        elif turn < 0.65 and kind == "nm":
            view = new(f"{name}.reshape({name}.shape[0], 2, -1)", "n2h")
            new(f"np.tanh({view})", "n2h")
        elif turn < 0.68 and kind == "n2h":
            new(f"{name}.reshape({name}.shape[0], -1)", "nm")
        elif turn < 0.7 and kind == "nm":
            turned = new(f"np.tanh({name}.T)", "mn")
            new(f"{turned}.T", "nm")
        elif turn < 0.8 and kind == "nm":
            how = draw.choice(("sum", "mean") if smooth else ("sum", "mean", "max", "var"))
            axis, keep = draw.choice(((1, "n1"), (0, "m"))), draw.random() < 0.5
            if axis[0] == 1 and not keep:
                new(f"{name}.{how}(axis=1)", "n")
            else:
                new(f"{name}.{how}(axis={axis[0]}{', keepdims=True' if axis[0] == 1 else ''})", axis[1])
        elif turn < 0.9:
            texts = _NEURAL[:3] if smooth else _NEURAL
            if kind == "nm" and draw.random() < 0.6:
                new(draw.choice(_NORMS).format(name), kind)
            else:
                new(draw.choice(texts).format(name), kind)
        elif turn < 0.95 and not smooth:
            new(draw.choice(_CASTS).format(name), kind)
        else:
            program.draws = True
            new(f"nn.dropout({name}, {draw.choice((0.25, 0.5))})", kind)
    last = list(shapes)[-1]
    others = [name for name in shapes if name not in ("x", "b", "c", last)]
    program.results = [last, *draw.sample(others, min(len(others), draw.randint(0, 2)))]
    return program


def arguments(seed: int, n: int, m: int) -> tuple[np.ndarray, ...]:
    """Arguments of these sizes, the first of which may lie in memory in some other order."""
    random_ = np.random.default_rng(seed)
    x, b, c = (random_.standard_normal(s).astype(np.float32) for s in ((n, m), (m,), (n, 1)))
    return _LAYOUTS[seed % 7 % len(_LAYOUTS)](x), b, c
