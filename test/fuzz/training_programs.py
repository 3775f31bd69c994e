"""Random training programs, as text: a model, a loss, hooks, and what happens between the steps.

A program is a module. ``body`` is what some ways jit, ``forward`` what stands around it, and
``program(way)`` makes leaves and gives a function of one step, which returns what is seen of it.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

# Expressions by the type of their result: a scalar, a vector, a matrix, and with rows of the batch
# a table and a column. `{v}` is some vector; those behind the bar are not what differences see.
ANY = (
    "np.tanh({T})",
    "np.sin({T}) + {T}",
    "{T} * {T}",
    "{T} + {T} * {c}",
    "{T} - {T} * {s}",
    "{T} / (1.0 + {T} ** 2)",
    "np.exp(-({T} ** 2))",
    "np.where({T} > 0, {T}, {T} * {c})",
    "np.maximum({T}, {T} * {c})",
    "np.abs({T})",
    "np.clip({T}, -0.5, 0.7)",
    "{T} ** 2 * {c}",
    "np.sqrt({T} ** 2 + {c})",
    "{T} * {n} + {T}",
    "np.logaddexp({T}, {c})",
    "-{T} + {c}",
    "np.nan_to_num({T})",
    "np.hypot({T}, {c})",
    "np.arctan2({T}, {T} ** 2 + 1.0)",
    "{c} ** {T}",
    "checkpointed({T})",
    "tripled({T})",
    "np.log1p({T} ** 2)",
    "{T} % 0.7 + {T}",
    "gated({T}, {T})",
    "np.exp({T} * 0.3).astype(np.float64)",
    "np.float32(0.5) * {T}",
    "np.minimum({T}, {s})",
    "np.real({T})",
    "checkpointed(checkpointed({T}))",
    "{T}.clip(-1, 1)",
    "np.multiply({T}, {s})",
    "np.copysign({T}, {c})",
)
EXPRESSIONS = {
    "s": (
        "{v}.sum()",
        "{v}[{v} > 0].sum()",
        "{m}.mean()",
        "np.linalg.norm({v}) + {s}",
        "{v}.max()",
        "np.nansum({v} * {v})",
        "np.median({v})",
        "np.linalg.det({m} * 0.3 + EYE)",
        "np.trace({m})",
        "{v} @ {v}",
        "np.sort({v})[1] * {s}",
        "{u}.mean()",
        "{v}.std()",
        "{X}.var()",
        "{v}[2]",
        "np.percentile({v}, 30)",
        "np.einsum('i,i->', {v}, {v})",
        "np.sum({m} * {m}, where=MASK)",
        "np.max({X})",
        "np.prod({v} * {c})",
        "np.nanmean({m})",
        "np.vdot({v}, {v})",
        "np.linalg.slogdet(squared({m}) + EYE)[1]",
        "np.average({v}, weights=WEIGHTS)",
        "np.ptp({v})",
        "np.partition({v}, 1)[0]",
        "np.dot({v}, np.arange(4.0))",
        "len({u}) * {s}",
        "np.quantile({m}, 0.4)",
        "{m}[MASK].sum()",
        "np.add.reduce({v})",
        "np.nanmax({v})",
    ),
    "v": (
        "np.sort({v})",
        "np.median({m}, axis=0)",
        "np.linalg.solve({m} * 0.2 + EYE * 3.0, {v})",
        "{v}[IDX]",
        "np.take({v}, IDX)",
        "{m}[1]",
        "{m} @ {v}",
        "{v} @ {m}",
        "{X}.mean(axis=0)",
        "np.cumsum({v})",
        "{v}[::-1] * {v}",
        "np.concatenate([{v}, {v}])[::2]",
        "np.diag({m})",
        "np.stack([{v}, {v}]).sum(axis=0)",
        "{m}.sum(axis=0)",
        "{m}.max(axis=1)",
        "np.roll({v}, 1)",
        "{u} @ {X}",
        "np.interp({v}, GRID, TABLE)",
        "np.sort({m}, axis=1)[:, 0]",
        "np.flip({v})",
        "np.abs(np.fft.fft({v}))",
        "np.convolve({v}, {v})[:4]",
        "np.repeat({v}, 2)[::2]",
        "np.linalg.norm({m}, axis=1)",
        "{v}[np.argsort({v})]",
        "{m}[IDX, IDX[::-1]]",
        "WEIGHTS * {v}",
        "np.linalg.eigvalsh(symmetric({m}) + np.diag(WEIGHTS * 4.0))",
        "{m}.reshape(2, 8)[:, :4].sum(0)",
        "np.einsum('ij,j->i', {m}, {v})",
        "np.nansum({m}, axis=0)",
        "np.cumprod({v})",
        "{v}.copy()",
        "np.partition({v}, 2)",
        "np.linalg.inv({m} * 0.2 + EYE * 3.0)[0]",
        "np.gradient({v})",
        "np.take_along_axis({v}, np.argsort({v}), 0)",
        "np.squeeze({v}[None])",
        "{m}.T[2]",
        "np.select([{v} > 0, {v} <= 0], [{v}, {v} * {c}])",
        "np.pad({v}, 1)[1:-1]",
        "np.concatenate([[{s}], {v}[1:]])",
        "np.broadcast_to({s}, (4,))",
        "np.array([1.0, 2, 3, 4]) * {s}",
    ),
    "m": (
        "np.outer({v}, {v})",
        "{m} @ {m}",
        "{m}.T",
        "{m} * {v}",
        "np.sort({m}, axis=0)",
        "{X}.T @ {X}",
        "np.tril({m})",
        "{v}[:, None] + {m}",
        "np.linalg.inv({m} * 0.2 + EYE * 3.0)",
        "np.where(MASK, {m}, {s})",
        "np.diag({v})",
        "np.linalg.cholesky(squared({m}) + EYE)",
        "np.transpose({m}, (1, 0)) * {c}",
        "{m}[IDX]",
        "np.cumsum({m}, axis=1)",
        "np.kron({v}, {v}).reshape(4, 4)",
        "np.einsum('ij,kj->ik', {m}, {m})",
        "np.linalg.solve({m} * 0.2 + EYE * 3.0, {m})",
    ),
    "X": (
        "{X} @ {m}",
        "{X} * {v}",
        "{u}[:, None] * {v}",
        "{X} - {X}.mean(axis=0)",
        "{X} + {s}",
        "np.sort({X}, axis=1)",
        "{X} / (1.0 + np.abs({X}).sum(axis=1, keepdims=True))",
        "{X}[::-1]",
        "{X} - {X}.max(axis=1, keepdims=True)",
        "np.exp({X} - {X}.max(axis=1, keepdims=True))",
        "np.cumsum({X}, axis=0)",
        "np.flip({X}, axis=1)",
        "np.median({X}, axis=0) * {X}",
    ),
    "u": (
        "{X} @ {v}",
        "{X}.sum(axis=1)",
        "{X}[:, 1]",
        "np.median({X}, axis=1)",
        "{X}.max(axis=1)",
        "np.linalg.norm({X} + 1.0, axis=1)",
        "np.sort({u})",
        "{u} * {u}.mean()",
        "np.cumsum({u})",
        "{X}.std(axis=1)",
        "np.einsum('bi,i->b', {X}, {v})",
        "{u} - np.median({u})",
    ),
}
# What differences of numbers do not see: the gradient is what the program says.
TOLD = (
    "pf.stop_gradient({T})",
    "halved({T})",
    "detached({T})",
    "{T} + detached(np.round({T}) - {T})",
    "{T} * detached({T})",
    "np.asarray(detached({T})) * {T}",
    "without({T}) + {T}",
)
# Statements; `{r}` is the new name, of type T.
STATEMENTS = {
    "v": (
        "{r} = {t} * 1.0\n{r}[1:3] = {v}[0:2]",
        "{r} = {t} + 0.0\n{r}[0] = {s}",
        "{r} = {t} * 1.0\n{r} *= {v}",
        "{r} = {t} * 2.0\nq = {r}[1:]\nq *= {c}",
        "{r} = {t} * 1.0\n{r}[{r} > 0] *= {c}",
        "{r} = {t} * 1.0\n{r}[IDX[:2]] += {s}",
        "{r} = {t} * 1.0\nnp.multiply({r}, {v}, out={r})",
        "{r} = np.tanh({t})\n{r}[:] = {v}",
        "{r} = {t} * 1.0\n{r}[1] += {r}[0]\n{r}[2] *= {r}[1]",
        "{r} = {t}.copy()\n{r}[::2] -= {v}[1::2]",
        "{r} = {t} * 0.0\nfor row in {m}:\n    {r} = {r} + row * {c}",
        "{r}, q = checkpointed({t}), {t} * 1.0\nq -= {r}\n{r} = {r} * q",
        "{r} = {t} * 1.0\nq = {r}[::2]\n{r}[1] = q[0] * {s}\n{r} = {r} + q.sum()",
        "{r} = np.zeros_like({t})\n{r}[:2] = {v}[2:]\n{r}[3] = {s}",
        "{r} = np.stack([row * {s} for row in {m}]).sum(axis=0) * {t}",
        "{r} = {t} * 1.0\nwhile float(np.abs({r}).sum()) > 2.0:\n    {r} = {r} * 0.5",
        "{r} = {t}\nfor i in range(3):\n    {r} = np.tanh({r} * {v})",
        "{r} = {t} * {c} if {v}.sum() > 0 else {t} + {v}",
    ),
    "m": (
        "{r} = {t} * 1.0\n{r}.T[0] = {v}",
        "{r} = {t} * 1.0\n{r}[1] *= {v}",
        "{r} = {t} * 1.0\n{r}[:, 1] = {v} * {s}",
        "{r} = {t} + 0.0\n{r}.reshape(-1)[3:7] += {v}",
        "{r} = {t} * 1.0\n{r}[MASK] = {s}",
        "{r} = {t} * 1.0\n{r}[np.arange(4), IDX] -= {v}",
        "{r} = {t} * {c} if float({s}) > 0 else {t} * {s}",
    ),
    "s": (
        "{r} = {t} * 0.0\nfor i in range(4):\n    {r} = {r} + {v}[i] * {c}",
        "{r} = {t} * {c} if {t} > 0.1 else {t} * {s}",
        "{r} = {t} * 1.0\n{r} += {s} * {c}",
    ),
}
TOLD_STATEMENTS = (
    "with pf.no_grad():\n    {r} = {E}",
    "with pf.no_grad():\n    with pf.enable_grad():\n        {r} = {E}",
    "with pf.no_grad():\n    q = {E}\n{r} = q * {T}",
    "with pf.enable_grad():\n    {r} = {E}",
    "with pf.no_grad():\n    {r} = {T} * 1.0\n    {r} += {T}",
)
LEAF_HOOKS = (
    "{p}.register_hook(lambda g: g * 0.5)",
    "{p}.register_hook(lambda g: np.clip(g, -0.5, 0.5))",
    "{p}.register_hook(lambda g: log.append(np.array(g)))",
    "{p}.register_hook(lambda g: np.zeros_like(g))",
    "{p}.register_hook(lambda g: np.multiply(g, 2.0, out=BUFFER['{p}'][...]))",
    "{p}.register_hook(lambda g: np.sign(g).astype(np.float32))",
    "{p}.register_post_accumulate_grad_hook(scale)",
    "{p}.register_post_accumulate_grad_hook(lambda p: log.append(np.array(p.grad)))",
    "{p}.register_post_accumulate_grad_hook(update)",
    "{p}.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', p.grad + 1.0))",
    "{p}.register_post_accumulate_grad_hook(forget)",
)
RESULT_HOOKS = (
    "y.register_hook(lambda g: g * 3.0)",
    "y.register_hook(lambda g: None)",
    "y.register_hook(lambda g: log.append(np.array(g)))",
    "y.register_hook(np.tanh)",
    "y.register_hook(lambda g: np.multiply(g, 2.0, out=g))",
    "y.node.register_prehook(lambda gs: [None if g is None else g * 0.5 for g in gs])",
    "y.register_hook(lambda g: np.clip(g, -0.1, 0.1))",
)
# What stands around the model, of its result `y`, and gives the loss.
AROUND = {
    "s": ("y * {c} + {s}", "y ** 2", "np.tanh(y) * {s}", "y"),
    "v": ("(y ** 2).sum()", "y @ {v}", "np.sort(y)[:2].sum()", "(y * {v}).mean()", "y[y > 0].sum() + {s}"),
    "m": ("(y * {m}).sum()", "np.median(y) * {s}", "np.linalg.norm(y)", "(y @ {v}).sum()"),
    "X": ("(y ** 2).mean()", "(y @ {v}).sum()", "np.nansum(y) * {c}", "y.max(axis=1).sum()"),
    "u": ("(y ** 2).mean()", "y.sum() * {s}", "np.median(y)", "np.abs(y).sum()"),
}
UPDATES = (
    "with pf.no_grad():\n    for p in leaves:\n        if p.grad is not None:\n"
    "            p -= 0.05 * p.grad\n        p.grad = None",
    "for p in leaves:\n    if p.grad is not None:\n        p.grad *= 0.5\n"
    "        p.data[...] -= 0.1 * p.grad\n    p.grad = None",
    "if k % 2:\n    for p in leaves:\n        p.grad = None",
    "for p in leaves:\n    if p.grad is not None:\n        p.grad *= 0.0",
    "norm = sum(float((p.grad ** 2).sum()) for p in leaves if p.grad is not None) ** 0.5\n"
    "with pf.no_grad():\n    for p in leaves:\n        if p.grad is not None:\n"
    "            p.grad *= 1.0 / max(1.0, norm)\n            p -= 0.1 * p.grad\n"
    "            p.grad = None",
    "with pf.no_grad():\n    for p in leaves:\n        if p.grad is not None:\n"
    "            BUFFER[p.shape] = 0.9 * BUFFER.get(p.shape, 0.0) + p.grad\n"
    "            p -= 0.02 * BUFFER[p.shape]\n        p.grad = None",
)
RUNS = (
    "way.backward(loss)",
    "way.backward(loss)",
    "way.backward(loss)",
    "way.backward(loss, retain_graph=True)\nway.backward(loss)",
    "way.backward(loss, retain_graph=True)\nway.backward(other)",
    "way.backward(loss + other)",
    "found = way.gradients(loss, leaves)\nseen += [shown(g) for g in found]\nif k % 2:\n"
    "    way.backward(forward(f, data(k), *leaves, log)[0])",
)
TOGGLES = (
    "v.requires_grad = k % 3 != 1",
    "w.requires_grad = k < 6",
    "b.requires_grad = bool(k % 2)",
    "w.requires_grad = v.requires_grad = k % 5 != 2",
)
MODULE = """\
import numpy as np
import profuse as pf

N, EYE, IDX = 4, np.eye(4), np.array([2, 0, 3, 1])
GRID, TABLE = np.linspace(-2, 2, 9), np.linspace(-2, 2, 9) ** 2
MASK, WEIGHTS = np.arange(16).reshape(4, 4) % 3 > 0, np.array([0.5, 1.0, 1.5, 2.0])
SIZES, DTYPE = {sizes}, np.{dtype}

@pf.custom_vjp
class tripled:
    def forward(x):
        return x * 3.0, ()

    def backward(saved, g):
        return (g * 3.0,)

@pf.custom_vjp
class halved:
    def forward(x):
        return np.sin(x), (x,)

    def backward(saved, g):
        (x,) = saved
        return {halved}

@pf.custom_vjp
class gated:
    def forward(x, y):
        return np.where(x > 0, x * y, y), (x, y)

    def backward(saved, g):
        x, y = saved
        return np.where(x > 0, g * y, 0.0), np.where(x > 0, g * x, g)

checkpointed = pf.checkpoint(lambda x: np.tanh(x) * x)

def detached(x):
    return x.detach() if isinstance(x, pf.Array) else x

def symmetric(x):
    return x + x.T

def squared(x):
    return x @ x.T

@pf.no_grad()
def without(x):
    return np.cos(x) * 2.0

def shown(x):  # what can be seen of a value
    if x is None or type(x) in (int, float, str):
        return x
    if x.dtype.kind == "O":
        return "objects"
    elements = np.array(x.data if isinstance(x, pf.Array) else x)
    return bool(getattr(x, "requires_grad", False)), x.dtype.name, x.shape, elements

def data(k):
    rng = np.random.default_rng([{seed}, k % 5])
    return {wrap}(rng.standard_normal((SIZES[k % len(SIZES)], N)).astype(DTYPE))

def values():
    rng = np.random.default_rng({seed})
    return [np.asarray(rng.standard_normal(s), DTYPE) for s in ((N, N), (N,), ())]

def body(w, v, b, X):
{body}
    return {result}

def forward(f, X, w, v, b, log):
    y = f(w, v, b, X)
{around}
    return {loss}, {other}, y

def program(way):
    leaves = w, v, b = [pf.array(x, requires_grad=True) for x in values()]
    f, log = way.jit(body), []
    BUFFER = {{name: np.zeros(x.shape, DTYPE) for name, x in zip("wvb", values())}}

    def update(p):
        with pf.no_grad():
            p -= 0.05 * p.grad
        p.grad = None

    def scale(p):
        p.grad *= 0.5

    def forget(p):
        p.grad = None

{hooks}

    def step(k):
        log.clear()
        seen, before = [], [p.data.copy() for p in leaves]
        try:
{step}
        except Exception as error:
            seen.append("raises " + type(error).__name__)
            way.note(error)
            log.clear()  # how far a run gets before its error is left open
            for p, x in zip(leaves, before):
                p.grad, p.data[...] = None, x
        seen += [shown(p.grad) for p in leaves]
        seen += [shown(g) for g in log]
        kept = [p.grad for p in leaves if p.grad is not None]
        seen.append(str([np.shares_memory(a, c) for i, a in enumerate(kept) for c in kept[:i]]))
        try:
{update}
        except Exception as error:
            seen.append("update raises " + type(error).__name__)
            way.note(error)
        return seen + [shown(p) for p in leaves]

    return step
"""


@dataclass(frozen=True)
class Training:
    """A program: its name, the text of its module, and what may be asked of it beside the steps."""

    name: str
    text: str
    plain: bool  # the gradient is that of the numbers, which differences see
    free: bool  # of hooks


class _Drawn:
    """The statements of a program as they are drawn, with the names that there are by type."""

    def __init__(self, rng: random.Random, told: bool) -> None:
        self.rng, self.told, self.lines = rng, told, list[str]()
        self.names = {"m": ["w"], "v": ["v"], "s": ["b"], "X": ["X"], "u": list[str]()}

    def some(self, kind: str) -> str:
        """The name of a value, rather one of the last; or an expression where there is none."""
        names = self.names[kind]
        if not names:
            return f"({self.some('X')} @ {self.some('v')})"
        return self.rng.choice(names[-2:] if self.rng.random() < 0.7 else names)

    def filled(self, text: str, kind: str = "s", name: str = "") -> str:
        def one(found: re.Match[str]) -> str:
            what = found[1]
            if what == "r":
                return name
            if what == "c":
                return self.rng.choice(("0.5", "1.5", "2.0", "0.7"))
            if what == "n":
                return self.rng.choice(("2", "3", "0.25", "WEIGHTS[1]"))
            if what == "E":
                return self.expression(kind)
            if what == "t":  # of a leaf, so that writes have a gradient
                leaf = {"m": "w", "v": "v", "s": "b"}[kind]
                return leaf if self.rng.random() < 0.5 else f"({leaf} + {self.some(kind)})"
            return self.some(kind if what == "T" else what)

        return re.sub(r"\{(\w)\}", one, text)

    def expression(self, kind: str) -> str:
        if self.told and self.rng.random() < 0.15:
            return self.filled(self.rng.choice(TOLD), kind)
        pool = ANY if self.rng.random() < 0.45 else EXPRESSIONS[kind]
        return self.filled(self.rng.choice(pool), kind)

    def statement(self, kind: str) -> None:
        name = f"t{len(self.lines)}"
        chance = self.rng.random()
        if self.told and chance < 0.12:
            text = self.rng.choice(TOLD_STATEMENTS)
        elif chance < 0.35 and kind in STATEMENTS:
            text = self.rng.choice(STATEMENTS[kind])
        else:
            text = "{r} = {E}"
        self.lines += self.filled(text, kind, name).split("\n")
        self.names[kind].append(name)


def generate(seed: int, number: int) -> Training:
    """A program, by its seed and number."""
    rng = random.Random(f"{seed}/{number}")
    told, hooked = rng.random() < 0.4, rng.random() < 0.35
    drawn = _Drawn(rng, told)
    for _ in range(rng.randint(1, 5)):
        drawn.statement(rng.choice("svvvmmXu"))
    kind = rng.choice([k for k, names in drawn.names.items() if names and names[-1][0] == "t"])
    result = drawn.names[kind][-1]
    outside = _Drawn(rng, told)
    outside.lines = [""]
    around = []
    if hooked and rng.random() < 0.6:
        around = [
            "if getattr(y, 'requires_grad', False) and not getattr(y, 'is_leaf', False):",
            f"    {rng.choice(RESULT_HOOKS)}",
        ]
    text = outside.filled(rng.choice(AROUND[kind]), kind)
    around.append(f"z = {text}")
    wrap = "" if rng.random() < 0.7 else "pf.array"
    more = outside.expression("s")
    losses = ("z + (v ** 2).sum()", "z + b * 0.5", f"z + w.mean() + {more}", "z" if wrap else "z - b")
    loss = rng.choice(losses)
    hooks = [f"{rng.choice(LEAF_HOOKS).format(p=rng.choice('wvb'))}" for _ in range(rng.randint(1, 2) if hooked else 0)]
    step = [rng.choice(TOGGLES)] if rng.random() < 0.25 else []
    step += ["loss, other, y = forward(f, data(k), *leaves, log)", "seen += [shown(loss), shown(other), shown(y)]"]
    if rng.random() < 0.15:
        step += ["with pf.no_grad():", "    seen.append(shown(f(*leaves, data(k))))"]
    step += rng.choice(RUNS).split("\n")
    text = MODULE.format(
        seed=number,
        sizes=rng.choice(("(5,)", "(5,)", "(5, 3)", "(5, 5, 5, 6, 6, 2)", "(1, 4)")),
        dtype="float32" if rng.random() < 0.15 else "float64",
        halved=rng.choice(("(g * 0.5,)", "(g * np.cos(x),)", "(None,)", "(np.ones_like(g),)")),
        wrap=wrap,
        body=_indented(drawn.lines, 1),
        result=result,
        around=_indented(around, 1),
        loss=loss,
        other=outside.expression("s"),
        hooks=_indented(hooks, 1),
        step=_indented(step, 3),
        update=_indented(rng.choice(UPDATES).split("\n"), 3),
    )
    return Training(f"{seed}/{number}", text, not told, not hooked)


def _indented(lines: list[str], depth: int) -> str:
    return "\n".join("    " * depth + line for line in lines)
