"""Statements of random programs, as people write them: text that fits the values there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

HELPERS = [
    "def h(a, b=2):\n    return a * b - a",
    "def h(a, b=0.5):\n    t = np.abs(a)\n    return np.where(t > b, a, b)",
    "def h(a, b=1):\n    if a.ndim > 1:\n        return a.sum(axis=0) * b\n    return a + b",
    "def h(a, *, b=3):\n    o = np.zeros(a.shape)\n    o[...] = a\n    o += b\n    return o",
    "h = lambda a, b=2: (a - a.mean()) / (np.abs(a).max(initial=1) + b)",
    "def h(a, b=2):\n    n = a.shape[0] if a.ndim else 1\n    return a * n / max(n, b)",
]
UNARY = [
    "np.tanh",
    "np.exp",
    "np.abs",
    "np.negative",
    "np.sqrt",
    "np.floor",
    "np.ceil",
    "np.sign",
    "np.square",
    "np.sin",
    "np.cos",
    "np.log",
    "np.log1p",
    "np.expm1",
    "np.isnan",
    "np.rint",
    "np.isfinite",
    "np.reciprocal",
    "np.logical_not",
    "np.invert",
    "np.trunc",
    "np.signbit",
    "np.arctan",
    "np.exp2",
    "np.log2",
    "np.positive",
    "np.sinh",
    "-",
    "+",
    "~",
    "abs",
]
BINARY = (
    ["+"] * 4 + ["-"] * 3 + ["*"] * 4 + ["/", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^"]
)
BINARY_CALLS = [
    "np.maximum",
    "np.minimum",
    "np.arctan2",
    "np.hypot",
    "np.fmod",
    "np.logical_and",
    "np.logical_or",
    "np.power",
    "np.copysign",
    "np.fmax",
    "np.floor_divide",
    "np.add",
    "np.remainder",
    "np.true_divide",
    "np.logaddexp",
    "np.left_shift",
]
REDUCTIONS = [
    "sum",
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "var",
    "std",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
]
CASTS = ["f4", "f8", "i4", "i8", "?", "f2", "u1", "i1"]


class Draw:
    """One statement's choices."""

    def __init__(self, scope: Any) -> None:
        self.scope, self.rng = scope, scope.rng
        self.pick, self.chance = scope.rng.choice, lambda p: scope.rng.random() < p

    def array(self, fits: Callable[[np.ndarray], bool] = lambda a: True) -> str:
        """A name of an array, later ones more likely; raises LookupError if there is none."""
        names = [
            n
            for n in self._arrays()
            if all(isinstance(v, (np.ndarray, np.generic)) and fits(v) for v in self.scope.of(n))
        ]
        if not names:
            raise LookupError
        return self.rng.choices(names, [1 + 2 * k for k in range(len(names))])[0]

    def _arrays(self) -> list[str]:
        found = []
        for name in self.scope.names():
            every = [values[name] for values in self.scope.values]
            if all(isinstance(v, (np.ndarray, np.generic)) for v in every):
                found.append(name)
            if name == "p":
                found += ["p['w']", "p['b'][1]"]
            if name == "S":
                found += ["S.w", "S.d['m']", "S.items[0]"]
        return found

    def own(self) -> str:
        """An array that the function has made: writing to it is its own affair."""
        if self.scope.effects and self.chance(0.7):
            return self.array(lambda a: isinstance(a, np.ndarray) and a.flags.writeable)
        outside = [n for n in self.scope.names() if not n.startswith("v")]
        arrays = [a for n in outside for v in self.scope.values for a in _arrays_in(v[n])]
        return self.array(
            lambda a: (
                isinstance(a, np.ndarray) and a.flags.writeable and not any(np.may_share_memory(a, o) for o in arrays)
            )
        )

    def number(self) -> str:
        """A number: a constant, an argument, or a size."""
        if self.chance(0.5):
            return self.pick(["2", "0.5", "3", "1", "-1", "0", "1.5", "True", "1e-3", "np.pi"])
        names = self.scope.names()
        known = [n for n in names if all(isinstance(v[n], (int, float, np.generic)) for v in self.scope.values)]
        return self.pick(known) if known and self.chance(0.6) else self.size()

    def size(self) -> str:
        """An int worked out from sizes."""
        ints = [n for n in self.scope.names() if all(type(v[n]) is int for v in self.scope.values)]
        if ints and self.chance(0.4):
            base = self.pick(ints)
        else:
            a = self.array(lambda a: a.ndim > 0)
            axis = self.rng.randrange(-1, min(v.ndim for v in self.scope.of(a)))
            base = self.pick([f"{a}.shape[{axis}]"] * 3 + [f"len({a})", f"{a}.size", f"{a}.ndim"])
        return (
            base
            if self.chance(0.4)
            else self.pick(
                [
                    f"{base} - 1",
                    f"{base} + 1",
                    f"{base} // 2",
                    f"2 * {base}",
                    f"{base} - 2",
                    f"-{base}",
                    f"max({base}, 2)",
                    f"min({base}, 3)",
                    f"({base} + 1) // 2",
                    f"{base} % 3",
                    f"3 - {base}",
                    f"abs({base} - 3)",
                    f"{base} - {base} // 2",
                ]
            )
        )

    def bound(self) -> str:
        if self.chance(0.35):
            return ""
        return self.pick(["1", "-1", "2", "0", "-2", "3"]) if self.chance(0.5) else self.size()

    def slice(self) -> str:
        step = self.pick(["", "", "", ":2", ":-1", ":-2", ":3"])
        return f"{self.bound()}:{self.bound()}{step}"

    def index(self, a: str) -> str:
        """An index of an array, mostly one that is in range."""
        rank = min(v.ndim for v in self.scope.of(a))
        parts = []
        for axis in range(self.rng.randint(1, max(rank, 1))):
            kind = self.pick(["slice"] * 5 + ["int", "int", "size", "all", "none", "array", "list"])
            if kind == "array":
                try:
                    parts.append(self.array(lambda i: i.dtype.kind in "iu" and i.dtype.isnative))
                    continue
                except LookupError:
                    kind = "list"
            parts.append(
                {
                    "slice": self.slice,
                    "int": lambda: self.pick(["0", "-1", "1", "2"]),
                    "size": lambda axis=axis: self.pick(
                        [self.size(), f"{a}.shape[{axis}] - 1", f"{a}.shape[{axis}] // 2"]
                    ),
                    "all": lambda: ":",
                    "none": lambda: "None",
                    "list": lambda: self.pick(
                        ["[0, 1]", "[1, 0, -1]", "[0, 0]", "np.array([0, 2])", "np.arange(2)", "[-1]"]
                    ),
                }[kind]()
            )
        if self.chance(0.15):
            parts.insert(self.rng.randrange(len(parts) + 1), "...")
        return ", ".join(parts)

    def axis(self, a: str) -> str:
        rank = min(v.ndim for v in self.scope.of(a))
        if self.chance(0.03):
            return str(rank)  # one too many
        return str(self.rng.randrange(-rank, rank)) if rank else "None"

    def dtype(self) -> str:
        return f"'{self.pick(CASTS)}'"

    def shape_of_size(self, a: str) -> str:
        """What an array may be reshaped to."""
        rank = min(v.ndim for v in self.scope.of(a))
        options = [
            "-1",
            f"{a}.size",
            f"(-1, {self.pick(['1', '2', '3', self.size()])})",
            f"({self.size()}, -1)",
            f"(1, {a}.size)",
        ]
        if rank:
            options += [f"({a}.shape[-1], -1)", f"(-1, {a}.shape[0])", f"{a}.shape + (1,)"]
        if rank > 1:
            options += [
                f"{a}.shape[0] * {a}.shape[1]",
                f"({a}.shape[1], {a}.shape[0], -1)",
                f"({a}.shape[0], {a}.shape[1] // 2, -1)",
                f"{a}.shape[::-1]",
            ]
        return self.pick(options)

    def expression(self) -> str:
        """An array or number of one operation."""
        a = self.array()
        if self.chance(0.4):
            op = self.pick(UNARY)
            return f"{op}({a})" if op[0] not in "-+~" else f"{op}{a}"
        return self.binary(a)

    def binary(self, a: str) -> str:
        b = self.number() if self.chance(0.4) else self.fitting(a)
        if self.chance(0.2):
            a, b = b, a
        if self.chance(0.25):
            return f"{self.pick(BINARY_CALLS)}({a}, {b})"
        return f"({a}) {self.pick(BINARY)} ({b})"

    def fitting(self, a: str) -> str:
        """An array that broadcasts with another."""
        ours = self.scope.of(a)
        names = []
        for name in self._arrays():
            try:
                for mine, other in zip(ours, self.scope.of(name), strict=True):
                    np.broadcast_shapes(mine.shape, other.shape)
                names.append(name)
            except ValueError:
                continue
        return self.pick(names)


def _arrays_in(value: Any, depth: int = 0) -> list[np.ndarray]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):  # which may hold itself
        return [a for item in value for a in _arrays_in(item, depth + 1)] if depth < 9 else []
    return [value] if isinstance(value, np.ndarray) else []


def elementwise(d: Draw) -> str:
    return f"{d.scope.name()} = {d.expression()}"


def chain(d: Draw) -> str:
    a = d.array()
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"np.where({a} > {d.number()}, {a}, {d.fitting(a)})",
                f"np.clip({a}, {d.number()}, 3)",
                f"{a} * {d.number()} + {d.fitting(a)}",
                f"{a}.astype({d.dtype()})",
                f"{a}.copy()",
                f"np.where({a}, {d.number()}, {d.number()})",
                f"1 / (1 + np.exp(-{a}))",
                f"({a} - {a}.mean()) / ({a}.std() + 1)",
                f"np.round({a}, 1)",
                f"{a} ** 2",
                f"np.nan_to_num({a})",
                f"h({a})",
                f"h({a}, b={d.number()})",
                f"np.isclose({a}, 0.5)",
                f"np.sqrt(np.abs({a}))",
                f"{a} * {a}.dtype.itemsize",
                f"np.diff({a})",
                f"{a}.conj()",
            ]
        )
    )


def reduction(d: Draw) -> str:
    a, name = d.array(), d.pick(REDUCTIONS)
    options = []
    rank = min(v.ndim for v in d.scope.of(a))
    if rank and d.chance(0.75):
        options.append(f"axis={d.axis(a)}" if d.chance(0.85) else f"axis={tuple(range(rank))}")
    if d.chance(0.3) and not name.startswith("cum"):
        options.append("keepdims=True")
    if d.chance(0.15) and name in ("sum", "mean", "prod", "cumsum"):
        options.append(f"dtype={d.pick(['np.float32', 'np.float64', 'np.int64'])}")
    if d.chance(0.2) and name in ("var", "std"):
        options.append(f"ddof={d.pick(['1', '0'])}")
    text = ", ".join(options)
    called = f"{a}.{name}({text})" if d.chance(0.6) else f"np.{name}({', '.join([a, *options])})"
    return f"{d.scope.name()} = {called}"


def view(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    if d.chance(0.45):
        return f"{d.scope.name()} = {a}[{d.index(a)}]"
    axis = d.axis(a)
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"{a}.reshape({d.shape_of_size(a)})",
                f"{a}.reshape({d.shape_of_size(a)})",
                f"{a}.ravel()",
                f"{a}.T",
                f"np.swapaxes({a}, 0, {axis})",
                f"{a}[None]",
                f"{a}[..., None]",
                f"{a}.squeeze()",
                f"np.expand_dims({a}, {axis})",
                f"np.flip({a})",
                f"np.flip({a}, {axis})",
                f"np.roll({a}, {d.size()}, axis={axis})",
                f"np.roll({a}, {d.number()})",
                f"np.moveaxis({a}, 0, -1)",
                f"np.broadcast_to({a}, (2,) + {a}.shape)",
                f"{a}.flatten()",
                f"{a}.transpose()",
                f"np.ravel({a}, order='F')",
                f"np.diagonal({a})",
                f"np.lib.stride_tricks.sliding_window_view({a}, {d.pick(['1', '2', d.size()])}, {axis})",
                f"np.broadcast_to({a}, ({d.size()},) + {a}.shape)",
                f"np.rot90({a})",
                f"np.atleast_2d({a})",
            ]
        )
    )


def gather(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    try:
        i = d.array(lambda i: i.dtype.kind in "iu")
    except LookupError:
        i = d.pick(["[0, 1]", "np.array([1, -1])", "np.arange(2)"])
    size = d.size()
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"{a}[{i}]",
                f"np.take({a}, {i}, axis={d.axis(a)})",
                f"{a}[np.arange({size}) % len({a})]",
                f"np.take({a}, {i}, mode='clip')",
                f"np.take_along_axis({a}, np.argmax({a}, 0)[None], 0)",
                f"{a}[{size}]",
                f"np.take({a}, {size})",
                f"{a}[..., {i}]",
                f"{a}[np.array([{size}, 0])]",
            ]
        )
    )


def creation(d: Draw) -> str:
    a = d.array()
    shape = d.pick([f"{a}.shape", d.size(), f"({d.size()}, {d.size()})", f"({d.size()},)", "3"])
    dtype = d.pick(["", "", f", dtype={d.dtype()}", f", {a}.dtype"])
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"np.zeros({shape}{dtype})",
                f"np.ones({shape}{dtype})",
                f"np.full({shape}, {d.number()})",
                f"np.arange({d.size()})",
                f"np.arange({d.size()}, {d.size()})",
                f"np.zeros_like({a})",
                f"np.arange({d.size()}, {d.size()}, {d.pick(['2', '-1', '3', '0.5', d.size()])})",
                f"np.arange({d.pick(['0.5', '4.0', '2.5'])}, dtype={d.dtype()})",
                f"np.eye({d.size()})",
                f"np.linspace({d.number()}, {d.number()}, {d.size()})",
                f"np.eye({d.size()}, k=1)",
                f"np.linspace(0, 1, {d.size()}, endpoint=False)",
                f"np.full_like({a}, {d.number()})",
                f"np.array([{d.number()}, {d.number()}])",
                f"np.asarray({a})",
                f"np.ones_like({a}) * 2",
                f"np.tri({d.size()})",
                f"np.array([{a}, {a}])",
                "np.identity(3)",
            ]
        )
    )


def join(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    b, axis, size = d.fitting(a), d.axis(a), d.size()
    parts = d.pick(["2", "3", size, "[1, 2]"])
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"np.concatenate([{a}, {b}], axis={axis})",
                f"np.concatenate(({a}, {a}[::-1]))",
                f"np.stack([{a}, {a}], axis={axis})",
                f"np.vstack([{a}, {b}])",
                f"np.hstack([{a}, {b}])",
                f"np.array_split({a}, {parts}, axis={axis})[{d.pick(['0', '-1', '1'])}]",
                f"np.split({a}, {parts})[0]",
                f"np.pad({a}, {d.pick(['1', '(0, 2)', '(1, 0)', size])})",
                f"np.pad({a}, 1, mode='edge')",
                f"np.tile({a}, {d.pick(['2', '(2, 1)', size])})",
                f"np.repeat({a}, {d.pick(['2', '3', size])}, axis={axis})",
                f"np.repeat({a}, 2)",
                f"np.append({a}, {b})",
                f"np.column_stack([{a}, {a}])",
                f"np.broadcast_arrays({a}, {b})[0]",
            ]
        )
    )


def product(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    b = d.fitting(a)
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                f"{a} @ {a}.T",
                f"{a}.T @ {b}",
                f"{a} @ {b}",
                f"np.dot({a}, {b}.T)",
                f"np.outer({a}, {b})",
                f"np.einsum('ij,kj->ik', {a}, {a})",
                f"np.einsum('ij->j', {a})",
                f"np.inner({a}, {a})",
                f"np.einsum('ij,ij->i', {a}, {b})",
                f"np.vdot({a}, {b})",
                f"np.trace({a})",
                f"np.tensordot({a}, {a}, axes=([0], [0]))",
                f"np.triu({a})",
                f"np.tril({a}, -1)",
                f"np.diag({a})",
                f"np.einsum('i,i', {a}, {a})",
                f"np.matmul({a}, {b}.T)",
                f"np.einsum('...i,...i->...', {a}, {a})",
                f"np.kron({a}, {b})",
                f"np.subtract.outer({a}, {b})",
                f"np.maximum.accumulate({a})",
                f"np.less.outer({a}, {a})",
            ]
        )
    )


def write(d: Draw) -> str:
    a = d.array() if d.chance(0.04) else d.own()
    index = d.index(a)
    value = d.number() if d.chance(0.5) else d.fitting(a)
    return d.pick(
        [
            f"{a}[{index}] = {value}",
            f"{a}[{index}] += {value}",
            f"{a} += {value}",
            f"{a} *= {value}",
            f"{a}[{index}] *= {d.number()}",
            f"{a}[1:] = {a}[:-1]",
            f"{a}[{a} > 0] = {d.number()}",
            f"{a}[:] = {a}[::-1]",
            f"{a}[...] = {value}",
            f"np.add({a}, {value}, out={a})",
            f"{a}[::2] -= {d.number()}",
            f"{a} -= {a}.mean()",
            f"{a}[-1] = {a}[0]",
            f"{a} /= 2",
            f"{a}.fill({d.number()})",
            f"{a}[{index}] = {a}[{index}] + 1",
            f"{a} //= {d.number()}",
        ]
    )


def number(d: Draw) -> str:
    a = d.array()
    return (
        d.scope.name()
        + " = "
        + d.pick(
            [
                d.size(),
                d.size(),
                f"{d.number()} * {d.number()}",
                f"{d.number()} + {d.number()}",
                f"{d.size()} / 2",
                f"float({d.size()})",
                f"{d.number()} / {d.number()}",
                f"{a}.shape",
                f"int({d.number()})",
                f"{d.size()} ** 2",
                f"{d.number()} ** {d.number()}",
                f"np.sqrt({d.number()})",
                f"{d.size()} // {d.size()}",
                f"{d.size()} % {d.size()}",
                f"divmod({d.size()}, 2)[1]",
                f"np.float32({d.number()})",
                f"{a}.size",
                f"float({a}.sum())",
                f"{d.number()} if {d.number()} > 1 else {d.number()}",
                f"min({d.size()}, {d.size()})",
            ]
        )
    )


def branch(d: Draw) -> str:
    v = d.scope.name()
    a = d.array()
    test = d.pick(
        [
            f"{d.size()} > 2",
            f"{d.number()} > 1",
            f"{d.size()} == {d.size()}",
            f"{a}.ndim",
            f"{d.size()}",
            f"{d.size()} < 3 and {d.number()} != 0",
            f"{a}.size == 0",
            f"{a}.shape[0] % 2 == 0",
            f"{a}.dtype == np.float32",
            "d is None",
            f"not {d.number()}",
        ]
    )
    return f"if {test}:\n    {v} = {d.expression()}\nelse:\n    {v} = {d.expression()}"


def loop(d: Draw) -> str:
    v, a = d.scope.name(), d.array(lambda a: a.ndim > 0)
    times = d.pick(
        [f"range({d.size()})", "range(3)", f"range(len({a}))", "range(2, 0, -1)", f"range(0, {a}.shape[0], 2)"]
    )
    return d.pick(
        [
            f"{v} = {a} * 1\nfor i in {times}:\n    {v} = {v} + i * {d.number()}",
            f"{v} = np.zeros({a}.shape)\nfor i in range(len({a})):\n    {v}[i] = {a}[i] * (i + 1)",
            f"{v} = 0\nfor i in {times}:\n    {v} = {v} + {a}[i]",
            f"{v} = {a} + 0\nfor i in {times}:\n    {v}[i] = i",
            f"{v} = {a}[0]\nfor row in {a}:\n    {v} = np.maximum({v}, row)",
            f"{v} = sum([{a}[i] for i in {times}])",
            f"{v} = {a} + 0\nj = 0\nwhile j < ({d.size()}) % 99:\n    {v} = {v} * 2\n    j += 1",
            f"{v} = np.stack([{a} + i for i in {times}])",
            f"{v} = 0\nfor i, row in enumerate({a}):\n    {v} = {v} + row * i",
            f"{v} = np.zeros(3)\nfor i in {times}:\n    {v}[i % 3] += {a}.sum()",
            f"{v} = {a} * 2\nfor i in range(1, len({v})):\n    {v}[i] += {v}[i - 1]",
        ]
    )


def caught(d: Draw) -> str:
    v = d.scope.name()
    error = d.pick(
        ["ValueError", "IndexError", "Exception", "(ValueError, IndexError)", "TypeError", "ZeroDivisionError"]
    )
    inner = d.pick([gather, view, join, product, creation, write, number])(d)
    first, *more = inner.split("\n")
    if "=" in first and first.startswith("v") and " = " in first and "[" not in first[:6]:
        first = f"{v} = {first.split(' = ', 1)[1]}"
    else:
        first = f"{first}\n    {v} = {d.expression()}"
    other = f"{v} = {d.expression()}"
    return "\n".join([f"try:\n    {first}", *more, f"except {error}:\n    {other}"])


KINDS = {
    elementwise: 22,
    chain: 10,
    reduction: 12,
    view: 14,
    gather: 5,
    creation: 9,
    join: 8,
    product: 6,
    write: 12,
    number: 7,
    branch: 5,
    loop: 5,
    caught: 4,
}


def propose(scope: Any, kinds: dict[Callable[[Draw], str], int] = KINDS) -> str | None:
    """A statement, or None where what it would need is not there."""
    draw = Draw(scope)
    kind = scope.rng.choices(list(kinds), list(kinds.values()))[0]
    try:
        return kind(draw)
    except (LookupError, ValueError):
        return None
