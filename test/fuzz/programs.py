"""Random NumPy functions, as text, with the calls that are made of them.

A program grows a statement at a time. `statements` proposes one, and it is run on NumPy with the
arguments of two calls of different sizes, so that what follows knows the shapes and dtypes there
are; one that NumPy refuses is mostly taken back. What happens at other sizes nobody looks at:
errors there are NumPy's, and are expected of every tier.
"""

from __future__ import annotations

import contextlib
import random
import re
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import data, effects, statements

SIZES = [(3, 4), (4, 4), (5, 2), (2, 3), (1, 4), (3, 1), (0, 3), (4, 0), (7, 5), (1, 1), (6, 3)]
DTYPES = {
    "f4": 40,
    "f8": 25,
    "f2": 6,
    "bfloat16": 2,
    "i8": 10,
    "i4": 6,
    "i1": 2,
    "u1": 2,
    "i2": 1,
    "u2": 1,
    "u4": 1,
    "u8": 1,
    "?": 4,
    ">f4": 1,
    ">i4": 1,
}
LAYOUTS = {"C": 60, "F": 6, "T": 8, "slice": 8, "neg": 8, "ro": 6, "odd": 2, "bcast": 3}
CAPTURED_LAYOUTS = {"C": 20, "F": 6, "T": 8, "slice": 8, "neg": 10, "ro": 4, "odd": 6, "bcast": 6}
NUMBERS = {
    "int": ["2", "1", "3", "0", "-1", "5"],
    "float": ["2.5", "0.5", "-1.0", "0.0", "-0.0", "float('nan')", "float('inf')", "1e30"],
    "bool": ["True", "False"],
    "scalar": ["np.float32(1.5)", "np.int64(3)", "np.float64(-2.0)", "np.uint8(7)", "np.int8(-3)"],
}


@dataclass(frozen=True)
class Program:
    """A function as text, and calls of it.

    Attributes:
        name: which it is: seed and number.
        before: what the module has before the function: captured arrays, helpers.
        parameters: of the function, as in its signature.
        body: statements, each of one or more lines.
        results: names that it returns.
        calls: the arguments of each call, as text.
        nested: the function is made by another, which holds what it captures.
        effects: it may write to arguments, captured arrays, attributes and items.
    """

    name: str
    before: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    nested: bool = False
    effects: bool = False

    def source(self) -> str:
        """Text of the module."""
        returned = ", ".join(self.results) + ("," if len(self.results) == 1 else "")
        lines = [f"def f({', '.join(self.parameters)}):"]
        lines += [f"    {line}" for text in self.body for line in text.split("\n")]
        lines += [f"    return {returned or 'None'}"]
        before = [line for text in self.before for line in text.split("\n")]
        if self.nested:
            inner = [f"    {line}" for line in [*before, *lines]]
            return "\n".join(["def make():", *inner, "    return f", "f = make()", ""])
        return "\n".join([*before, *lines, ""])


@dataclass
class Scope:
    """What the statements of a program can use: values by name, at two sizes.

    Attributes:
        rng: draws everything.
        values: name -> its value in the two runs.
        fresh: number of the last name that was given.
        effects: statements may write to what the function has not made.
    """

    rng: random.Random
    values: list[dict[str, Any]] = field(default_factory=lambda: [{}, {}])
    fresh: int = 0
    effects: bool = False

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def of(self, expression: str) -> list[Any]:
        return [eval(expression, dict(scope)) for scope in self.values]

    def names(self) -> list[str]:
        return [n for n in self.values[0] if n in self.values[1] and not n.startswith("__")]


def draw(rng: random.Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without floating-point and other warnings."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class TooLong(BaseException):
    """Time is up. No Exception: neither programs nor who runs them catch it on the way."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TooLong in a main thread that takes longer; may be nested."""

    def stop(*_: Any) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGALRM, stop)
    outer, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    begun = time.monotonic()
    try:
        yield
    finally:
        left = max(outer - (time.monotonic() - begun), 1e-3) if outer else 0
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, left)


def namespace() -> dict[str, Any]:
    """Globals that programs are run in."""
    return {"np": np, "arr": data.arr, "given": data.given}


def generate(seed: int, number: int) -> Program:
    """The program of this number; the same one for the same seed. A third of them have effects."""
    rng = random.Random(f"{seed}/{number}")
    scope = Scope(rng, effects=random.Random(f"{seed}/{number}/effects").random() < 1 / 3)
    before = _captured(rng)
    if scope.effects:
        before += effects.state(rng, lambda shape: _array(rng, shape))
    parameters, makers = _parameters(rng)
    if scope.effects:
        apart = random.Random(f"{seed}/{number}/containers")
        names, more = effects.containers(apart, lambda shape: _array(apart, shape))
        place = next((k for k, p in enumerate(parameters) if "=" in p), len(parameters))
        parameters[place:place], makers[place:place] = names, more
    sizes = _sizes(rng)
    calls = tuple("given(" + ", ".join(make(n, m, k) for make in makers) + ")" for k, (n, m) in enumerate(sizes))
    program = Program(
        f"{seed}/{number}",
        tuple(before),
        tuple(parameters),
        calls=calls,
        nested=rng.random() < 0.3 and not scope.effects,
        effects=scope.effects,
    )
    firsts = [calls[0], next((c for c, s in zip(calls, sizes, strict=True) if s != sizes[0]), calls[0])]
    names = [p.partition("=")[0] for p in parameters]
    for values, call in zip(scope.values, firsts, strict=True):
        values.update(namespace())
        exec("\n".join(before), values)
        args, kwargs = eval(call, values)
        for parameter in parameters[len(args) :]:
            if "=" in parameter:
                kwargs[parameter.partition("=")[0]] = eval(parameter.partition("=")[2], values)
        values.update(zip(names, args, strict=False), **kwargs)
    body = _body(scope)
    made = [n for n in scope.names() if n.startswith("v") and n[1:].isdigit()]
    made = [n for n in made if _returnable(scope.values[0][n])]
    # What nothing else uses, so that all of it counts; and sometimes something in between.
    text = "\n".join(body)
    results = [n for n in made if len(re.findall(rf"\b{n}\b", text)) == 1]
    results += rng.sample(made, 1) if made and rng.random() < 0.4 else []
    results = list(dict.fromkeys(results or made[-1:]))
    if rng.random() < 0.15 and len(results) > 1:
        results = [f"{{'a': {results[0]}, 'b': ({results[1]}, [{results[-1]}])}}"]
    return replace(program, body=tuple(body), results=tuple(results))


def _returnable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_returnable, value))
    return isinstance(value, (np.ndarray, np.generic, int, float, bool))


def _captured(rng: random.Random) -> list[str]:
    lines = []
    for k in range(rng.choice([0, 0, 1, 1, 2])):
        shape = rng.choice(["(3,)", "(4,)", "(3, 4)", "()", "(1, 4)", "(0,)", "(2, 2, 3)", "(5, 1)"])
        lines.append(f"G{k} = {_array(rng, shape)}")
    if rng.random() < 0.3:
        lines.append(rng.choice(statements.HELPERS))
    return lines


def _array(rng: random.Random, shape: str) -> str:
    """Text of an array that does not change from call to call, unless the function writes to it."""
    dtype, layout = draw(rng, DTYPES), draw(rng, CAPTURED_LAYOUTS)
    return f"arr('{dtype}', {shape}, '{layout}', {rng.randrange(99)})"


def _parameters(rng: random.Random) -> tuple[list[str], list[Any]]:
    """Parameters, and for each what makes the text of its argument of sizes and a call."""
    parameters, makers = [], []

    def array(first: bool) -> Any:
        shape = rng.choice(
            ["({n}, {m})"] * 4
            + ["({n},)"] * 3
            + ["({m}, {n})", "({n}, 2, {m})", "({m},)", "({n}, {n})", "(3, {n})", "()", "(1, {m})"]
        )
        if first and shape == "()":
            shape = "({n},)"
        dtype, kind = draw(rng, DTYPES), rng.choice(["eighths"] * 6 + ["normal"] * 5 + ["special"])
        usual = draw(rng, LAYOUTS)
        seed = rng.randrange(1000)

        def make(n: int, m: int, call: int) -> str:
            layout = usual if rng.random() < 0.75 else draw(rng, LAYOUTS)
            text = shape.format(n=n, m=m)
            return f"arr('{dtype}', {text}, '{layout}', {seed + call}, '{kind}')"

        return make

    def number() -> Any:
        kind = rng.choice(["int", "int", "float", "float", "bool", "scalar"])
        usual = rng.choice(NUMBERS[kind])

        def make(n: int, m: int, call: int) -> str:
            if rng.random() < 0.6:
                return usual
            return rng.choice(NUMBERS[kind if rng.random() < 0.85 else rng.choice(list(NUMBERS))])

        return make

    for name in ["x", "y", "z"][: rng.choice([1, 2, 2, 3])]:
        parameters.append(name)
        makers.append(array(name == "x"))
    if rng.random() < 0.5:
        parameters.append("k")
        makers.append(number())
    if rng.random() < 0.15:
        parameters.append("p")
        w, b = array(False), number()
        makers.append(lambda n, m, c: f"{{'w': {w(n, m, c)}, 'b': ({b(n, m, c)}, {w(m, n, c)})}}")
    if rng.random() < 0.15:
        parameters.append(f"d={rng.choice(['2', '0.5', 'None', '(1, 0)'])}")
    return parameters, makers


def _sizes(rng: random.Random) -> list[tuple[int, int]]:
    """Growing, shrinking and repeated sizes; the first three times at least."""
    first = rng.choice(SIZES[:6])
    others = rng.sample(SIZES, rng.choice([1, 2, 3]))
    sizes = [first, first, first]
    for size in others:
        sizes += [size] * rng.choice([1, 1, 2])
    return [*sizes, first] if rng.random() < 0.3 else sizes


def _body(scope: Scope) -> list[str]:
    body: list[str] = []
    wanted = scope.rng.choice([3, 4, 5, 6, 7, 8, 10, 12])
    tries = 0
    while len(body) < wanted and tries < 12 * wanted:
        tries += 1
        text = (effects if scope.effects else statements).propose(scope)
        if text is None:
            continue
        after = []
        failed = 0
        for values in scope.values:
            trial = dict(values)
            try:
                with quiet(), at_most(2):
                    exec(text, trial)
            except (Exception, TooLong):
                failed += 1
                trial = dict(values)
            after.append(trial)
        if any(_huge(v) for trial in after for v in trial.values()):
            continue
        # What fails at both sizes would end the program: keep few of these, and only as the last.
        if failed == 2 and scope.rng.random() < 0.97:
            continue
        if failed == 1 and scope.rng.random() < 0.8:
            continue
        body.append(text)
        if failed:
            break
        scope.values = after
    return body


def _huge(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.size > 3000 or value.ndim > 5
    return isinstance(value, int) and abs(value) > 1 << 62
