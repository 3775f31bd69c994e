"""Functions in TorchScript that tests share: loops, branches, lists, in-place operators, and their arguments."""

from collections.abc import Callable
from typing import Any, Optional, Tuple  # noqa: UP035 - TorchScript knows these names

import torch
import torch.nn.functional as F


def elementwise(x, y):
    return torch.tanh(x + y) * x - 0.5


def counted(x, n: int):
    for i in range(n):
        x = x * 0.5 + i
    return x


def conditional(x):
    while bool(x.sum() > 1.0):
        x = x * 0.5
    return x


def branch(x):
    if bool(x.mean() > 0.0):
        y = x * 2
    else:
        y = torch.relu(x) + 1.0
    return y


def appended(x, n: int):
    out = torch.jit.annotate(list[torch.Tensor], [])
    for i in range(n):
        out.append(x * i)
    return torch.stack(out)


def listed(x, y):
    parts = [x, y]
    parts.append(x * y)
    return torch.cat(parts, 1)


def optional(x, b: Optional[torch.Tensor] = None):  # noqa: UP045
    y = torch.exp(-x)
    if b is not None:
        y = y + b
    return y


def sizes(x):
    n, m = x.size(0), x.size(1)
    return x.view(n * 2, m // 2).sum(1) / float(n)


def chunks(x, h):
    i, g, o, f = (x + h).chunk(4, 1)
    c = torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c) + f, c


def left_early(x, n: int):
    s = torch.zeros_like(x)
    for i in range(n):
        s = s + x * i
        if bool(s.sum() > 10.0):
            break
    return s


def returned_early(x):
    if bool(x.sum() < 0.0):
        return -x
    return x + 1.0


def in_place(x):
    y = x * 2.0
    y.add_(1.0)
    y.relu_()
    return y


def rows_written(x):
    y = torch.zeros_like(x)
    for i in range(x.size(0)):
        y[i] = x[i] * i
    return y


def recurrent(x, h, w, u):
    outs = torch.jit.annotate(list[torch.Tensor], [])
    for t in range(x.size(1)):
        h = torch.tanh(torch.mm(x[:, t], w) + torch.mm(h, u))
        outs.append(h)
    return torch.stack(outs, 1)


def item(x):
    k = int(x.argmax().item())
    return x * float(k)


def pair(x) -> Tuple[torch.Tensor, torch.Tensor]:  # noqa: UP006
    m = x.mean(0)
    return m, x - m


def newton(x, tol: float):
    y = x.clone()
    k = 0
    while k < 50 and bool((y * y - x).abs().max() > tol):
        y = 0.5 * (y + x / y)
        k += 1
    return y


def rank(x):
    if x.dim() == 2:
        return x.sum(1)
    return x.sum()


def shape(x):
    return x.reshape(x.shape[0], -1).softmax(-1)


def refusing(x):
    if x.size(0) > 100:
        raise RuntimeError("too large")
    return x * 2


def dtypes(x):
    return x.to(torch.float64).cumsum(0).to(x.dtype)


def divided(x):
    return (x.to(torch.int32) / 2) + 1


class Stepped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x, steps: int):
        for _ in range(steps):
            x = F.gelu(self.linear(self.norm(x)))
        return F.softmax(x, dim=-1)


def returned_in_loop(x, n: int):
    for i in range(n):
        x = x * 0.5
        if bool(x.sum() < 1.0):
            return x + float(i), i
    return x - 1.0, n


def scalar_in_place(x, n: int):
    s = torch.zeros(())
    for i in range(n):
        s += x.sum() * i
    return x + s


class Counting(torch.nn.Module):
    """A module with state of three kinds, and a method that resets it."""

    calls: int

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.hidden = torch.zeros(3)
        self.calls = 0
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.hidden = torch.tanh(self.linear(x) + self.hidden)
        self.calls += 1
        self.total.add_(x)
        if self.calls > 2:
            self.hidden = self.hidden * 2
        return self.hidden + self.total

    @torch.jit.export
    def reset(self):
        self.hidden = torch.zeros(3)
        self.calls = 0
        self.total.zero_()


def raising(x, n: int):
    for _ in range(n):
        x = x * 2
        if bool(x.sum() > 10.0):
            raise ValueError("the sum is too large in round {}".format(n))  # noqa: UP032 - TorchScript's way
    return x + 1


def _random(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def cases() -> list[tuple[Callable, tuple]]:
    """Functions and modules, with arguments."""
    r = _random
    return [
        (elementwise, (r(4, 8), r(4, 8))),
        (counted, (r(4, 8), 3)),
        (conditional, (r(4, 8).abs(),)),
        (branch, (r(4, 8) + 1,)),
        (appended, (r(4, 8), 3)),
        (listed, (r(4, 8), r(4, 8))),
        (optional, (r(4, 8),)),
        (optional, (r(4, 8), r(8))),
        (sizes, (r(4, 8),)),
        (chunks, (r(4, 8), r(4, 8))),
        (left_early, (r(4, 8).abs(), 9)),
        (returned_early, (r(4, 8),)),
        (in_place, (r(4, 8),)),
        (rows_written, (r(4, 8),)),
        (recurrent, (r(2, 5, 8), r(2, 8), r(8, 8), r(8, 8))),
        (item, (r(9),)),
        (pair, (r(4, 8),)),
        (newton, (r(4).abs() + 1, 1e-6)),
        (rank, (r(4, 8),)),
        (shape, (r(4, 2, 4),)),
        (refusing, (r(4, 8),)),
        (dtypes, (r(4, 8),)),
        (divided, (r(4, 8) * 9,)),
        (Stepped(), (r(4, 8), 3)),
        (returned_in_loop, (r(4, 8).abs(), 9)),
        (scalar_in_place, (r(4, 8), 3)),
    ]
