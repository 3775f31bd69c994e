"""Random ONNX models against the package's own evaluator, which computes with NumPy.

``python test/peers/onnx_fuzz.py 2000`` runs so many, ``--seed`` says from which on; exit status 1 = one differs.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from onnx_fuzz_blocks import KINDS, evaluator_of

_UNARY = (
    "Abs",
    "Neg",
    "Tanh",
    "Sigmoid",
    "Relu",
    "Erf",
    "Floor",
    "Ceil",
    "Softsign",
    "Softplus",
    "Sin",
    "Cos",
    "LeakyRelu",
    "HardSigmoid",
    "Elu",
    "Round",
)
_BINARY = ("Add", "Sub", "Mul", "Max", "Min")
_INTEGERS = ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")
_REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSumExp",
)
_MOST_RANK = 4


class RandomModel:
    """A model of random nodes: what it holds so far is floats and integers whose shapes are known here.

    Args:
        seed: of everything random in it.
    """

    def __init__(self, seed: int) -> None:
        from onnx import TensorProto, helper, numpy_helper

        self.helper, self.numpy_helper, self.types = helper, numpy_helper, TensorProto
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.floats: dict[str, tuple[int, ...]] = {}
        self.integers: dict[str, tuple[int, ...]] = {}
        rank = int(self.rng.integers(1, 4))
        shape = tuple(int(n) for n in self.rng.integers(1, 6, rank))
        self.inputs = {"a": shape, "b": shape}
        self.floats |= self.inputs
        self.counts = {"n": shape}
        self.integers |= self.counts
        for _ in range(int(self.rng.integers(3, 12))):
            self.add()

    def choice(self, options: Any) -> Any:
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def name(self) -> str:
        return f"v{len(self.nodes)}_{len(self.weights)}"

    def weight(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(self.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op: str, operands: list[str], **attributes: Any) -> str:
        result = self.name()
        self.nodes.append(self.helper.make_node(op, operands, [result], **attributes))
        return result

    def add(self) -> None:
        """Add a few nodes of one kind."""
        kind = self.choice(type(self).KINDS)
        x = self.choice(self.floats)
        kind(self, x, self.floats[x])

    def unary(self, x: str, shape: tuple[int, ...]) -> None:
        op = self.choice(_UNARY)
        # The package's evaluator fails for Softsign of one number.
        self.floats[self.node(op if shape or op != "Softsign" else "Tanh", [x])] = shape

    def binary(self, x: str, shape: tuple[int, ...]) -> None:
        peers = [y for y, other in self.floats.items() if other == shape]
        other = self.choice(peers) if self.rng.random() < 0.7 else self.weight(self.rng.normal(), np.float32)
        self.floats[self.node(self.choice(_BINARY), [x, other])] = shape

    def chosen(self, x: str, shape: tuple[int, ...]) -> None:
        peers = [y for y, other in self.floats.items() if other == shape]
        mask = self.node(self.choice(["Greater", "Less", "Equal", "LessOrEqual"]), [x, self.choice(peers)])
        self.floats[self.node("Where", [mask, x, self.choice(peers)])] = shape

    def clipped(self, x: str, shape: tuple[int, ...]) -> None:
        low, high = (self.weight(v, np.float32) for v in self.rng.normal(size=2))
        self.floats[self.node("Clip", [x, low, high])] = shape

    def reduced(self, x: str, shape: tuple[int, ...]) -> None:
        if not shape:
            return
        axes = sorted({int(k) for k in self.rng.integers(0, len(shape), 2)})
        keep = int(self.rng.integers(2))
        y = self.node(self.choice(_REDUCTIONS), [x, self.weight(axes)], keepdims=keep)
        self.floats[y] = tuple(1 if k in axes else n for k, n in enumerate(shape) if keep or k not in axes)

    def softmax(self, x: str, shape: tuple[int, ...]) -> None:
        if shape:
            op, axis = self.choice(["Softmax", "LogSoftmax"]), int(self.rng.integers(-len(shape), len(shape)))
            self.floats[self.node(op, [x], axis=axis)] = shape

    def transposed(self, x: str, shape: tuple[int, ...]) -> None:
        order = [int(k) for k in self.rng.permutation(len(shape))]
        if order:
            self.floats[self.node("Transpose", [x], perm=order)] = tuple(shape[k] for k in order)

    def flattened(self, x: str, shape: tuple[int, ...]) -> None:
        """A reshape whose target is computed of the shape: the product of two sizes in the place of both."""
        if len(shape) < 2:
            return
        sizes = self.node("Shape", [x])
        first, second = (self.node("Gather", [sizes, self.weight([k])], axis=0) for k in (0, 1))
        rest = self.node("Slice", [sizes, self.weight([2]), self.weight([99])])
        target = self.node("Concat", [self.node("Mul", [first, second]), rest], axis=0)
        self.floats[self.node("Reshape", [x, target])] = (shape[0] * shape[1], *shape[2:])

    def part(self, x: str, shape: tuple[int, ...]) -> None:
        if not shape:
            return
        axis = int(self.rng.integers(len(shape)))
        start, end = (int(v) for v in self.rng.integers(-7, 8, 2))
        step = self.choice([1, 2, -1, -2])
        length = len(range(shape[axis])[self.bounds(shape[axis], start, end, step)])
        if length:
            operands = [x, *(self.weight([v]) for v in (start, end, axis, step))]
            self.floats[self.node("Slice", operands)] = (*shape[:axis], length, *shape[axis + 1 :])

    @staticmethod
    def bounds(size: int, start: int, end: int, step: int) -> slice:
        return slice(start, None if step < 0 and end < -size else end, step)

    def joined(self, x: str, shape: tuple[int, ...]) -> None:
        peers = [y for y, other in self.floats.items() if other == shape]
        if shape and max(shape) < 20:
            axis = int(self.rng.integers(len(shape)))
            y = self.node("Concat", [x, self.choice(peers)], axis=axis)
            self.floats[y] = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])

    def product(self, x: str, shape: tuple[int, ...]) -> None:
        if shape:
            width = int(self.rng.integers(1, 5))
            w = self.weight(self.rng.normal(size=(shape[-1], width)), np.float32)
            self.floats[self.node("MatMul", [x, w])] = (*shape[:-1], width)

    def padded(self, x: str, shape: tuple[int, ...]) -> None:
        widths = [int(v) for v in self.rng.integers(0, 3, 2 * len(shape))]
        if shape:
            y = self.node("Pad", [x, self.weight(widths)], mode=self.choice(["constant", "edge"]))
            self.floats[y] = tuple(n + widths[k] + widths[k + len(shape)] for k, n in enumerate(shape))

    def gathered(self, x: str, shape: tuple[int, ...]) -> None:
        if not shape:
            return
        axis = int(self.rng.integers(len(shape)))
        indices = self.rng.integers(-shape[axis], shape[axis], int(self.rng.integers(1, 4)))
        y = self.node("Gather", [x, self.weight(indices)], axis=axis)
        self.floats[y] = (*shape[:axis], len(indices), *shape[axis + 1 :])

    def wider(self, x: str, shape: tuple[int, ...]) -> None:
        if len(shape) < _MOST_RANK:
            axis, size = int(self.rng.integers(0, len(shape) + 1)), int(self.rng.integers(1, 4))
            wide = self.node("Unsqueeze", [x, self.weight([axis])])
            target = [1] * (len(shape) + 1)
            target[axis] = size
            self.floats[self.node("Expand", [wide, self.weight(target)])] = (*shape[:axis], size, *shape[axis:])

    def whole(self, x: str, shape: tuple[int, ...]) -> None:
        """Integers, computed, as floats; divisors are constants other than zero."""
        n = self.choice(self.integers)
        op = self.choice(_INTEGERS)
        divisor = self.choice([-3, -2, 2, 3]) if op == "Div" else 3
        result = self.node(op, [n, self.weight(divisor if op in ("Div", "Mod") else 2)])
        self.integers[result] = self.integers[n]
        self.floats[self.node("Cast", [result], to=self.types.FLOAT)] = self.integers[n]

    def summed(self, x: str, shape: tuple[int, ...]) -> None:
        if shape:
            axis = self.weight(int(self.rng.integers(-len(shape), len(shape))))
            flags = {"exclusive": int(self.rng.integers(2)), "reverse": int(self.rng.integers(2))}
            self.floats[self.node("CumSum", [x, axis], **flags)] = shape

    KINDS = (
        unary,
        unary,
        binary,
        binary,
        chosen,
        clipped,
        reduced,
        softmax,
        transposed,
        flattened,
        part,
        joined,
        product,
        padded,
        gathered,
        wider,
        whole,
        summed,
        *KINDS,
    )

    def model(self) -> Any:
        floats, integers = self.types.FLOAT, self.types.INT64
        info = self.helper.make_tensor_value_info
        used = {name for node in self.nodes for name in node.input}
        ends = [x for x in self.floats if x not in used and x not in self.inputs] or [[*self.floats][-1]]
        inputs = [info(x, floats, [None] * len(s)) for x, s in self.inputs.items()]
        inputs += [info(x, integers, [None] * len(s)) for x, s in self.counts.items()]
        outputs = [info(x, floats, [None] * len(self.floats[x])) for x in ends]
        versions = [self.helper.make_opsetid("", 18), self.helper.make_opsetid("ai.onnx.ml", 3)]
        graph = self.helper.make_graph(self.nodes, "random", inputs, outputs, self.weights)
        return self.helper.make_model(graph, opset_imports=versions, ir_version=9)

    def arguments(self) -> list[np.ndarray]:
        floats = [self.rng.normal(size=s).astype(np.float32) for s in self.inputs.values()]
        return [*floats, *(self.rng.integers(-9, 10, s) for s in self.counts.values())]


def difference(seed: int) -> str | None:
    """What differs between a random model here, in three calls, and in the package's evaluator; None = nothing."""
    from profuse.executor.functions.onnx_backend import PreparedModel

    source = RandomModel(seed)
    model = source.model()
    prepared, evaluator = PreparedModel(model), evaluator_of(model)
    for call in range(3):
        arguments = source.arguments()
        wanted = evaluator.run(None, dict(zip("abn", arguments, strict=True)))
        for k, (a, b) in enumerate(zip(prepared.run(arguments), wanted, strict=True)):
            a, b = np.asarray(a), np.asarray(b)
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                return f"seed {seed}, call {call}, output {k}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            if not np.allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max(initial=0))), equal_nan=True):
                return f"seed {seed}, call {call}, output {k}: differs by {np.abs(a - b).max()}"
    tier = prepared.function.state().tier
    return None if tier == "optimized" else f"seed {seed}: tier {tier}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            text = difference(seed)
        except Exception as error:
            text = f"seed {seed}: {type(error).__name__}: {error}"
        if text is not None:
            failures += 1
            print(text, flush=True)
    print(f"{failures} of {options.count} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
