"""Random operands of ONNX's operators that move elements: shapes, joins, parts, indices; and of products."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_draws import ML, Drawn, Draws, Fixed, maker

_PLAIN = (np.float32, np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16)


def _plain(d: Draws, shape: Any) -> Any:
    return d.array(shape, d.one_of(_PLAIN))


@maker
def asked(d: Draws) -> Drawn:
    x = _plain(d, d.shape())
    if d.chance(0.3):
        return Drawn("Size", [x], first=13)
    attributes = {}
    if d.chance():
        attributes["start"] = d.number(-5, 5)
    if d.chance():
        attributes["end"] = d.number(-5, 5)
    return Drawn("Shape", [x], attributes, first=15)


@maker
def reshaped(d: Draws) -> Drawn:
    x = _plain(d, d.shape(0, 4))
    if d.chance(0.2):
        return Drawn("Flatten", [x], {"axis": d.number(-x.ndim, x.ndim)}, first=13)
    whole = list(x.shape)
    d.rng.shuffle(whole)
    while len(whole) > 1 and d.chance(0.4):
        whole = [whole[0] * whole[1], *whole[2:]]
    if d.chance(0.3):
        whole.insert(d.number(0, len(whole)), 1)
    if x.size and whole and d.chance(0.4):
        whole[d.number(0, len(whole) - 1)] = -1
    has_zero = 0 in whole
    for k, n in enumerate(whole):
        if not has_zero and k < x.ndim and n == x.shape[k] and d.chance(0.3):
            whole[k] = 0
    attributes = {"allowzero": 1} if has_zero else {}
    target = np.array(whole, np.int64)
    return Drawn("Reshape", [x, Fixed(target) if d.chance() else target], attributes, first=14)


@maker
def axes_changed(d: Draws) -> Drawn:
    op = d.one_of(["Squeeze", "Unsqueeze", "Transpose", "Identity"])
    is_old = d.chance(0.3)
    if op == "Unsqueeze":
        shape = d.shape(0, 3)
        rank = len(shape) + d.number(1, 2)
        axes = [int(k) for k in d.rng.permutation(rank)[: rank - len(shape)]]
        if not is_old:
            axes = [k - rank if d.chance(0.3) else k for k in axes]
    else:
        shape = tuple(1 if d.chance(0.4) else n for n in d.shape(1, 4))
        axes = [k for k, n in enumerate(shape) if n == 1]
    x = _plain(d, shape)
    if op in ("Transpose", "Identity"):
        order = {"perm": [int(k) for k in d.rng.permutation(len(shape))]} if op == "Transpose" and d.chance(0.8) else {}
        return Drawn(op, [x], order)
    if op == "Squeeze" and (not axes or d.chance(0.2)):
        return Drawn(op, [x])
    if is_old:
        return Drawn(op, [x], {"axes": axes}, last=12)
    return Drawn(op, [x, Fixed(axes)], first=13)


@maker
def joined(d: Draws) -> Drawn:
    shape = d.shape(1, 4)
    axis = d.axis(shape)
    at, dtype = axis % len(shape), d.one_of(_PLAIN)
    parts = [d.array((*shape[:at], d.number(0, 3), *shape[at + 1 :]), dtype) for _ in range(d.number(1, 4))]
    return Drawn("Concat", parts, {"axis": axis}, first=11)


@maker
def repeated(d: Draws) -> Drawn:
    shape = d.shape(0, 3)
    x = _plain(d, shape)
    if d.chance():
        repeats = d.integers((len(shape),), 0 if d.chance(0.1) else 1, 3)
        return Drawn("Tile", [x, Fixed(repeats)])
    small = tuple(1 if d.chance(0.4) else n for n in shape)
    target = [n if m == 1 or d.chance() else 1 for n, m in zip(shape, small, strict=True)]
    extra = [d.number(1, 3) for _ in range(d.number(0, 1))]
    target = np.array([*extra, *(target[d.number(0, len(target)) :] if not extra else target)], np.int64)
    return Drawn("Expand", [d.array(small, x.dtype), Fixed(target) if d.chance() else target], first=8)


@maker
def part(d: Draws) -> Drawn:
    shape = d.shape(1, 4)
    x = _plain(d, shape)
    axes = d.axes(shape)
    starts, ends = (d.integers((len(axes),), -8, 8).tolist() for _ in range(2))
    ends = [d.one_of([n, np.iinfo(np.int64).max, np.iinfo(np.int32).max]) if d.chance(0.2) else n for n in ends]
    if d.chance(0.2):
        return Drawn("Slice", [x], {"starts": starts, "ends": ends, "axes": axes}, last=9)
    steps = [d.one_of([1, 1, 2, -1, -3]) for _ in axes]
    lowest = np.iinfo(np.int64).min
    ends = [lowest if s < 0 and d.chance(0.15) else n for n, s in zip(ends, steps, strict=True)]
    dtype = np.int64 if max(map(abs, ends)) > 2**31 - 1 or d.chance() else np.int32
    operands = [Fixed(v, dtype) for v in (starts, ends, axes, steps)]
    if d.chance(0.3) and dtype == np.int64 and all(abs(n) < 100 for n in ends):
        operands[:2] = [np.array(starts), np.array(ends)]
        operands[3] = Fixed([1] * len(axes))
    return Drawn("Slice", [x, *operands], first=10)


@maker
def split(d: Draws) -> Drawn:
    shape = d.shape(1, 3, empty=0.0)
    axis = d.axis(shape)
    lengths = [d.number(0, 3) for _ in range(d.number(1, 4))]
    at = axis % len(shape)
    x = _plain(d, (*shape[:at], sum(lengths), *shape[at + 1 :]))
    if d.chance(0.3):
        count = d.number(1, 4)
        size = d.number(count * count, 3 * count * count)  # so that no part has less than nothing
        x = _plain(d, (*shape[:at], size, *shape[at + 1 :]))
        return Drawn("Split", [x], {"axis": axis, "num_outputs": count}, results=count, first=18)
    if d.chance(0.3) and all(lengths):
        return Drawn("Split", [x], {"axis": at, "split": lengths}, results=len(lengths), last=10)
    return Drawn("Split", [x, Fixed(lengths)], {"axis": axis}, results=len(lengths), first=13)


@maker
def padded(d: Draws) -> Drawn:
    shape = d.shape(1, 4, empty=0.0)
    x = d.array(shape, d.one_of([np.float32, np.float32, np.float64, np.int64, np.int32]))
    mode = d.one_of(["constant", "constant", "edge", "reflect", "wrap"])
    low = -1 if mode == "constant" and d.chance(0.2) and min(shape) > 2 else 0
    most = min(3, min(shape) - 1) if mode in ("reflect", "wrap") else 3
    axes = d.axes(shape) if d.chance(0.4) and low == 0 else [*range(len(shape))]
    widths = d.integers((2 * len(axes),), low, most)
    if d.chance(0.2) and x.dtype.kind == "f" and mode != "wrap" and len(axes) == len(shape):
        return Drawn("Pad", [x], {"pads": widths.tolist(), "mode": mode, "value": 1.5}, last=10)
    fill = d.one_of([None, d.array((), x.dtype), Fixed(3, x.dtype)]) if mode == "constant" else None
    operands = [x, Fixed(widths), fill]
    if len(axes) != len(shape) or d.chance(0.1):
        operands.append(Fixed([int(k) for k in axes]))
    return Drawn("Pad", operands, {"mode": mode}, first=19)


@maker
def moved_blocks(d: Draws) -> Drawn:
    b = d.number(1, 3)
    n, c, h, w = (d.number(1, 3) for _ in range(4))
    if d.chance():
        return Drawn("SpaceToDepth", [d.floats((n, c, h * b, w * b))], {"blocksize": b}, first=13)
    mode = d.one_of(["DCR", "CRD"])
    return Drawn("DepthToSpace", [d.floats((n, c * b * b, h, w))], {"blocksize": b, "mode": mode}, first=13)


@maker
def rows_changed(d: Draws) -> Drawn:
    op = d.one_of(["ReverseSequence", "Trilu", "CenterCropPad"])
    if op == "ReverseSequence":
        shape = d.shape(2, 4, empty=0.0)
        time = d.number(0, 1)
        lengths = d.integers((shape[1 - time],), 1, shape[time])
        return Drawn(op, [_plain(d, shape), lengths], {"time_axis": time, "batch_axis": 1 - time}, first=10)
    shape = d.shape(2, 4)
    if op == "Trilu":
        operands = [d.array(shape, d.one_of([np.float32, np.int64, np.bool_]))]
        if d.chance(0.7):
            operands.append(np.array(d.number(-4, 4)))
        return Drawn(op, operands, {"upper": d.number(0, 1)}, first=14)
    axes = d.axes(shape)
    sizes = [d.number(1, 8) for _ in axes]
    return Drawn(op, [d.floats([max(n, 1) for n in shape]), Fixed(sizes)], {"axes": axes}, first=18)


@maker
def gathered(d: Draws) -> Drawn:
    op = d.one_of(["Gather", "GatherElements", "GatherND"])
    shape = d.shape(1, 4, empty=0.0)
    axis, x = d.axis(shape), _plain(d, shape)
    size, dtype = shape[axis], d.one_of([np.int64, np.int32])
    if op == "Gather":
        return Drawn(op, [x, d.integers(d.shape(0, 2), -size, size - 1, dtype)], {"axis": axis}, first=13)
    if op == "GatherElements":
        taken = [d.number(1, n) for n in shape]
        taken[axis] = d.number(1, 4)
        return Drawn(op, [x, d.integers(taken, -size, size - 1, dtype)], {"axis": axis}, first=13)
    batch = d.number(0, len(shape) - 1)
    depth = d.number(1, len(shape) - batch)
    outer = (*shape[:batch], *(d.number(1, 3) for _ in range(d.number(0 if batch else 1, 2))))
    columns = [d.integers(outer, -n, n - 1) for n in shape[batch : batch + depth]]
    return Drawn(op, [x, np.stack(columns, -1)], {"batch_dims": batch}, first=13)


@maker
def scattered(d: Draws) -> Drawn:
    op = d.one_of(["ScatterElements", "ScatterND", "TensorScatter"])
    shape = d.shape(1, 4, empty=0.0)
    x = d.array(shape, d.one_of([np.float32, np.float64, np.int64]))
    reduction = d.one_of(["none", "add", "mul", "max", "min"])
    if op == "TensorScatter":
        n, length, width = d.number(1, 3), d.number(2, 6), d.number(1, 3)
        new, mode = d.number(1, length), d.one_of(["linear", "circular"])
        starts = d.integers((n,), 0, length - new if mode == "linear" else length - 1)
        past, update = d.floats((n, 2, length, width)), d.floats((n, 2, new, width))
        return Drawn(op, [past, update, starts if d.chance(0.8) else None], {"mode": mode}, first=24)
    if op == "ScatterElements":
        axis = d.axis(shape)
        taken = [d.number(1, n) for n in shape]
        if reduction == "none":  # of repeated places any may win
            order = np.stack([d.rng.permutation(shape[axis]) for _ in range(int(np.prod(shape)) // shape[axis])])
            order = np.moveaxis(order.reshape(*np.delete(shape, axis % len(shape)), shape[axis]), -1, axis)
            indices = order[tuple(slice(0, n) for n in taken)]
        else:
            indices = d.integers(taken, -shape[axis], shape[axis] - 1)
        updates = d.array(taken, x.dtype)
        return Drawn(op, [x, indices, updates], {"axis": axis, "reduction": reduction}, first=18)
    depth = d.number(1, len(shape))
    rows = int(np.prod(shape[:depth]))
    count = d.number(1, rows)
    flat = d.rng.permutation(rows)[:count] if reduction == "none" else d.rng.integers(0, rows, count)
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Drawn(op, [x, indices, d.array((count, *shape[depth:]), x.dtype)], {"reduction": reduction}, first=18)


@maker
def product(d: Draws) -> Drawn:
    op = d.one_of(["MatMul", "MatMul", "Gemm", "Einsum", "Det"])
    m, k, n = (d.one_of([1, 2, 3, 5, 17]) for _ in range(3))
    if d.chance(0.04):
        k = 0
    dtype = d.one_of([np.float32, np.float32, np.float64, np.int32, np.int64])
    if op == "MatMul":
        batch = d.shape(0, 2, empty=0.0)
        left, right = (*batch, m, k), (*d.broadcast(batch), k, n)
        left, right = d.one_of([(left, right), ((k,), right), (left, (k,)), ((k,), (k,))])
        return Drawn(op, [d.array(left, dtype), d.array(right, dtype)], first=13, tolerance=4.0)
    if op == "Gemm":
        if k == 0:
            k = 1
        flags = {"transA": d.number(0, 1), "transB": d.number(0, 1)}
        if d.chance():
            flags |= {"alpha": 0.5, "beta": d.one_of([0.0, 1.0, 2.5])}
        floats = d.one_of([np.float32, np.float64])
        a, b = (
            d.array((k, m) if flags["transA"] else (m, k), floats),
            d.array((n, k) if flags["transB"] else (k, n), floats),
        )
        c = d.array(d.one_of([(m, n), (n,), (1, n), (m, 1), (), (1,)]), floats) if d.chance(0.7) else None
        return Drawn(op, [a, b, c], flags, first=13, tolerance=4.0)
    if op == "Det":
        size = d.number(1, 4)
        return Drawn(op, [d.floats((*d.shape(0, 2, empty=0.0), size, size))], first=11, tolerance=10.0)
    equation, shapes = d.one_of(
        [
            ("ij,jk->ik", ((m, k), (k, n))),
            ("bij, bjk -> bik", ((2, m, k), (2, k, n))),
            ("ij->ji", ((m, n),)),
            ("ii->i", ((n, n),)),
            ("...ij,...jk->...ik", ((3, m, k), (3, k, n))),
            ("i,j->ij", ((m,), (n,))),
            ("bhqd,bhkd->bhqk", ((2, 2, m, k), (2, 2, n, k))),
            ("ij,ij->", ((m, n), (m, n))),
        ]
    )
    return Drawn(op, [d.floats(s) for s in shapes], {"equation": equation}, first=12, tolerance=4.0)


@maker
def extracted(d: Draws) -> Drawn:
    shape = d.shape(1, 2, empty=0.0)
    x = d.floats(shape)
    return Drawn("ArrayFeatureExtractor", [x, d.integers((d.number(1, 4),), 0, shape[-1] - 1)], domain=ML, first=13)
