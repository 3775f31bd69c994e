"""Small programs in NumPy that are given tensors of torch, beside the same programs on arrays of the same contents.

Results, what is written, and who shares memory with whom are those of arrays, in each of the first calls, which
different parts of the package serve.
"""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import profuse as pf
import pytest

torch = pytest.importorskip("torch")

RUNS = 5
Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    k: int = 2


def R(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rows_written(x):
    for i in range(4):
        x[i] = x[i] * i
    return x


def written_by_slices(x):
    x[1:3] = 0
    x[x > 1] = 9
    return x.sum()


def added(x):
    x += 1
    return x


def appended(xs):
    xs.append(xs[0] + xs[1])
    return xs


def stored(d):
    d["n"] = d["n"] * 2
    d["m"] = d["n"].sum()


def replaced(layer):
    layer.w = layer.w + layer.b
    return layer


def swapped(x, y):
    t = x.copy()
    x[:] = y
    y[:] = t


def branch(x):
    return x * 2 if x.sum() > 0 else x * 3


def loop(x):
    s = 0
    for v in x:
        s = s + v
    return s


def view_written(x):
    y = x[1:]
    y *= 2
    return y


def overlapping(x):
    x[1:] = x[:-1]
    return x


def sorted_in_place(x):
    x.sort()
    return x


def added_to_array(x, a):
    a += x
    return x + a


def halves(b):
    return b[:4], b[2:]


def both_added(x, y):
    x += y
    return x, y


# Names: what makes arguments, and the function.
PROGRAMS = {
    "layer": (lambda: (R(3, 4), R(4, 2)), lambda x, w: np.maximum(x @ w, 0) + 1),
    "f64 and f32": (lambda: (R(3, 4).double(), R(4)), lambda x, y: (x * y, (x * y).sum(axis=1))),
    "int and float": (lambda: (torch.arange(6).reshape(2, 3), R(3)), lambda x, y: (x / 2, x + y, x // 2, x % 3)),
    "masks": (lambda: (R(3) > 0, R(3)), lambda m, y: (np.where(m, y, -y), m & ~m, y[m])),
    "half": (lambda: (R(4, 4).half(), R(4, 4)), lambda x, y: (x * 2, x * y, x.mean())),
    "no axes": (lambda: (torch.tensor(3.5), R(3)), lambda a, x: (a * x, a + 1, np.sqrt(a))),
    "an integer": (lambda: (torch.tensor(3),), lambda n: (np.arange(5) * n, n * 2)),
    "bytes": (lambda: (torch.arange(5, dtype=torch.uint8),), lambda x: (x - 1, x + np.uint8(250), x * 2)),
    "written": (lambda: (R(5),), added),
    "written without axes": (lambda: (torch.tensor(1.5),), added),
    "nothing is written": (lambda: (R(2, 0),), added),
    "written in parts": (lambda: (R(5),), written_by_slices),
    "written in a loop": (lambda: (R(4, 5),), rows_written),
    "written to out": (lambda: (R(3, 4), R(3, 4)), lambda x, y: (np.add(x, 1, out=y), x.sum())),
    "a view is written": (lambda: (R(3, 4),), view_written),
    "overlaps are written": (lambda: (R(6),), overlapping),
    "overlapping arguments": (lambda: halves(R(6)), both_added),
    "swapped": (lambda: (R(5), R(5, seed=1)), swapped),
    "sorted": (lambda: (R(5),), sorted_in_place),
    "filled": (lambda: (R(5, 5),), lambda x: np.fill_diagonal(x, 0)),
    "strided and written": (lambda: (R(4, 4)[:, 1:3],), added),
    "transposed and written": (lambda: (R(4, 3).T,), added),
    "expanded": (lambda: (R(1, 4).expand(3, 4),), lambda x: (x + 1, x.sum(0), x)),
    "strided": (lambda: (R(64)[::7],), lambda x: (x * 2, x[::2])),
    "transposed": (lambda: (R(6, 8).T,), lambda x: (x @ x.T, x.reshape(-1))),
    "channels last": (
        lambda: (R(2, 3, 4, 5).to(memory_format=torch.channels_last),),
        lambda x: (x * 2, x.sum((2, 3)), x.transpose(0, 2, 3, 1)),
    ),
    "views": (lambda: (R(4, 6),), lambda x: (x[1:, ::2], x.T, x.reshape(6, 4), x[None], x[..., 0])),
    "views beside others": (lambda: (R(4, 6),), lambda x: (x[1:], np.tanh(x), x)),
    "itself": (lambda: (R(5),), lambda x: (x, x[:], x)),
    "bits": (lambda: (R(3),), lambda x: (x.view(np.int32), x.view(np.uint8))),
    "dict": (lambda: ({"w": R(3, 3), "b": R(3)}, R(2, 3)), lambda p, x: {"y": x @ p["w"] + p["b"], "p": p}),
    "appended": (lambda: ([R(3), R(3)],), appended),
    "stored": (lambda: ({"n": R(3)},), stored),
    "dataclass": (lambda: (Layer(R(3, 3), R(3)), R(2, 3)), lambda s, x: x @ s.w * s.k + s.b),
    "replaced": (lambda: (Layer(R(3), R(3)),), replaced),
    "named tuple": (lambda: (Pair(R(2), R(2)),), lambda t: (Pair(t.a * 2, t.b), t)),
    "nested": (lambda: ((R(2), (R(3), [R(1)])),), lambda t: (t[1][1][0] + t[0], t[1])),
    "a number": (lambda: (R(10), 3), lambda x, n: (x[:n], x[n:].sum(), x[n])),
    "an index": (lambda: (R(10), torch.tensor(3)), lambda x, n: (x[n], x[int(n) :])),
    "indices": (lambda: (R(5, 3), torch.tensor([0, 2, 4])), lambda x, i: (x[i], x.take(i, axis=0))),
    "complex": (lambda: (torch.complex(R(3), R(3)),), lambda z: (z * z.conj(), np.abs(z), z.real)),
    "on the host": (lambda: (R(3, 3),), lambda x: (np.linalg.inv(x + 5 * np.eye(3, dtype="f4")), np.linalg.norm(x))),
    "numbers of Python": (lambda: (R(4),), lambda x: (float(x.sum()), x.shape, x.dtype.name, len(x))),
    "text": (lambda: (R(4),), lambda x: (f"{x.shape}", {"a": "text", "b": x})),
    "empty": (lambda: (R(0, 3),), lambda x: (x + 1, x.sum(0), x.T)),
    "branch": (lambda: (R(3),), branch),
    "loop": (lambda: (R(3),), loop),
    "no numbers": (lambda: (torch.tensor([1.0, np.nan, np.inf]),), lambda x: (x + 1, np.maximum(x, 0))),
    "big integers": (lambda: (torch.full((3,), 2**40),), lambda x: (x * 2**20, x.astype(np.int32))),
    "a tensor and an array": (lambda: (R(3), R(3).numpy()), added_to_array),
    "others": (lambda: (R(3), 2.5, None, "k"), lambda x, k, n, s: (x * k, n, s)),
}
# Python runs these calls: they return nothing but arguments and views, write to memory that overlaps, or lie otherwise.
IN_PYTHON = {"expanded", "overlapping arguments", "views", "itself", "bits", "text"}


def arrays_of(value):
    """Arguments with arrays of the same memory in place of tensors."""
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: arrays_of(x) for key, x in value.items()}
    if isinstance(value, Pair):
        return Pair(*map(arrays_of, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(arrays_of, value))
    return Layer(arrays_of(value.w), arrays_of(value.b), value.k) if isinstance(value, Layer) else value


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Layer):
        value = [value.w, value.b, value.k]
    return [leaf for x in value for leaf in leaves(x)] if isinstance(value, (tuple, list)) else [value]


def check(found, wanted):
    """Hold what a program has left of tensors, results first, to what it has left of arrays."""
    ours, theirs = leaves(found), leaves(wanted)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        if not isinstance(y, (np.ndarray, np.generic)):
            assert type(x) is type(y) and x == y
            continue
        x = x.numpy() if isinstance(x, torch.Tensor) else x
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-3 if x.dtype == np.float16 else 1e-5, atol=1e-6)
    sharing = []
    for every in (ours, theirs):
        arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in every]
        arrays = [x for x in arrays if isinstance(x, (np.ndarray, np.generic)) and np.ndim(x)]
        sharing.append([[np.may_share_memory(x, y) for y in arrays] for x in arrays])
    assert sharing[0] == sharing[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_with_tensors_what_they_do_with_arrays(name):
    make, function = PROGRAMS[name]
    f = pf.jit(function, unsupported="python")
    for _ in range(RUNS):
        given, arrays = make(), arrays_of(make())
        wanted = function(*arrays)
        found = f(*given)
        assert all(
            isinstance(x, torch.Tensor) for x, y in zip(leaves(found), leaves(wanted), strict=True) if np.ndim(y)
        )
        check([found, *given], [wanted, *arrays])
    if name not in IN_PYTHON:
        assert f.state().counters["python_calls"] <= 1
    assert f.state().counters["input_copies"] == 0


def test_a_call_that_raises_behind_its_write_is_counted():
    """torch learns of a write whatever becomes of the call."""

    def f(x, y, i):
        x += 1
        return y[i]

    jitted, x, y = pf.jit(f, unsupported="python"), torch.zeros(3), torch.ones(4)
    for k in range(1, 5):
        for i in (1, 7):
            version = x._version
            if i == 7:
                with pytest.raises(IndexError):
                    jitted(x, y, torch.tensor([i]))
            else:
                jitted(x, y, torch.tensor([i]))
            assert x._version > version
        assert (x == 2 * k).all()
