"""A differentiable subgraph as one node of the tape (R2.19 - R2.28)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.analysis.alias import block_content_uses
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.op import Fusion, op_named
from ...dialect.ir.program import Block, Instr, Module, Program
from ...dialect.ops.speculation import Gradient
from ...dialect.trees.leaves import leaf_kind
from ..interpret.evaluate import Evaluator
from ..memory.overwrites import shape_alone
from ..tape.array import FLOATS, Array
from ..tape.engine import run
from ..tape.node import Edge, Meta, Node, users_place
from ..tape.operations import apply
from ..tape.saved import Packed, Versions, check, freed, keep, overwritten
from .on_tape import is_noted, on_tape, plain

_VALUES = (np.ndarray, np.generic)
_MOST_KINDS = 4  # of inputs of a reverse half that emitted code is made for
Run = Callable[[list], list]


class DiffOp:
    """The op that runs one ``diff_graph`` of a plan; made once, and shared by all runs (R2.19, R2.20).

    Args:
        gradient: the two halves, with the indices of what passes between them.
        name: of the subgraph, for messages.
        forward, reverse: the executors of the halves.

    Attributes:
        real: how many results the subgraph has.
        pull: runs the reverse half on plain values; emitted code where there is some.
        pulled: the kinds of inputs that the reverse half has been given in Python.
    """

    def __init__(self, gradient: Gradient, name: str, forward: Any, reverse: Any) -> None:
        self.name, self.forward, self.reverse = name, forward, reverse
        self.real = gradient.real_outputs
        self.input_vjps, self.output_vjps = gradient.input_vjps, gradient.output_vjps
        self.captured_inputs = gradient.captured_inputs
        self.captured_outputs = gradient.captured_outputs
        self.shapes_alone = _shapes_alone(gradient)
        self._forward = gradient.forward
        self._arity = len(gradient.forward.inputs)
        self._has_others = len(set(self.input_vjps)) < self.real  # results that are no floats
        self._needs_inputs = any(k >= self.real for k in self.captured_outputs)
        self._is_told = False
        self._on_tape: Evaluator | None = None
        self.pull: Callable[..., Sequence[Any]] = self.pull_in_python
        self.pulled: dict[tuple, None] = {}

    def on_tape(self, inputs: Sequence[Any]) -> list[Any]:
        """The real outputs, computed op by op on the tape."""
        if self._on_tape is None:
            f = self._forward
            body = Block(f.inputs, f.body.instrs, f.outputs[: self.real])
            module = Module(Program(f.name, body, f.types, f.count))
            self._on_tape = Evaluator(module.main, module, adapt=on_tape(module))
        return self._on_tape(inputs)

    def __call__(self, *args: Any) -> Any:
        """The results of the subgraph, one bare; a node is made where gradients are required.

        Where none are, or gradient mode is off, the forward half alone runs, and what it computes
        for the reverse half is dropped.
        """
        outputs = self.forward.run([x.data if type(x) is Array else x for x in args])
        if gradient_mode() and any(is_noted(args[k]) for k in self.output_vjps):
            out = self.noted(*args, *outputs)
            if self._has_others:
                out = [y if is_noted(y) else plain(y) for y in (out if self.real > 1 else (out,))]
                return out[0] if self.real == 1 else out
            return out
        return outputs[0] if self.real == 1 else outputs[: self.real]

    def noted(self, *args: Any) -> Any:
        """The results of the subgraph, all arrays as `Array`, with a node of theirs; one bare.

        ``args``: the operands, then all outputs of the forward half (R2.20 - R2.25). Emitted code
        calls it as well.
        """
        operands, outputs = args[: self._arity], args[self._arity :]
        edges = [x.edge() if type(x) is Array else None for x in operands]
        out = outputs if self.real == len(outputs) else outputs[: self.real]
        node = DiffNode(self, [edges[k] for k in self.output_vjps], [_meta(y) for y in out])
        node.place = users_place()
        versions = node.versions
        out = tuple(
            [
                Array(y, node if y.dtype.kind in FLOATS and k in self.input_vjps else None, k)
                if isinstance(y, _VALUES)
                else y
                for k, y in enumerate(out)
            ]
        )
        shapes_alone = self.shapes_alone
        captures: list[tuple[Any, Any]] = [
            (shape_alone(x.data if type(x := operands[k]) is Array else x), None)
            if k in shapes_alone
            else (keep(x.data if type(x := operands[k]) is Array else x, x, versions), edges[k])
            for k in self.captured_inputs
        ]
        if self._needs_inputs and any(k >= self.real and _is_float(outputs[k]) for k in self.captured_outputs):
            kept = dict(zip(self.captured_inputs, captures, strict=True))
            kept = {k: capture for k, capture in kept.items() if k not in shapes_alone}
            node.inputs = [kept.get(k) or (keep(plain(x), x, node.others), edges[k]) for k, x in enumerate(operands)]
        for k in self.captured_outputs:
            y = out[k] if k < self.real else None
            if is_noted(y):
                # It belongs to the node, so that the node has no reference to itself (R2.25).
                captures.append((keep(outputs[k], y, versions), _OWN))
            else:
                captures.append((keep(outputs[k], None, versions, owned=y is None), None))
        node.captures = captures
        if not self._is_told:
            self._is_told = True
            self.forward.notes.append(self._told(outputs))
        return out[0] if self.real == 1 else out

    def pull_in_python(self, *inputs: Any) -> Sequence[Any]:
        """Run the reverse half, and remember for which kinds of inputs."""
        if len(self.pulled) < _MOST_KINDS and not any(x is None for x in inputs):
            self.pulled[tuple(map(leaf_kind, inputs))] = None
        return self.reverse.run_any(list(inputs))

    def _told(self, outputs: Sequence[Any]) -> str:
        """A sentence for ``explain`` on what a call keeps for its gradient, and why."""
        f = self._forward
        makers = {r: instr for instr in f.body.walk() for r in instr.results}
        kept = [(k, np.asarray(outputs[k])) for k in self.captured_outputs]
        nbytes = sum(y.nbytes for k, y in kept if k >= self.real)
        text = (
            f"A call of the sizes of the first one keeps {nbytes} bytes for its gradient, beside "
            f"{len(self.captured_inputs)} of its inputs"
        )
        parts = [
            f"{y.dtype}{list(y.shape)}: {_why(makers.get(f.outputs[k]), k < self.real)}" for k, y in kept if y.ndim
        ]
        return "; ".join([text, *parts])


def _why(instr: Instr | None, is_result: bool) -> str:
    """The reason why a value is kept for a gradient, and not computed again (`autodiff.residuals`).

    ``instr``: the op that has computed it.
    """
    if is_result or instr is None:
        return "a result, which is in memory anyway"
    at = f" at {instr.loc}" if instr.loc is not None else ""
    if instr.op.fusion in (Fusion.CONTRACTION, Fusion.REDUCTION):
        return f"{instr.op.name}{at}, which is not computed again"
    return f"{instr.op.name}{at}, which is smaller than what it is computed from, or decides"


def _shapes_alone(gradient: Gradient) -> frozenset[int]:
    """The captured inputs, as inputs of the forward half, of which only sizes are read."""
    first = len(gradient.input_vjps)
    inputs = zip(gradient.reverse.inputs[first:], gradient.captured_inputs, strict=False)
    read = block_content_uses(gradient.reverse.body)
    return frozenset(k for value, k in inputs if value not in read)


_OWN: Any = object()  # in place of the edge of a captured output: the node itself has made it


class DiffNode(Node):
    """One run of a differentiable subgraph.

    Attributes:
        op: the subgraph.
        captures: what the reverse half takes besides gradients, each with the edge it came by;
            None once they are freed.
        versions: the counters of writes to captured arrays, and what they have counted.
        inputs: all operands with their edges, where temporaries are captured, through which
            gradients of gradients flow as well; else None.
        others: as ``versions``, of operands that only ``inputs`` has.
    """

    __slots__ = ("captures", "inputs", "op", "others", "versions")
    captures: list[tuple[Any, Any]] | None
    inputs: list[tuple[Any, Edge]] | None

    def __init__(self, op: DiffOp, edges: list[Edge], metas: Sequence[Meta]) -> None:
        Node.__init__(self, edges, metas)
        self.op = op
        self.versions: Versions = []
        self.others: Versions = []
        self.captures = self.inputs = None

    @property
    def name(self) -> str:
        return f"{self.op.name}_backward"

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        """The gradients of the operands, zeros where the reverse half leaves one undefined (R2.27).

        Raises GradientError after `release`, and for what was captured and then written to.
        """
        captures = self.captures  # read once, as another thread may free it
        if captures is None:
            raise freed(self.op.name, self.loc)
        for version, count in self.versions:
            if version.count != count:
                raise overwritten(version, self.op.name, self.loc)
        if gradient_mode() and self.inputs is not None:
            return self._again(self.inputs, gradients)
        op = self.op
        inputs = gradients if len(gradients) == len(op.input_vjps) else ([gradients[k] for k in op.input_vjps])
        values = [x.array() if type(x) is Packed else x for x, _ in captures]
        if gradient_mode():
            values = self._unpacked(values, [edge for _, edge in captures])
            results = op.reverse.run_any([*inputs, *values])
        else:
            results = op.pull(*inputs, *values)
        return [
            None if edge is None else _zeros(edge) if g is None else g
            for edge, g in zip(self.edges, results, strict=True)
        ]

    def _unpacked(self, values: list[Any], edges: list[Any]) -> list[Any]:
        """The captured values, each in its place on the tape, for gradients of gradients (R2.25)."""
        first = len(values) - len(self.op.captured_outputs)
        return [
            value
            if edge is None
            else Array(value, self, self.op.captured_outputs[k - first])
            if edge is _OWN
            else Array(value, *edge)
            for k, (value, edge) in enumerate(zip(values, edges, strict=True))
        ]

    def _again(self, inputs: list[tuple[Any, Edge]], gradients: list[Any]) -> Sequence[Any]:
        """Gradients that can be differentiated, by running the subgraph once more, op by op.

        Temporaries depend on the operands in ways that the reverse half does not know.
        """
        check(self.others, self.op.name, self.loc)
        copy = op_named("copy")
        operands = []
        for packed, edge in inputs:
            value = packed.array() if type(packed) is Packed else packed
            # A copy has a node of its own, at which the gradients of this subgraph end.
            operands.append(value if edge is None else apply(copy, {}, [Array(value, *edge)]))
        outputs = self.op.on_tape(operands)
        pairs = ((outputs[k], gradients[k]) for k in self.op.input_vjps)
        roots = [(*y.edge(), g) for y, g in pairs if g is not None and is_noted(y)]
        ends = {k: x.node for k, n in enumerate(self.op.output_vjps) if is_noted(x := operands[n])}
        captures = {node: [(0, n)] for n, node in enumerate(ends.values())}
        pulled = dict(zip(ends, run(roots, captures, create_graph=True, retain_graph=True), strict=True))
        return [
            None if edge is None else _zeros(edge) if (g := pulled.get(k)) is None else g
            for k, edge in enumerate(self.edges)
        ]

    def release(self) -> None:
        self.captures = self.inputs = None
        self.versions = self.others = []


def _zeros(edge: Any) -> Any:
    """Zeros of the shape and dtype of what an edge leads to."""
    node, index = edge
    shape, dtype = node.metas[index]
    return np.zeros(shape, dtype)[()]


def _meta(y: Any) -> Meta:
    return (y.shape, y.dtype) if isinstance(y, _VALUES) else ((), np.dtype(type(y)))


def _is_float(y: Any) -> bool:
    return isinstance(y, _VALUES) and y.dtype.kind in FLOATS
