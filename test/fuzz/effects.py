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
        "class State:\n    pass",
        "S = State()",
        f"S.w, S.n, S.d, S.items = {w}, {number}, {{'m': {m}, 'k': {number}}}, [{item}, {number}]",
    ]


def assign(d: Draw) -> str:
    a, n = d.array(), d.number()
    return d.pick([
        f"S.w = {d.expression()}", f"S.w = S.w * {n} + {d.fitting('S.w')}", f"S.n = S.n + {n}",
        "S.n += 1", f"S.d['m'] = {d.expression()}", f"S.d['k'] = {n}", f"S.items[0] = {a} + 0",
        f"S.items[1] = {n}", f"S.w, S.items[0] = {a} * 1, S.w", f"S.w = {a}.copy()",
        "S.d['k'] = S.n", f"S.d['m'] = S.d['m'] * 0.5 + {n}",
    ])  # fmt: skip


def read(d: Draw) -> str:
    return f"{d.scope.name()} = " + d.pick([
        f"S.w * {d.number()}", "S.w + S.n", "S.d['m'] * S.d['k']", "S.items[0] - S.items[1]",
        "S.n", "S.d['k']", f"{d.array()} + S.n", "np.tanh(S.w) * S.d['k']",
    ])  # fmt: skip


def masked(d: Draw) -> str:
    a = d.own()
    n = d.number()
    mask = d.pick([f"{a} > {n}", f"{a} != {a}", f"np.abs({a}) < 1", f"~({a} > 0)", f"{a} == {n}"])
    v = d.scope.name()
    return d.pick([
        f"{a}[{mask}] = {n}", f"{a}[{mask}] += {n}", f"m = {mask}\n{a}[m] = {a}[m] * {n} + 1",
        f"m = {mask}\n{a}[m] = 0\n{a}[~m] *= 2", f"{v} = {a}[{mask}]", f"{v} = {a}[{mask}].sum()",
        f"np.putmask({a}, {mask}, {n})", f"np.copyto({a}, {n}, where={mask})",
        f"{v} = np.sum({a}, where={mask})", f"{v} = np.count_nonzero({mask})",
        f"{v} = np.where({mask})[0]", f"{v} = np.nonzero({mask})",
    ])  # fmt: skip


def indexed(d: Draw) -> str:
    a = d.own()
    i = d.pick(["[0, 1]", "[0, 0, 1]", "np.array([1, -1])", "np.arange(2)", "[-1]",
                f"np.arange(len({a}))", f"np.arange({d.size()}) % len({a})"])  # fmt: skip
    value = d.number() if d.chance(0.6) else d.fitting(a)
    return d.pick([
        f"{a}[{i}] = {value}", f"{a}[{i}] += {value}", f"np.add.at({a}, {i}, {d.number()})",
        f"np.maximum.at({a}, {i}, {d.number()})", f"{a}[{i}] = {a}[{i}] * 2",
        f"{a}[:, {i}] = {d.number()}", f"np.put({a}, {i}, {d.number()})",
        f"np.fill_diagonal({a}, {d.number()})", f"{a}[{i}, 0] -= 1",
    ])  # fmt: skip


def host(d: Draw) -> str:
    a = d.array(lambda a: a.ndim > 0)
    b, axis, v = d.fitting(a), d.axis(a), d.scope.name()
    square = f"({a} @ {a}.T + 3 * np.eye(len({a})))"
    return d.pick([
        f"{v} = np.sort({a}, axis={axis})", f"{v} = np.argsort({a}, axis={axis}, kind='stable')",
        f"{v} = np.unique({a})", f"{v} = np.searchsorted(np.sort({a}.ravel()), {b})",
        f"{v} = np.median({a}, axis={axis})", f"{v} = np.percentile({a}, 30)",
        f"{v} = np.linalg.inv({square})", f"{v} = np.linalg.solve({square}, {b})",
        f"{v} = np.linalg.eigvalsh({square})", f"{v} = np.linalg.det({square})",
        f"{v} = np.fft.fft({a})", f"{v} = np.abs(np.fft.rfft({a}))",
        f"{v} = np.histogram({a}, bins=3)[0]", f"{v} = np.bincount(np.arange({d.size()}) % 3)",
        f"{v} = np.interp({a}, [0, 1, 2], [1, 3, 2])", f"{v} = np.cov({a})",
        f"{v} = np.convolve({a}.ravel(), [1, 2])", f"{v} = np.isin({a}, {b})",
        f"{v} = np.linalg.norm({a})", f"{v} = np.digitize({a}, [0, 1])", f"{a}.sort()",
        f"{v} = np.gradient({a})", f"{v} = np.nanmean({a}, axis={axis})",
        f"{v} = np.partition({a}, 0)", f"{v} = np.polyfit(np.arange(len({a})), {a}, 1)",
        f"{v} = np.flatnonzero({a})", f"{v} = np.lexsort(({a}, {b}))",
    ])  # fmt: skip


KINDS: dict[Callable[[Draw], str], int] = {
    **statements.KINDS, statements.write: 30,
    assign: 14, read: 8, masked: 12, indexed: 12, host: 12,
}  # fmt: skip


def propose(scope: Any) -> str | None:
    """A statement with or without effects; see `statements.propose`."""
    return statements.propose(scope, KINDS)
