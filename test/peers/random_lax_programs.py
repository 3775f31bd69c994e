"""Random programs of `jax.lax` of several ops: loops that carry arrays, branches, scans, transforms, scatters by mode.

`random_lax` draws one op at a time; these draw what surrounds it: statements of a body, and what jax makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from lax_draws import Program, floats, ints, sizes

State = tuple[Any, Any, Any]  # a matrix of ROWS x COLUMNS, a vector of COLUMNS, a number
Step = Callable[[Any, State], State]
ROWS, COLUMNS = 5, 4
PROGRAM_MAKERS: list[Callable[[np.random.Generator], Program]] = []


def program_maker(function: Callable[[np.random.Generator], Program]) -> Callable[[np.random.Generator], Program]:
    """Register what draws programs of a kind."""
    PROGRAM_MAKERS.append(function)
    return function


def _writes(rng: np.random.Generator) -> list[tuple[str, Step]]:
    """Statements that replace parts of the matrix, at places of the round, of contents, and of the program."""
    several = jnp.asarray(ints(rng, (3,), -1, ROWS))
    column, mode = int(rng.integers(COLUMNS)), str(rng.choice(["clip", "drop", "promise_in_bounds"]))
    width = int(rng.integers(1, COLUMNS + 1))

    def place(i: Any) -> Any:
        return (i % ROWS).astype(jnp.int32)

    return [
        ("set a row", lambda i, s: (s[0].at[place(i)].set(s[1], mode=mode), s[1], s[2])),
        ("set a row that may be outside", lambda i, s: (s[0].at[i].set(s[1] * 0.5), s[1], s[2])),
        ("add to a row", lambda i, s: (s[0].at[place(i + 1)].add(s[1]), s[1], s[2])),
        ("set an element", lambda i, s: (s[0].at[place(i), column].set(s[2]), s[1], s[2])),
        ("multiply an element", lambda i, s: (s[0].at[place(i), column].multiply(0.5), s[1], s[2])),
        ("set a column", lambda i, s: (s[0].at[:, column].set(s[0][:, 0] + s[2]), s[1], s[2])),
        ("add to rows", lambda i, s: (s[0].at[several].add(s[1] * 0.5), s[1], s[2])),
        ("greatest of rows", lambda i, s: (s[0].at[several].max(s[1][None]), s[1], s[2])),
        ("swap rows", lambda i, s: (s[0].at[jnp.array([0, 2])].set(s[0][jnp.array([2, 0])]), s[1], s[2])),
        ("place of contents", lambda i, s: (s[0].at[jnp.argmax(s[1]) % ROWS].add(1.0), s[1], s[2])),
        ("update a slice", lambda i, s: (lax.dynamic_update_slice(s[0], s[1][None], (i, 0)), s[1], s[2])),
        (
            "update a window",
            lambda i, s: (lax.dynamic_update_slice(s[0], s[0][:2, :width] + 1, (i, i - 1)), s[1], s[2]),
        ),
    ]


def _reads(rng: np.random.Generator) -> list[tuple[str, Step]]:
    """Statements that compute the vector and the number anew."""
    weights = jnp.asarray(floats(rng, (COLUMNS, COLUMNS)) * 0.5)

    def place(i: Any) -> Any:
        return (i % ROWS).astype(jnp.int32)

    def branch(i: Any, s: State) -> State:
        return (s[0], lax.cond(s[2] > 0.2, lambda v: jnp.tanh(v), lambda v: v * 0.5, s[1]), s[2])

    def switch(i: Any, s: State) -> State:
        choices = (lambda v: v + 1, lambda v: v * 0.5, lambda v: -v)
        return s[0], lax.switch((i % 4).astype(jnp.int32), choices, s[1]), s[2]

    return [
        ("tanh of a row", lambda i, s: (s[0], jnp.tanh(s[0][place(i)] + s[1]), s[2])),
        ("product", lambda i, s: (s[0], jnp.tanh(s[1] @ weights), s[2])),
        ("products of rows", lambda i, s: (jnp.tanh(s[0] @ weights), s[1], s[2])),
        ("a sum", lambda i, s: (s[0], s[1], jnp.tanh(s[0].sum() * 0.1))),
        ("a slice", lambda i, s: (s[0], lax.dynamic_slice(s[0], (i, 0), (1, COLUMNS))[0] * 0.5, s[2])),
        ("running sums", lambda i, s: (s[0], jnp.tanh(jnp.cumsum(s[1])), s[2])),
        ("softmax", lambda i, s: (s[0], jax.nn.softmax(s[1]), s[2])),
        ("a roll", lambda i, s: (s[0], jnp.roll(s[1], 1) + s[2], s[2])),
        ("the round", lambda i, s: (s[0], s[1], s[2] * 0.5 + jnp.float32(i))),
        ("an element", lambda i, s: (s[0], s[1], s[0][place(i), jnp.argmin(s[1])])),
        ("sorted", lambda i, s: (s[0], jnp.sort(s[1]), s[2])),
        ("a branch", branch),
        ("a switch", switch),
    ]


def _body(rng: np.random.Generator) -> tuple[str, Step]:
    """One to four statements, one after the other."""
    writes, reads = _writes(rng), _reads(rng)
    steps = []
    for _ in range(int(rng.integers(1, 5))):
        kinds = writes if rng.random() < 0.5 else reads
        steps.append(kinds[int(rng.integers(len(kinds)))])

    def body(i: Any, state: State) -> State:
        for _, step in steps:
            state = step(i, state)
        return state

    return "; ".join(name for name, _ in steps), body


def _state(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return floats(rng, (ROWS, COLUMNS)), floats(rng, (COLUMNS,)), floats(rng, ())


def _looped(rng: np.random.Generator) -> tuple[str, Callable[..., Any]]:
    """A loop of one of the kinds that there are, as a function of the state."""
    words, body = _body(rng)
    kind, rounds = int(rng.integers(6)), int(rng.choice([0, 1, 3, 12, 20]))
    if kind == 0:
        return f"fori {rounds}: {words}", lambda *s: lax.fori_loop(0, rounds, body, s)
    if kind == 1:
        return f"fori of contents: {words}", lambda *s: lax.fori_loop(1, (jnp.abs(s[2]) * 5).astype(jnp.int32), body, s)
    if kind == 2:

        def goes_on(carried: Any) -> Any:
            i, state = carried
            return (i < rounds) & (jnp.abs(state[1]).sum() < 30)

        return f"while: {words}", lambda *s: lax.while_loop(goes_on, lambda c: (c[0] + 1, body(*c)), (jnp.int32(0), s))
    if kind == 3:
        inner_words, inner = _body(rng)
        twice = lambda i, s: lax.fori_loop(0, 3, lambda j, t: inner(i + j, t), body(i, s))
        return f"nested: {words} | {inner_words}", lambda *s: lax.fori_loop(0, 4, twice, s)
    backwards = bool(rng.random() < 0.3)

    def step(carried: Any, x: Any) -> tuple[Any, Any]:
        i, state = carried
        a, v, c = body(i, state)
        return (i + 1, (a, jnp.tanh(v + x), c)), (v, c * x.sum())

    def scanned(*s: Any) -> Any:
        return lax.scan(step, (jnp.int32(0), s), jnp.concatenate([s[0]] * 4), reverse=backwards)

    return f"scan {backwards}: {words}", scanned


@program_maker
def loop(rng: np.random.Generator) -> Program:
    words, function = _looped(rng)
    return words, function, _state(rng)


@program_maker
def mapped(rng: np.random.Generator) -> Program:
    words, function = _looped(rng)
    state = tuple(np.stack([x, x[::-1] * 0.5 if x.ndim else -x]) for x in _state(rng))
    return f"vmap of {words}", jax.vmap(function), state


@program_maker
def differentiated(rng: np.random.Generator) -> Program:
    """What jax makes of derivatives; those of loops with known rounds alone go backwards."""
    words, body = _body(rng)

    def loss(*s: Any) -> Any:
        def step(carried: State, i: Any) -> tuple[State, Any]:
            after = body(i, carried)
            return after, after[1].sum()

        behind, sums = lax.scan(step, s, jnp.arange(4, dtype=jnp.int32))
        return sum((x**2).sum() for x in (*behind, sums))

    forward = lambda *s: jax.jvp(loss, s, tuple(map(jnp.ones_like, s)))
    if rng.random() < 0.3:
        return f"jvp of {words}", forward, _state(rng)
    return f"grad of {words}", jax.grad(loss, (0, 1, 2)), _state(rng)


@program_maker
def scattered(rng: np.random.Generator) -> Program:
    """Scatters and gathers of jax.numpy's indexing in all modes, with places that are different where they replace."""
    shape = tuple(n + 2 for n in sizes(rng, int(rng.integers(1, 4)), 4))
    mode = str(rng.choice(["fill", "drop", "clip", "promise_in_bounds"]))
    name = str(rng.choice(["set", "add", "multiply", "min", "max", "get"]))
    count = int(rng.integers(1, shape[0] + 1))
    bounds = (-shape[0], shape[0] + 2) if mode != "promise_in_bounds" else (0, shape[0])
    places = rng.permutation(np.arange(*bounds))[:count].astype(np.int32)
    if name == "set":  # places from the end are the same ones, and moved ones, too
        places = rng.permutation(shape[0])[:count].astype(np.int32) + (shape[0] if mode in ("fill", "drop") else 0) * (
            rng.random(count) < 0.3
        ).astype(np.int32)
    if mode == "fill" and name != "get":
        mode = "drop"
    where = int(rng.integers(2)) if len(shape) > 1 and shape[1] >= bounds[1] else 0
    key = (slice(None),) * where + (places,)
    if name == "get":
        read = lambda x, p: x.at[(*key[:-1], p)].get(mode=mode)
        return f"get {shape} {where} {mode}", read, (floats(rng, shape), places)
    constant = bool(rng.random() < 0.3)
    update = floats(rng, (*shape[:where], count, *shape[where + 1 :]))
    function = lambda x, p, u: getattr(x.at[(*key[:-1], places if constant else p)], name)(u, mode=mode)
    return f"at.{name} {shape} {where} {mode} {constant}", function, (floats(rng, shape), places, update)


@program_maker
def associative(rng: np.random.Generator) -> Program:
    shape = sizes(rng, 2, 9)
    axis, backwards = int(rng.integers(2)), bool(rng.random() < 0.4)
    joins = (jnp.add, jnp.maximum, lambda a, b: a * b, lambda a, b: b)
    join = joins[int(rng.integers(len(joins)))]
    pairs = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
    function = lambda x, y: (
        lax.associative_scan(join, x, reverse=backwards, axis=axis),
        lax.associative_scan(pairs, (x, y), reverse=backwards, axis=axis),
    )
    return f"associative_scan {shape} {axis} {backwards}", function, (floats(rng, shape), floats(rng, shape))


@program_maker
def sorted_by_keys(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 3)), 7)
    axis = int(rng.integers(len(shape)))
    x, y, z = ints(rng, shape, -2, 3), floats(rng, shape), floats(rng, shape)
    count = int(rng.integers(1, 4))
    function = lambda x, y, z: lax.sort((x, y, z), dimension=axis, num_keys=count, is_stable=True)
    return f"sort {shape} {axis} by {count}", function, (x, y, z)


@program_maker
def transformed(rng: np.random.Generator) -> Program:
    """Fourier transforms, and random bits of a key that is an argument."""
    shape = tuple(2 * n for n in sizes(rng, int(rng.integers(1, 3)), 4))
    if rng.random() < 0.3:
        function = lambda key: (
            jax.random.uniform(jax.random.wrap_key_data(key), shape),
            jax.random.normal(jax.random.wrap_key_data(key), shape),
            jax.random.permutation(jax.random.wrap_key_data(key), shape[0]),
            jax.random.split(jax.random.wrap_key_data(key), 2)[0].dtype == jnp.uint32,
        )
        return f"random {shape}", function, (rng.integers(0, 2**32, 2).astype(np.uint32),)
    function = lambda x: (
        jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.abs(jnp.fft.fft(x)), jnp.fft.fftn(x).real,
        jnp.fft.ifft(x).imag,
    )  # fmt: skip
    return f"fft {shape}", function, (floats(rng, shape),)


__all__ = ["PROGRAM_MAKERS"]
