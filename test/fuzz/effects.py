"""Statements of programs with effects: what they write to, and functions that run on the host."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from . import statements
from .statements import Draw


def state(rng: random.Random, array: Callable[[str], str]) -> list[str]:
    """An object whose attributes and items the function reads and writes."""
    shapes = ["(3,)", "(4,)", "(3, 4)", "(2,)", "(4, 1)", "()"]
    w, m, item = (array(rng.choice(shapes)) for _ in range(3))
    number = rng.choice(["2", "0.5", "0", "-1"])
    return [
        "import dataclasses",
        "class State:\n    pass",
        "@dataclasses.dataclass\nclass Box:\n    w: object\n    n: object = 0",
        "S = State()",
        "S.rows, S.i = np.ones((4, 3)), 0",
        f"S.w, S.n, S.d, S.items = {w}, {number}, {{'m': {m}, 'k': {number}}}, [{item}, {number}]",
    ]


def containers(
    rng: random.Random, array: Callable[[str], str]
) -> tuple[list[str], list[Callable[[int, int, int], str]]]:
    """Parameters that are containers, and what makes the text of each argument of a call.

    Most calls are given containers of their own; some are given what the function finds elsewhere.
    """
    shapes = ["({n},)", "({n}, {m})", "(3,)", "(4,)"]
    w, shape = array(rng.choice(["(3,)", "(4,)"])), rng.choice(shapes)
    number, usual = rng.choice(["2", "0.5", "1"]), rng.random()
    other = f"arr('{rng.choice(['f4', 'f8', 'i8'])}', {shape}, 'C', {rng.randrange(99)})"
    own = {
        "q": f"{{'m': {other}, 'k': {number}, 'in': {{'a': [{w}, 1.5]}}}}",
        "r": f"[{other}, {number}, {{'m': {w}}}]",
        "o": f"Box({other}, {number})",
    }
    found = {"q": ["S.d | {'in': S.d}", "dict(S.d, m=S.w)"], "r": ["[S.w, S.n, S.d]"], "o": ["Box(S.w, S.d)", "S"]}
    if usual < 0.15:
        found = {"q": ["S.d", "vars(S)"], "r": ["S.items"], "o": ["S"]}

    def maker(name: str) -> Callable[[int, int, int], str]:
        def make(n: int, m: int, call: int) -> str:
            text = rng.choice(found[name]) if rng.random() < 0.12 else own[name]
            return text.replace("{n}", str(n)).replace("{m}", str(m))

        return make

    names = [name for name in own if rng.random() < 0.6]
    makers = [maker(name) for name in names]
    if names and rng.random() < 0.3:  # the same object, or one of another call
        first = makers[0]
        makers[0] = lambda n, m, c: f"(same := {first(n, m, c)})"
        again = rng.random()
        makers.append(lambda n, m, c: "same" if rng.random() < again else first(n, m, c))
        names.append("twin")
    return names, makers


def change(d: Draw) -> str:
    """Of what a container among the arguments holds; raises LookupError if there is none."""
    names = [n for n in ("q", "r", "o", "twin") if n in d.scope.names()]
    if not names:
        raise LookupError
    name, a, n, v = d.pick(names), d.array(), d.number(), d.scope.name()
    held = d.scope.values[0][name]
    if isinstance(held, dict):
        return d.pick(
            [
                f"{name}['m'] = {d.expression()}",
                f"{name}['m'] = {name}['m'] * {n} + 1",
                f"{name}['k'] += 1",
                f"{name}['k'] = {name}['k'] * 2",
                f"{name}['m'] *= 2",
                f"{name}['m'][0] = {n}",
                f"{name}['new'] = {a} + {n}",
                f"{v} = {name}.pop('k')",
                f"{name}.pop('new', None)",
                f"{name}.update(m={a}, k={n})",
                f"{v} = {name}.setdefault('more', {a} * 2)",
                f"del {name}['m']\n{name}['m'] = {a}",
                f"{name}['in']['a'][0] = {name}['in']['a'][0] + 1",
                f"{name}['in']['b'] = {name}['m']",
                f"S.w, {name}['m'] = {name}['m'], S.w",
                f"S.d['in'] = {name}",
                f"{v} = {name}",
                f"for key in ('m', 'k'):\n    {name}[key] = {name}[key] + 1",
                f"{v} = {name}['m'] + {name}['k']",
                f"{name}['k'] = {name}['m'].sum()",
            ]
        )
    if isinstance(held, list):
        return d.pick(
            [
                f"{name}[0] = {d.expression()}",
                f"{name}[0] = {name}[0] * {n}",
                f"{name}[1] += 1",
                f"{name}[0] += 1",
                f"{name}[0][0] = {n}",
                f"{name}.append({a} * {n})",
                f"{v} = {name}.pop()",
                f"{name}.insert(0, {a})",
                f"{name}.reverse()",
                f"{name}[-1]['m'] = {name}[-1]['m'] - {n}",
                f"{name}[:2] = [{a}, {n}]",
                f"{name}[0], S.items[0] = S.items[0], {name}[0]",
                f"{name}.extend([{a}, 2])",
                f"{name}[0], {name}[1] = {name}[1], {name}[0]",
                f"{v} = len({name})",
                f"{v} = {name}",
                f"{v} = [u * 2 for u in {name}[:2]]",
            ]
        )
    return d.pick(
        [
            f"{name}.w = {d.expression()}",
            f"{name}.w = {name}.w * {n}",
            f"{name}.n += 1",
            f"{name}.w -= 1",
            f"{name}.w[0] = {n}",
            f"{name}.w, S.w = S.w, {name}.w",
            f"{name}.more = {a} * 2",
            f"{v} = {name}.w + {name}.n",
            f"{name}.n = {name}.w.sum()",
            f"S.box = {name}",
            f"{v} = getattr({name}, 'more', {a})",
            f"{name}.w = {name}.n = {n}",
            f"{v} = Box({name}.w * 2, {name}.n).w",
        ]
    )


def rows(d: Draw) -> str:
    """Rows at run-time indices, and what has been written so far."""
    n, v = d.number(), d.scope.name()
    return d.pick(
        [
            f"S.rows[S.i % 4] = {n}\nS.i += 1",
            "S.rows[S.i] += 1\nS.i = (S.i + 1) % 3",
            f"S.rows[:, S.i] *= {n}",
            f"{v} = S.rows[: S.i + 1].sum(axis=0)",
            f"{v} = S.rows[S.i] * 2",
            f"S.rows[S.i] = S.rows[S.i - 1] + {n}",
            f"S.rows[S.i, 1] = {n}",
            "S.i += 1",
            "S.i = 0",
            f"{v} = np.tanh(S.rows[:, : S.i + 1])",
            f"S.rows[-1] = {n}",
            f"{v} = S.rows.copy()",
        ]
    )


def assign(d: Draw) -> str:
    a, n = d.array(), d.number()
    return d.pick(
        [
            f"S.w = {d.expression()}",
            f"S.w = S.w * {n} + {d.fitting('S.w')}",
            f"S.n = S.n + {n}",
            "S.n += 1",
            f"S.d['m'] = {d.expression()}",
            f"S.d['k'] = {n}",
            f"S.items[0] = {a} + 0",
            f"S.items[1] = {n}",
            f"S.w, S.items[0] = {a} * 1, S.w",
            f"S.w = {a}.copy()",
            "S.d['k'] = S.n",
            f"S.d['m'] = S.d['m'] * 0.5 + {n}",
            f"S.d[{d.size()}] = {n}",
            f"S.d[{a}.shape] = S.d.get({a}.shape, 0) + 1",
            "S.d['m'] = S.d.pop('m')",
        ]
    )


def read(d: Draw) -> str:
    return f"{d.scope.name()} = " + d.pick(
        [
            f"S.w * {d.number()}",
            "S.w + S.n",
            "S.d['m'] * S.d['k']",
            "S.items[0] - S.items[1]",
            "S.n",
            "S.d['k']",
            f"{d.array()} + S.n",
            "np.tanh(S.w) * S.d['k']",
        ]
    )


def masked(d: Draw) -> str:
    a = d.own()
    n = d.number()
    mask = d.pick([f"{a} > {n}", f"{a} != {a}", f"np.abs({a}) < 1", f"~({a} > 0)", f"{a} == {n}"])
    v = d.scope.name()
    return d.pick(
        [
            f"{a}[{mask}] = {n}",
            f"{a}[{mask}] += {n}",
            f"m = {mask}\n{a}[m] = {a}[m] * {n} + 1",
            f"m = {mask}\n{a}[m] = 0\n{a}[~m] *= 2",
            f"{v} = {a}[{mask}]",
            f"{v} = {a}[{mask}].sum()",
            f"np.putmask({a}, {mask}, {n})",
            f"np.copyto({a}, {n}, where={mask})",
            f"{v} = np.sum({a}, where={mask})",
            f"{v} = np.count_nonzero({mask})",
            f"{v} = np.where({mask})[0]",
            f"{v} = np.nonzero({mask})",
        ]
    )


def indexed(d: Draw) -> str:
    a = d.own()
    i = d.pick(
        [
            "[0, 1]",
            "[0, 0, 1]",
            "np.array([1, -1])",
            "np.arange(2)",
            "[-1]",
            f"np.arange(len({a}))",
            f"np.arange({d.size()}) % len({a})",
        ]
    )
    value = d.number() if d.chance(0.6) else d.fitting(a)
    return d.pick(
        [
            f"{a}[{i}] = {value}",
            f"{a}[{i}] += {value}",
            f"np.add.at({a}, {i}, {d.number()})",
            f"np.maximum.at({a}, {i}, {d.number()})",
            f"{a}[{i}] = {a}[{i}] * 2",
            f"{a}[:, {i}] = {d.number()}",
            f"np.put({a}, {i}, {d.number()})",
            f"np.fill_diagonal({a}, {d.number()})",
            f"{a}[{i}, 0] -= 1",
        ]
    )


def host(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    b, axis, v = d.fitting(a), d.axis(a), d.scope.name()
    square = f"({a} @ {a}.T + 3 * np.eye(len({a})))"
    return d.pick(
        [
            f"{v} = np.sort({a}, axis={axis})",
            f"{v} = np.argsort({a}, axis={axis}, kind='stable')",
            f"{v} = np.unique({a})",
            f"{v} = np.searchsorted(np.sort({a}.ravel()), {b})",
            f"{v} = np.median({a}, axis={axis})",
            f"{v} = np.percentile({a}, 30)",
            f"{v} = np.linalg.inv({square})",
            f"{v} = np.linalg.solve({square}, {b})",
            f"{v} = np.linalg.eigvalsh({square})",
            f"{v} = np.linalg.det({square})",
            f"{v} = np.fft.fft({a})",
            f"{v} = np.abs(np.fft.rfft({a}))",
            f"{v} = np.histogram({a}, bins=3)[0]",
            f"{v} = np.bincount(np.arange({d.size()}) % 3)",
            f"{v} = np.interp({a}, [0, 1, 2], [1, 3, 2])",
            f"{v} = np.cov({a})",
            f"{v} = np.convolve({a}.ravel(), [1, 2])",
            f"{v} = np.isin({a}, {b})",
            f"{v} = np.linalg.norm({a})",
            f"{v} = np.digitize({a}, [0, 1])",
            f"{a}.sort()",
            f"{v} = np.gradient({a})",
            f"{v} = np.nanmean({a}, axis={axis})",
            f"{v} = np.partition({a}, 0)",
            f"{v} = np.polyfit(np.arange(len({a})), {a}, 1)",
            f"{v} = np.flatnonzero({a})",
            f"{v} = np.lexsort(({a}, {b}))",
        ]
    )


KINDS: dict[Callable[[Draw], str], int] = {
    **statements.KINDS,
    statements.write: 30,
    assign: 14,
    read: 8,
    masked: 12,
    indexed: 12,
    host: 12,
    change: 40,
    rows: 10,
}


def propose(scope: Any) -> str | None:
    """A statement with or without effects; see `statements.propose`."""
    try:
        return statements.propose(scope, KINDS)
    except AttributeError:  # an attribute or item that was an array is a number by now
        return None
