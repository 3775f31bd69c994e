"""Random functions in NumPy's words, as text, whose derivatives exist where they are asked for.

A function takes a few float64 arrays and makes one statement after another of what there is. NumPy
runs each statement as it is drawn; one that fails, or gives what is not finite or large, is drawn
again. What the function returns weighs all that its statements have made, so that each of them has
a gradient. Where an argument is near a kink, central differences of several steps tell.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_LARGEST = 50.0
_NEAR = 1e-3  # how far arguments are moved, to find jumps

# Text of a function of one array, or of one in a safe range.
UNARY = (
    "np.sin({a})",
    "np.cos({a})",
    "np.tanh({a})",
    "np.exp(0.3 * {a})",
    "np.exp2(0.3 * {a})",
    "np.expm1(0.2 * {a})",
    "np.log(np.abs({a}) + 0.5)",
    "np.log2(np.abs({a}) + 0.5)",
    "np.log10(np.abs({a}) + 0.5)",
    "np.log1p({a} * {a})",
    "np.sqrt(np.abs({a}) + 0.2)",
    "np.square({a})",
    "np.reciprocal(np.abs({a}) + 0.6)",
    "np.arctan({a})",
    "np.arcsinh({a})",
    "np.arcsin(0.9 * np.tanh({a}))",
    "np.arccos(0.9 * np.sin({a}))",
    "np.arctanh(0.8 * np.tanh({a}))",
    "np.arccosh(1.3 + np.abs({a}))",
    "np.sinh(0.3 * {a})",
    "np.cosh(0.3 * {a})",
    "np.tan(np.sin({a}))",
    "np.abs({a})",
    "np.fabs({a})",
    "np.negative({a})",
    "-{a}",
    "np.positive({a})",
    "{a} ** 2",
    "{a} ** 3",
    "{a} ** 0",
    "(np.abs({a}) + 0.3) ** 0.5",
    "(np.abs({a}) + 0.3) ** -1",
    "(np.abs({a}) + 0.3) ** 1.7",
    "1.0 / (1.0 + np.exp(-{a}))",
    "np.maximum({a}, 0.0)",
    "np.minimum(0.3, {a})",
    "np.clip({a}, -0.7, 0.9)",
    "np.where({a} > 0.1, {a}, 0.1 * {a})",
    "np.where({a} < 0, np.sin({a}), {a} * {a})",
    "np.deg2rad({a})",
    "np.rad2deg(0.01 * {a})",
    "np.radians({a})",
    "np.degrees(0.01 * {a})",
    "np.nan_to_num({a})",
    "np.sinc({a})",
    "np.sign({a}) * {a}",
    "np.floor({a}) + {a}",
    "np.real({a})",
    "np.conj({a})",
    "np.diff(np.ravel({a}))",
    "2.0 ** (0.3 * {a})",
    "3 - {a}",
    "{a} / 3",
    "0.5 * {a}",
    "{a} % 2.5",
    "np.heaviside({a}, 0.5) * {a}",
)
BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / (np.abs({b}) + 0.7)",
    "np.maximum({a}, {b})",
    "np.minimum({a}, {b})",
    "np.fmax({a}, {b})",
    "np.fmin({a}, {b})",
    "np.hypot({a}, {b} + 2.0)",
    "np.arctan2({a}, {b} + 3.0)",
    "np.logaddexp({a}, {b})",
    "np.power(np.abs({a}) + 0.4, 0.3 * {b})",
    "(np.abs({a}) + 0.4) ** np.sin({b})",
    "np.where({a} > {b}, {a}, 2 * {b})",
    "np.where({a} > 0, {b}, {a})",
    "np.copysign({a}, {b})",
    "np.remainder({a}, np.abs({b}) + 1.1)",
    "np.fmod({a}, np.abs({b}) + 1.1)",
    "np.clip({a}, {b} - 0.6, {b} + 0.7)",
    "np.float_power(np.abs({a}) + 0.4, 1.3)",
)
REDUCTIONS = (
    "np.sum({a}{axes})",
    "np.mean({a}{axes})",
    "np.max({a}{axes})",
    "np.min({a}{axes})",
    "np.prod({a}{axes})",
    "np.var({a}{axes})",
    "np.std(np.sin({a}) + {ramp}{axes})",
    "np.std({a}{axes}, ddof=0)",
    "np.ptp({a}{axes})",
    "np.average({a}{axes})",
    "np.amax({a}{axes})",
    "np.log(np.sum(np.exp({a} - np.max({a}{kept})){kept}))",
    "np.var({a}{axes}, ddof=1)",
)
# Of the axis {k} of an array, or of its size {n}.
ALONG = (
    "np.cumsum({a}, axis={k})",
    "np.cumprod({a}, axis={k})",
    "np.flip({a}, {k})",
    "np.take({a}, np.array([0, -1, 0]), axis={k})",
    "np.repeat({a}, 2, axis={k})",
    "np.concatenate([{a}, {a} * 2.0], axis={k})",
    "np.stack([{a}, np.sin({a})], axis={k})",
    "np.expand_dims({a}, {k})",
    "np.diff({a}, axis={k})",
    "np.roll({a}, 2, axis={k})",
    "np.split(np.concatenate([{a}, {a}], {k}), 2, axis={k})[1]",
    "np.swapaxes({a}, 0, {k})",
    "np.moveaxis({a}, {k}, 0)",
    "np.linalg.norm({a}, axis={k})",
    "np.linalg.norm({a}, axis={k}, keepdims=True)",
    "np.linalg.norm({a} + 0.1, ord=1, axis={k})",
    "np.linalg.norm({a}, ord=np.inf, axis={k})",
    "np.linalg.norm({a}, ord=3, axis={k})",
    "np.take_along_axis({a}, np.zeros((1,) * {a}.ndim, np.int64), {k})",
    "np.exp({a}) / np.sum(np.exp({a}), axis={k}, keepdims=True)",
    "({a} - np.mean({a}, {k}, keepdims=True)) / np.sqrt(np.var({a}, {k}, keepdims=True) + 0.1)",
    "np.append({a}, {a}, axis={k})",
    "np.trace(np.stack([{a}, {a}, {a}], {k}), axis1=0, axis2=1)",
)
SHAPES = (
    "{a}.T",
    "np.transpose({a})",
    "np.ravel({a})",
    "{a}.reshape(-1)",
    "{a}.reshape(-1, 1)",
    "np.reshape({a}, (1, -1))",
    "{a}[None]",
    "{a}[..., None]",
    "np.atleast_2d({a})",
    "np.broadcast_to({a}, (2,) + {a}.shape)",
    "np.tile({a}, 2)",
    "np.tile({a}, (2, 1, 3))",
    "np.squeeze({a})",
    "np.pad({a}, 1)",
    "np.pad({a}, 2, constant_values=0.5)",
    "np.flip({a})",
    "np.repeat({a}, 3)",
    "np.cumsum({a})",
    "np.atleast_1d({a})",
    "np.atleast_3d({a})",
    "np.ravel({a})[::2]",
    "np.ravel({a})[::-3]",
    "np.linalg.norm({a})",
    "np.ravel({a})[np.array([0, -1, 0, 0])]",
    "np.take({a}, np.array([[0, 0], [-1, 0]]))",
    "np.vstack([{a}, {a} + 1.0])",
    "np.hstack([{a}, {a} + 1.0])",
    "np.dstack([{a}, {a}])",
    "np.column_stack([np.ravel({a}), np.ravel({a})])",
    "np.roll({a}, 1)",
    "np.full((2, 2), np.sum({a}))",
    "np.diag(np.ravel({a})[:3])",
    "np.outer({a}, {a})",
)
SLICES = (
    "{a}[0]",
    "{a}[-1]",
    "{a}[1:]",
    "{a}[::-1]",
    "{a}[:-1]",
    "{a}[..., 0]",
    "{a}[..., ::-1]",
    "{a}[..., 1:]",
    "{a}[..., ::2]",
    "{a}[None, 1:]",
    "{a}[-2:]",
    "{a}[np.array([0, -1, 0])]",
    "{a}[..., np.array([0, 0, -1])]",
    "{a}[0, ..., None]",
    "{a}[0:0]",
    "{a}[3:1:-1]",
)
MATRICES = (
    "{a}[0, 1]",
    "{a}[:, 0]",
    "{a}[:, None, 1:]",
    "{a}[np.array([0, -1]), np.array([1, 1])]",
    "{a}[1:, ::-1]",
    "np.diagonal({a})",
    "np.trace({a})",
    "np.tril({a})",
    "np.triu({a}, 1)",
    "{a} @ {a}.T",
    "np.rot90({a})",
    "np.fliplr({a})",
    "np.flipud({a})",
    "np.einsum('ij->ji', {a})",
    "np.einsum('ij->i', {a})",
    "np.einsum('ij,ij->', {a}, {a})",
    "np.einsum('ij,kj->ik', {a}, {a})",
    "np.linalg.norm({a})",
    "np.linalg.norm({a}, ord=1)",
    "np.einsum('ij,ij->j', {a}, np.sin({a}))",
    "np.inner({a}, {a})",
    "{a}[:, np.array([1, 0, 1])]",
    "np.einsum('ii->i', {a} @ {a}.T)",
    "np.einsum('ii', {a} @ {a}.T)",
    "np.dot({a}.T, {a})",
    "np.einsum('ij,ik,il->jkl', {a}, {a}, {a})",
)
PRODUCTS = (
    "{a} @ {b}",
    "np.matmul({a}, {b})",
    "np.dot({a}, {b})",
    "np.inner({a}, {b})",
    "np.outer({a}, {b})",
    "np.tensordot({a}, {b}, axes=1)",
    "np.vdot({a}, {b})",
    "np.einsum('...i,...i->...', {a}, {b})",
    "np.einsum('i,j->ij', np.ravel({a}), np.ravel({b}))",
    "np.tensordot({a}, {b}, axes=0)",
    "{a} @ np.swapaxes({b}, -1, -2)",
    "np.einsum('...ij,...kj->...ik', {a}, {b})",
    "np.vecdot({a}, {b})",
    "np.concatenate([np.ravel({a}), np.ravel({b})])",
    "np.stack([{a}, {b}], -1)",
    "np.concatenate([{a}, {b}], axis=0)",
    "np.append({a}, {b})",
    "np.cross({a}, {b})",
    "np.where(np.cos(np.arange({a}.size)).reshape({a}.shape) > 0, {a}, {b})",
)
# Whole statements, which make {v}: branches, loops and writes to arrays of the function's own.
STATEMENTS = (
    "{v} = control.cond(np.sum({a}) > 0.1, lambda: np.sin({a}) * 2.0, lambda: {a} * {a})",
    "{v} = control.cond(np.sum({b}) < 0.3, lambda: {a} * 3.0, lambda: np.sin({a}) + np.mean({b}))",
    "{v} = control.fori_loop(0, 3, lambda i, c: np.sin(c) + 0.3 * {a} * (i + 1), {a})",
    "{v} = control.fori_loop(0, 2, lambda i, c: (c[1], c[0] * np.cos(c[1])), ({a}, {a} + 1.0))[0]",
    "{v} = control.while_loop(lambda c: np.sum(c * c) < 4.0, lambda c: c * 1.4 + 0.1, {a})",
    "{v} = {a} * 1.0\n{v}[1:] *= 2.0\n{v}[0] = np.sum({b})\n{v} += {v}[::-1] * 0.3",
    "{v} = {a} * 1.0\nview = {v}[..., ::2]\nview *= {a}[..., :1]\n{v}[-1] -= 0.5",
    "{v} = np.zeros({shape})\n{v}[...] = {b}\n{v}[{v} > 0.2] = 0.1\n{v}[..., -1] = {a}[..., 0]",
    "{v} = np.concatenate([{a}, {a}])\n{v}[: {a}.shape[0]] -= {a} * {a}\n{v}[1] = {v}[0] * 2.0",
    "def body(i, c):\n    c = c * 1.0\n    c[i] = c[i - 1] * 0.5 + np.mean({b})\n    return c\n"
    "{v} = control.fori_loop(1, {a}.shape[0], body, {a})",
    "{v} = np.ravel({a}) * 1.0\nfor k in range(1, 3):\n    {v}[k] = np.tanh({v}[k - 1] * {v}[k])",
    "{v} = control.fori_loop(0, 11, lambda i, c: np.sin(c) * 0.9 + 0.1 * {a} * (i + 1), {a})",
    "rows{v} = np.zeros({a}.shape)\ndef body(i, c):\n    c = np.tanh(c + {a}[i])\n"
    "    rows{v}[i] = c * 1.5\n    return c\n"
    "{v} = control.fori_loop(0, {a}.shape[0], body, {a}[0] * 1.0)\n{v} = rows{v} * {v}",
    "{v} = control.fori_loop(0, 2, lambda i, c: control.fori_loop(0, i + 9, lambda j, d: np.sin(d) "
    "+ 0.2 * {a} * j, c), {a})",
    "{v} = control.while_loop(lambda c: (c[0] < 12) & (np.sum(c[1] * c[1]) < 9.0), lambda c: "
    "(c[0] + 1, c[1] * 1.1 + 0.05 * np.cos({a})), (0, {a}))[1]",
)
GROUPS = (UNARY, BINARY, BINARY, REDUCTIONS, ALONG, SHAPES, SLICES, MATRICES, PRODUCTS)
INPUTS = ((), (3,), (4,), (2, 3), (3, 3), (3, 4), (1, 3), (3, 1), (2, 3, 4), (2, 1, 3), (1,), (1, 1))


@dataclass(frozen=True)
class Function:
    """A function: its text, ``f(np, control, *args)``, and arguments."""

    text: str
    args: tuple[np.ndarray, ...]

    def compiled(self) -> Callable[..., Any]:
        """The function of a module like NumPy, one that has `fori_loop`, and arrays."""
        names: dict[str, Any] = {"numpy": np}
        exec(self.text, names)
        return names["f"]


class Plain:
    """Control flow in Python."""

    @staticmethod
    def fori_loop(first: int, end: int, body: Callable, carried: Any) -> Any:
        for i in range(first, end):
            carried = body(i, carried)
        return carried

    @staticmethod
    def while_loop(goes_on: Callable, body: Callable, carried: Any) -> Any:
        while goes_on(carried):
            carried = body(carried)
        return carried

    @staticmethod
    def cond(predicate: Any, taken: Callable, other: Callable) -> Any:
        return taken() if predicate else other()


def function(seed: int, flow: bool = False, results: int = 1) -> Function:
    """The function of a number, the same in every process.

    Args:
        flow: with `STATEMENTS`.
        results: 1 = a number, which all that is made has a weight of its own in; else that number
            and, for other sizes as well, the last things made.
    """
    pick = random.Random(seed)
    rng = np.random.default_rng(seed)
    shapes = [pick.choice(INPUTS) for _ in range(pick.randint(1, 3))]
    if len(shapes) > 1 and pick.random() < 0.5:
        shapes[1] = shapes[0]
    values = {f"x{k}": rng.standard_normal(shape) for k, shape in enumerate(shapes)}
    args = tuple(values.values())
    made: dict[str, str] = {}
    while len(made) < 6:
        name = f"v{len(made)}"
        text = _statement(pick, values, name, flow)
        moved = {k: v + _NEAR * (0.5 + rng.random(v.shape)) for k, v in values.items()}
        found = [_tried(text, name, given) for given in (values, moved)]
        if any(x is None for x in found) or not _alike(*found):
            continue
        values[name] = found[0]
        made[name] = text
    terms = [
        f"np.sum(np.sin({name}) * numpy.cos(numpy.arange({x.size}.0) + {k}).reshape({x.shape}))"
        for k, (name, x) in enumerate(values.items())
        if name in made
    ]
    if results > 1:
        terms = [f"np.sum(np.sin({name})) * {k + 1}" for k, name in enumerate(made)]
    returned = [" + ".join(terms), *list(made)[::-1][: results - 1]]
    lines = [*"\n".join(made.values()).split("\n"), f"return {', '.join(returned)}"]
    body = "\n    ".join(lines)
    names = ", ".join(f"x{k}" for k in range(len(args)))
    return Function(f"def f(np, control, {names}):\n    {body}\n", args)


def _statement(pick: random.Random, values: dict[str, np.ndarray], name: str, flow: bool) -> str:
    names = list(values)
    a, b = (pick.choice(names[-3:] if pick.random() < 0.6 else names) for _ in range(2))
    rank, shape = values[a].ndim, values[a].shape
    k = pick.randrange(rank) if rank else 0
    axes = [None, k, k - rank, tuple(sorted(pick.sample(range(rank), pick.randint(0, rank))))]
    axis = pick.choice(axes)
    given = "" if axis is None and pick.random() < 0.5 else f", axis={axis}"
    kept = ", keepdims=True"
    whole = flow and pick.random() < 0.5
    text = pick.choice(STATEMENTS) if whole else f"{{v}} = {pick.choice(pick.choice(GROUPS))}"
    return text.format(
        a=a,
        b=b,
        k=k,
        v=name,
        axes=given + kept * (pick.random() < 0.4),
        kept=given + kept,
        shape=shape,
        ramp=f"np.arange({values[a].size}.0).reshape({shape})",
    )


def _tried(text: str, name: str, values: dict[str, np.ndarray]) -> np.ndarray | None:
    """What a statement makes, None if it is of no use."""
    if "while_loop" in text and not all(x.size for x in values.values()):
        return None  # a sum of nothing stays 0
    scope = {"np": np, "control": Plain, **{k: v.copy() for k, v in values.items()}}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(text, scope)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, np.exceptions.AxisError):
        return None
    found = np.asarray(scope[name])
    useful = found.dtype == np.float64 and found.size <= 400 and found.ndim <= 4
    return found if useful and np.abs(found).max(initial=0.0) < _LARGEST else None


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a result moved by no more than its arguments, roughly: it crossed no kink."""
    finite = a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all()
    return bool(finite) and np.abs(a - b).max(initial=0.0) < 0.5


__all__ = ["Function", "Plain", "function"]
