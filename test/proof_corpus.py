"""Functions whose kernels, compiled under PROFUSE_CHECK=all, meet every part of CPU lowering.

``python test/proof_corpus.py`` compiles them all and prints the checks that fail; exit status 1 if
there is one. Nothing else is asserted: this is how `mutations.py --selfcheck` sees whether the
compiler itself notices deliberate faults, without any test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ |= {"PROFUSE_CACHE": "off", "PROFUSE_BACKGROUND": "off", "PROFUSE_CHECK": "all"}

import numpy as np
import profuse as pf
from profuse.lowering.cpu.pool_block import set_chunk_work
from profuse.lowering.thread_pool import CHECKED

set_chunk_work(CHECKED)  # as in workers
ADD = pf.op("index_add")
_rng = np.random.default_rng(0)
F = _rng.standard_normal((6, 40)).astype(np.float32)
D = _rng.standard_normal((5, 9))
WIDE = np.ones((3, 1100), np.float32)
TIES = np.arange(3900.0).reshape(3, 1300) % 1000
ROW, LONG = np.ones(40, np.float32), np.ones((2, 5000), np.float32)
BATCH = _rng.standard_normal((3, 5, 9))
TALL = _rng.standard_normal((300, 4))
ROWS, P = np.array([2, 0, 1]), np.array([[3, -7], [5, 2]])


def softmax(x, b):
    y = x * 0.125 + b
    e = np.exp(y - y.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x, b):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * b


def columns(x):
    y = np.tanh(x)
    return (y - y.mean(axis=0)) * y.sum(axis=0)


def attention(q, k):
    s = q @ k.swapaxes(-1, -2)
    return np.tanh(s) @ k


def reversed_attention(q, k):
    # The row is written last, and other columns of it are read then.
    s = q @ k.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) + s[..., ::-1]) @ k


def chained(x):
    # Several library products: what they leave lies in the workspace.
    a = np.tanh(x @ x.T)
    b = np.tanh(a @ x)
    return np.tanh(b.T @ b) @ x.T


def integers(x, y):
    return x // y, x % (y * y + 1), np.left_shift(x, 2) - y


def elementwise(x):
    a = np.abs(x) + 0.5
    return np.sin(x) + np.log(a) * np.sqrt(a) - np.arctan(x), np.where(x > 0, np.expm1(x), a**1.5)


FUNCTIONS: tuple[tuple[Callable, tuple], ...] = (
    (softmax, (F, ROW)),
    (layernorm, (F, ROW)),
    (columns, (F,)),
    (columns, (WIDE,)),
    (softmax, (LONG, LONG[0])),
    (attention, (BATCH, BATCH)),
    (chained, (D,)),
    (reversed_attention, (BATCH, BATCH)),
    (lambda x, w, b: np.maximum(x @ w + b, 0), (F, F.T.copy(), np.ones(6, np.float32))),
    (lambda x: np.tanh(x[::2, ::-1]).T + 1, (D,)),
    (lambda x, w: np.tanh(x @ w), (F[:, :9], D.T.astype(np.float32))),
    (lambda x: (s := np.exp(x).sum(axis=1))[:, None] * x + s[::-1, None], (D,)),
    (lambda x: np.tanh(x)[:, ::-1] - np.tanh(x).sum(axis=1, keepdims=True), (D,)),
    (lambda x: (y := np.exp(x @ np.ones((9, 9)))) - y.T.sum(axis=0)[:, None], (D,)),
    (lambda x: np.concatenate([x, -x], axis=1)[:, 2:], (D,)),
    (lambda x, i: x[i] * 2, (D, ROWS)),
    (lambda x, i: ADD(x * 2, x[i] + 1, i, axes=(0,)), (F, ROWS)),
    (lambda x, n: x[n] + 1, (D, 2)),
    (integers, (P, P + 1)),
    (elementwise, (F,)),
    (elementwise, (D,)),
    (lambda x: (np.cumsum(x, axis=0), x.argmax(axis=1), x.min()), (D,)),
    (lambda x: (x.argmax(axis=1), (x * x[::-1]).argmin(axis=1)), (TIES,)),
    (lambda x: np.tanh(x.astype(np.float16)).sum(axis=1), (F,)),
    (lambda x: (x.reshape(-1) * 2).sum(), (F.T,)),
    (lambda x: x.reshape(-1)[1:] * 2, (F.T,)),
    (lambda x: np.tanh(x.T).reshape(-1), (D,)),
    (lambda x: (np.exp(x) @ np.ones(9)) + x.std(axis=1), (D,)),
    (lambda x: np.arange(0, x.shape[0], 2) * 3, (D,)),
    (lambda x: np.arange(x.shape[0] + (-x.shape[0]) // 3) * 2, (D,)),
    (lambda x: (x > 0).any(axis=0) & (x < 1).all(axis=0), (D,)),
    (lambda x: np.where(x > 0, 0.0, x).max(axis=1), (D,)),
    # Several chunks, where sizes are symbolic.
    (lambda x: x.sum(axis=0), (TALL,)),
    (lambda x: x @ np.ones((4, 3)), (TALL,)),
    (lambda x: np.exp(x) - x, (F,)),
    (lambda x: (x >> 1).astype(np.int32), (np.arange(9),)),
)
DONATING = ((lambda x: x[::-1] * 2 + x, (D.copy(),)), (lambda x: np.tanh(x) + 1, (D.copy(),)))


def main() -> int:
    """Compile all; returns the exit status."""
    bad = 0
    for strategy in ([("static", 1)], [("dynamic", 1)]):
        for donates, functions in ((False, FUNCTIONS), (True, DONATING)):
            for number, (fn, args) in enumerate(functions):
                options = {"donate": "x"} if donates else {}
                f = pf.jit(fn, strategy=strategy, **options)
                f(*[a.copy() if isinstance(a, np.ndarray) and donates else a for a in args])
                f(*[a.copy() if isinstance(a, np.ndarray) and donates else a for a in args])
                state = f.state()
                if state.counters["check_failures"]:
                    bad += state.counters["check_failures"]
                    print(f"{strategy[0][0]} {number} {fn.__name__}:", *state.reasons)
                elif not state.counters["kernels_checked"]:
                    print(
                        f"{strategy[0][0]} {number} {fn.__name__} is not checked:",
                        *(s.checked for s in state.specializations),
                        *state.reasons,
                    )
    print(f"{bad} checks failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
