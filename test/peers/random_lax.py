"""Random functions of `jax.lax`: one op each, with random shapes, dimension numbers, strides and paddings.

``python random_lax.py PROGRAMS --seed S`` compares what they give as StableHLO modules with jax.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import profuse as pf
from jax import export, lax
from lax_draws import Program, floats, ints, sizes
from profuse.dialect.errors import TraceError
from random_lax_programs import PROGRAM_MAKERS

MAKERS: list[Callable[[np.random.Generator], Program]] = []


def maker(function: Callable[[np.random.Generator], Program]) -> Callable[[np.random.Generator], Program]:
    """Register what draws programs of a kind."""
    MAKERS.append(function)
    return function


@maker
def dot_general(rng: np.random.Generator) -> Program:
    batch, summed, left, right = (int(n) for n in rng.integers(0, 3, 4))
    b, s, p, q = (sizes(rng, n, 4) for n in (batch, summed, left, right))
    order = [rng.permutation(batch + summed + n) for n in (left, right)]
    whole = ((*b, *s, *p), (*b, *s, *q))
    shapes = [tuple(shape[k] for k in perm) for shape, perm in zip(whole, order, strict=True)]
    where = [{int(k): at for at, k in enumerate(perm)} for perm in order]
    numbers = (
        tuple(tuple(w[k] for k in range(batch, batch + summed)) for w in where),
        tuple(tuple(w[k] for k in range(batch)) for w in where),
    )
    args = tuple(floats(rng, shape) for shape in shapes)
    return f"dot_general {numbers}", lambda x, y: lax.dot_general(x, y, numbers), args


@maker
def convolution(rng: np.random.Generator) -> Program:
    space = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 2]))
    of_batch = bool(rng.random() < 0.2)
    channels, filters = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    images = int(rng.integers(1, 3)) * (groups if of_batch else 1)
    kernel = sizes(rng, space, 3)
    image = tuple(int(n) + 4 for n in sizes(rng, space))
    x = floats(rng, (images, channels, *image))
    k = floats(rng, (filters, channels if of_batch else channels // groups, *kernel))
    names = "HWD"[:space]
    layouts = [f"N{'C'}{names}", f"O{'I'}{names}", f"N{'C'}{names}"]
    perms = [rng.permutation(space + 2) for _ in layouts]
    numbers = tuple("".join(text[i] for i in perm) for text, perm in zip(layouts, perms, strict=True))
    options: dict[str, Any] = {
        "window_strides": sizes(rng, space, 2),
        "padding": [tuple(int(n) for n in rng.integers(-1, 3, 2)) for _ in range(space)],
        "lhs_dilation": sizes(rng, space, 2),
        "rhs_dilation": sizes(rng, space, 2),
        "dimension_numbers": numbers,
        "batch_group_count" if of_batch else "feature_group_count": groups,
    }
    args = (np.transpose(x, perms[0]), np.transpose(k, perms[1]))
    return f"convolution {options}", lambda x, k: lax.conv_general_dilated(x, k, **options), args


@maker
def reduction(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    axes = tuple(int(k) for k in np.flatnonzero(rng.random(len(shape)) < 0.6))
    name = str(rng.choice(["sum", "max", "min", "prod", "argmax", "argmin", "any", "all", "odd"]))
    x = floats(rng, shape)
    if name in ("argmax", "argmin"):
        axis = int(rng.integers(len(shape)))
        return f"{name} {shape} {axis}", lambda x: getattr(jnp, name)(x, axis), (x,)
    if name == "odd":
        init = jnp.float32(0)
        return f"reduce {shape} {axes}", lambda x: lax.reduce(x, init, lambda a, b: a + b + a * b, axes), (x,)
    return f"{name} {shape} {axes}", lambda x: getattr(jnp, name)(x, axes), (x,)


@maker
def windows(rng: np.random.Generator) -> Program:
    rank = int(rng.integers(1, 4))
    shape = tuple(n + 3 for n in sizes(rng, rank, 4))
    name = str(rng.choice(["add", "max", "min", "mul"]))
    init = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}[name]
    options = {
        "window_dimensions": sizes(rng, rank, 3),
        "window_strides": sizes(rng, rank, 2),
        "padding": [tuple(int(n) for n in rng.integers(0, 2, 2)) for _ in range(rank)],
        "base_dilation": sizes(rng, rank, 2) if rng.random() < 0.3 else (1,) * rank,
        "window_dilation": sizes(rng, rank, 2),
    }
    function = lambda x: lax.reduce_window(x, jnp.float32(init), getattr(lax, name), **options)
    return f"reduce_window {name} {shape} {options}", function, (floats(rng, shape),)


@maker
def pool_gradient(rng: np.random.Generator) -> Program:
    shape = tuple(n + 2 for n in sizes(rng, 2))
    window, strides = sizes(rng, 2, 3), sizes(rng, 2, 2)
    function = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")
    gradient = jax.grad(lambda x: (function(x) ** 2).sum())
    return (
        f"pool_gradient {shape} {window} {strides}",
        gradient,
        (rng.permutation(math.prod(shape)).reshape(shape).astype(np.float32),),
    )


@maker
def running(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    axis, name = (
        int(rng.integers(len(shape))),
        str(rng.choice(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])),
    )
    backwards = bool(rng.random() < 0.5)
    function = lambda x: getattr(lax, name)(x, axis=axis, reverse=backwards)
    return f"{name} {shape} {axis} {backwards}", function, (floats(rng, shape),)


@maker
def indexing(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    axes = sorted(int(k) for k in rng.choice(len(shape), int(rng.integers(1, len(shape) + 1)), replace=False))
    count = sizes(rng, int(rng.integers(0, 3)), 3)
    indices = tuple(ints(rng, count, -shape[k] - 2, shape[k] + 2) for k in axes)
    key = lambda ids: tuple(ids[axes.index(k)] if k in axes else slice(None) for k in range(len(shape)))
    mode = str(rng.choice(["get", "add", "set", "max", "multiply"]))
    if mode == "get":
        how = str(rng.choice(["clip", "fill", "wrap"]))
        return f"get {shape} {axes} {how}", lambda x, *ids: x.at[key(ids)].get(mode=how), (floats(rng, shape), *indices)
    if mode == "set":  # which of several values stays is not defined
        indices = tuple(ints(rng, (), -n - 2, n + 2) for n in (shape[k] for k in axes))
    function = lambda x, *ids: getattr(x.at[key(ids)], mode)(2.5)
    return f"at.{mode} {shape} {axes} {count}", function, (floats(rng, shape), *indices)


@maker
def gather(rng: np.random.Generator) -> Program:
    shape = tuple(n + 1 for n in sizes(rng, int(rng.integers(1, 4)), 4))
    rank = len(shape)
    mapped = tuple(int(k) for k in rng.permutation(rank)[: rng.integers(1, rank + 1)])
    collapsed = tuple(sorted(int(k) for k in np.flatnonzero(rng.random(rank) < 0.4)))
    windows = tuple(1 if k in collapsed else int(rng.integers(1, shape[k] + 1)) for k in range(rank))
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    window_rank = rank - len(collapsed)
    offsets = tuple(sorted(int(k) for k in rng.choice(len(batch) + window_rank, window_rank, replace=False)))
    numbers = lax.GatherDimensionNumbers(offset_dims=offsets, collapsed_slice_dims=collapsed, start_index_map=mapped)
    starts = np.stack([ints(rng, batch, -2, shape[k] + 2) for k in mapped], -1)
    function = lambda x, s: lax.gather(x, s, numbers, windows, mode="clip")
    return f"gather {shape} {numbers} {windows}", function, (floats(rng, shape), starts)


@maker
def scatter(rng: np.random.Generator) -> Program:
    shape = tuple(n + 1 for n in sizes(rng, int(rng.integers(1, 4)), 4))
    rank = len(shape)
    mapped = tuple(int(k) for k in rng.permutation(rank)[: rng.integers(1, rank + 1)])
    inserted = tuple(sorted(int(k) for k in np.flatnonzero(rng.random(rank) < 0.4)))
    kept = [k for k in range(rank) if k not in inserted]
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    of_window = tuple(sorted(int(k) for k in rng.choice(len(batch) + len(kept), len(kept), replace=False)))
    numbers = lax.ScatterDimensionNumbers(of_window, inserted, mapped)
    inner, outer = iter(int(rng.integers(1, shape[k] + 1)) for k in kept), iter(batch)
    updates = tuple(next(inner) if k in of_window else next(outer) for k in range(len(batch) + len(kept)))
    name = str(rng.choice(["scatter_add", "scatter_mul", "scatter_min", "scatter_max"]))
    starts = np.stack([ints(rng, batch, -2, shape[k] + 2) for k in mapped], -1)
    function = lambda x, s, u: getattr(lax, name)(x, s, u, numbers)
    return f"{name} {shape} {numbers} {updates}", function, (floats(rng, shape), starts, floats(rng, updates))


@maker
def padding(rng: np.random.Generator) -> Program:
    shape = tuple(n + 2 for n in sizes(rng, int(rng.integers(1, 4)), 4))
    config = [(int(rng.integers(-1, 3)), int(rng.integers(-1, 3)), int(rng.integers(0, 3))) for _ in shape]
    return f"pad {shape} {config}", lambda x: lax.pad(x, jnp.float32(7), config), (floats(rng, shape),)


@maker
def slicing(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    counts = tuple(int(rng.integers(1, n + 1)) for n in shape)
    starts = tuple(ints(rng, (), -3, n + 3) for n in shape)
    if rng.random() < 0.5:
        return (
            f"dynamic_slice {shape} {counts}",
            lambda x, *s: lax.dynamic_slice(x, s, counts),
            (floats(rng, shape), *starts),
        )
    update = floats(rng, counts)
    function = lambda x, u, *s: lax.dynamic_update_slice(x, u, s)
    return f"dynamic_update_slice {shape} {counts}", function, (floats(rng, shape), update, *starts)


@maker
def moving(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    rank = len(shape)
    perm, axes = (
        tuple(int(k) for k in rng.permutation(rank)),
        tuple(int(k) for k in np.flatnonzero(rng.random(rank) < 0.5)),
    )
    wide = sizes(rng, rank + 1, 3)
    places = tuple(sorted(int(k) for k in rng.choice(rank + 1, rank, replace=False)))
    target = tuple(shape[places.index(k)] if k in places else wide[k] for k in range(rank + 1))
    function = lambda x: (
        lax.transpose(x, perm),
        lax.rev(x, axes),
        lax.broadcast_in_dim(x, target, places),
        jnp.concatenate([x, x * 2], perm[0]),
        x.reshape(-1)[::-1],
    )
    return f"moving {shape} {perm} {axes} {places}", function, (floats(rng, shape),)


@maker
def sorting(rng: np.random.Generator) -> Program:
    shape = sizes(rng, int(rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    x = np.where(rng.random(shape) < 0.1, np.nan, floats(rng, shape)).astype(np.float32)
    function = lambda x: (jnp.sort(x, axis), jnp.argsort(x, axis, descending=True), lax.top_k(x, shape[-1]))
    return f"sorting {shape} {axis}", function, (x,)


@maker
def integers(rng: np.random.Generator) -> Program:
    shape = sizes(rng, 2)
    dtype = rng.choice([np.int32, np.uint32, np.int8, np.uint8, np.int16])
    info = np.iinfo(dtype)
    draw = lambda: rng.choice([info.min, info.max, 0, 1, 2, 7, info.max // 3], shape).astype(dtype)
    shifts = rng.integers(0, 40, shape).astype(dtype)
    function = lambda x, y, s: (
        lax.rem(x, y), x + y, x * y, x - y, x & y, x | ~y, x ^ y, lax.shift_left(x, s),
        lax.shift_right_logical(x, s), lax.shift_right_arithmetic(x, s), x < y, jnp.maximum(x, y), lax.sign(x),
        lax.clamp(x.dtype.type(1), x, x.dtype.type(50)), x.astype(jnp.float32), x.astype(jnp.int8),
        jnp.where(y == 0, x, lax.div(x, jnp.where((y == 0) | (y == x.dtype.type(-1 if info.min else 1)), 1, y))),
    )  # fmt: skip
    return f"integers {shape} {np.dtype(dtype)}", function, (draw(), draw(), shifts)


@maker
def conversions(rng: np.random.Generator) -> Program:
    shape = sizes(rng, 2)
    x = rng.choice(
        np.array([0, -0.0, 0.5, -0.5, 1.5, 2.5, 300, -300, 1e10, -1e10, np.inf, -np.inf, np.nan], "f4"), shape
    )
    function = lambda x: (
        x.astype(jnp.int32), x.astype(jnp.uint8), x.astype(jnp.int16), x.astype(jnp.bfloat16), x.astype(jnp.float16),
        x.astype(bool), lax.round(x), jnp.round(x), lax.sign(x), lax.is_finite(x), jnp.maximum(x, 1.0),
        lax.bitcast_convert_type(x, jnp.uint32), x == 0.5, x >= 0.5,
    )  # fmt: skip
    return f"conversions {shape}", function, (x,)


MAKERS += PROGRAM_MAKERS


def different(found: Any, wanted: Any) -> str:
    """What differs, in words; empty if nothing does."""
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for k, (a, b) in enumerate(zip(found, map(np.asarray, wanted), strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        exact = b.dtype.kind in "biu"
        few = 0 if exact else 2e-5 if b.dtype.itemsize > 2 else 1e-2
        wide = (x if exact else x.astype(complex if b.dtype.kind == "c" else float) for x in (a, b))
        if not np.allclose(*wide, rtol=few, atol=few, equal_nan=not exact):
            return f"result {k} is {a}, not {b}"
    return ""


def checked(function: Callable[..., Any], args: tuple, folder: Path, calls: int = 2) -> tuple[str, Any]:
    """What differs from jax in calls of the module of a function, and our function."""
    exported = export.export(jax.jit(function))(*args)
    path = folder / "module.mlir"
    path.write_bytes(exported.mlir_module_serialized)
    ours = pf.load(path, background=False)
    kept = tuple(args[k] for k in exported.module_kept_var_idx)
    wanted = jax.tree.leaves(jax.jit(function)(*args))
    for _ in range(calls):
        found = ours(*kept)
        difference = different(found if isinstance(found, tuple) else (found,), wanted)
        if difference:
            return difference, ours
    return "", ours


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    makers = [m for m in MAKERS if arguments.only in m.__name__]
    refused: collections.Counter[str] = collections.Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.programs):
            rng = np.random.default_rng([arguments.seed, number])
            name, function, args = makers[number % len(makers)](rng)
            try:
                jax.jit(function)(*args)
            except (TypeError, ValueError):
                continue  # what jax itself refuses
            try:
                difference, _ = checked(function, args, Path(folder))
            except TraceError as error:
                refused[f"{makers[number % len(makers)].__name__}: {error.what[:90]}"] += 1
                continue
            except Exception as error:
                difference = f"{type(error).__name__}: {error}"
            if difference:
                wrong += 1
                print(f"{arguments.seed}/{number} {name}: {difference[:600]}", flush=True)
    print(f"{arguments.programs} programs, {wrong} differ, refused: {dict(refused)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
