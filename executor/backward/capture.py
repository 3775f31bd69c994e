"""Capture: a backward run recorded as a graph, node by node, without running any (R4.12 - R4.28).

The graph has five lists as inputs; ops that take elements out of them stand right behind (R4.13).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush
from typing import Any

from ...dialect.errors import Loc
from ...dialect.ir.op import Op, op_named
from ...dialect.ir.program import Instr, Module, Program
from ...dialect.ir.symbolic import Dim, symbol
from ...dialect.ir.types import FLOAT_SCALAR, INT_SCALAR, TENSOR, ListType, ScalarType, Type
from ...dialect.ops.backward import LISTS, AccumulateGrad, CallHook, FinalCallbacks, ListGet, ValidateGrads
from ..tape.node import Accumulate, Node
from .node_gradients import RuleFunction, tensor
from .node_recording import RECORDS, record_opaque
from .walk_outline import Outline

Place = tuple[int, int]  # of a size: which shape of the walk, and which axis
Dims = dict[Place, int]  # sizes that change, with the numbers of their symbols
Numbers = Set[int]  # those among the numbers of the walk that change
_ADD = op_named("add")


def number_type(x: float) -> ScalarType:
    """The type of a number that is passed."""
    return INT_SCALAR if type(x) is int else FLOAT_SCALAR


class Captured:
    """The result of a capture.

    Attributes:
        module: the graph, a main program with five lists as inputs, and private functions.
        sizes: which sizes of the walk are passed.
        arrays: which of the lifted arrays are passed: the first of each.
        numbers: which numbers of the walk are passed, behind its scalars.
        origins: of values, what computed them: a node, or an op of a pasted subgraph (R4.32).
        defined: which of the gradients that are asked for there are.
        leaves: how many leaves follow the arrays among the inputs.
        order: the places of nodes that have operands, in the order in which they run.
        starts: for each of the hooks, how many of these nodes have run when it has been called.
    """

    def __init__(
        self,
        module: Module,
        sizes: Sequence[Place],
        arrays: Sequence[int],
        numbers: Sequence[int],
        origins: dict[int, str],
        defined: Sequence[bool],
        leaves: int,
        order: Sequence[int],
        starts: Sequence[int],
    ) -> None:
        self.module, self.sizes, self.arrays, self.origins = module, sizes, arrays, origins
        self.numbers, self.defined, self.leaves = numbers, defined, leaves
        self.order, self.starts = order, starts


class Capture:
    """Records one run.

    Args:
        number: of the capture (R4.12).
        outline: of the run.
        dynamic: the sizes that change from run to run, with the numbers of their symbols.
        changing: which numbers do.
    """

    def __init__(self, number: int, outline: Outline, dynamic: Dims, changing: Numbers = frozenset()) -> None:
        self.number, self.outline, self.pattern = number, outline, outline.pattern
        self.program = Program(f"CompiledAutograd{number}")
        self.lists = [self.program.new_value(ListType()) for _ in LISTS]
        self.program.body.args = tuple(self.lists)
        self.head: list[Instr] = []
        self.body: list[Instr] = []
        self.functions: dict[str, Program] = {}
        self.made: dict[Any, RuleFunction] = {}
        self.counts: dict[str, int] = {}
        self.origins: dict[int, str] = {}
        self.subgraphs: dict[Any, list[int]] = {}
        self.origin = ""
        self.loc: Loc | None = None
        self.next_hook = 0
        self.order: list[int] = []
        self.starts = [0] * outline.hooks
        self.opaque = outline.opaque
        self.dynamic, self.number_slots = dynamic, sorted(changing)
        self._index_ops()

    # --- inputs -----------------------------------------------------------------------------------

    def _index_ops(self) -> None:
        """The ops that take the elements of the lists (R4.13, R4.14)."""
        outline = self.outline
        owners = self._owners()
        first = {p: k for k, p in reversed(list(enumerate(self.pattern)))}
        self.array_slots = [first[p] for p in range(len(first))]
        self.arrays = [self._get(0, p, TENSOR, owners[0][k]) for p, k in enumerate(self.array_slots)]
        count = len(self.arrays)
        self.leaf_values = [self._get(0, count + k, TENSOR, owners[5][k]) for k in range(outline.leaves)]
        first_of = {symbol: at for at, symbol in sorted(self.dynamic.items(), reverse=True)}
        self.size_slots = [first_of[symbol] for symbol in sorted(first_of)]
        symbol_values = [self._get(1, k, INT_SCALAR, owners[1][at[0]]) for k, at in enumerate(self.size_slots)]
        self.sizes = {at: symbol_values[symbol] for at, symbol in self.dynamic.items()}
        self.scalars = [
            self._get(2, k, INT_SCALAR if kind is int else FLOAT_SCALAR, owners[2][k])
            for k, kind in enumerate(outline.scalars)
        ]
        self.numbers = {
            place: self._get(2, k, number_type(outline.numbers[place]), owners[6][place])
            for k, place in enumerate(self.number_slots, len(outline.scalars))
        }
        self.hook_values = [self._get(3, k, TENSOR, owners[3][k]) for k in range(outline.hooks)]
        self.packed = [self._get(4, k, TENSOR, owners[4][k]) for k in range(outline.packed)]

    def _owners(self) -> list[list[str]]:
        """The origin of each element of the lists of a walk: root, or number and name of a node."""
        outline = self.outline
        labels = ["root", *(f"{k} {node.name}" for k, node in enumerate(outline.nodes))]
        ends = outline.marks
        return [
            [
                label
                for label, start, end in zip(
                    labels, (0, *(m[which] for m in ends[:-1])), (m[which] for m in ends), strict=True
                )
                for _ in range(end - start)
            ]
            for which in range(7)
        ]

    def _get(self, which: int, index: int, type_: Type, origin: str) -> int:
        value = self.program.new_value(type_)
        attrs = {"index": index, "origin": origin}
        self.head.append(Instr(ListGet, (self.lists[which],), (value,), attrs))
        return value

    # --- emitting ---------------------------------------------------------------------------------

    def emit(self, op: type[Op], operands: Sequence[int], known: Sequence[Type], **attrs: Any) -> tuple[int, ...]:
        """Append an instruction, with the label of the node that is recorded.

        ``known``: the types of its results.
        """
        results = tuple(self.program.new_value(t) for t in known)
        if "origin" in op.attrs:
            attrs["origin"] = self.origin
        self.body.append(Instr(op, tuple(operands), results, attrs, (), self.loc))
        self.origins.update(dict.fromkeys(results, self.origin))
        return results

    def hook(self, kind: str, arguments: Sequence[int | None], replaced: int) -> list[int | None]:
        """Record a call of the next hook; what takes the place of the first of what it is given."""
        values = [v for v in arguments if v is not None]
        first = [v for v in arguments[:replaced] if v is not None]
        replacements = iter(
            self.emit(
                CallHook,
                (self.hook_values[self.next_hook], *values),
                [self.program.type_of(v) for v in first],
                hook_type=kind,
                replaced=replaced,
                present=tuple(v is not None for v in arguments),
            )
        )
        self.starts[self.next_hook] = len(self.order)
        self.next_hook += 1
        return [None if v is None else next(replacements) for v in arguments[:replaced]]

    def validate(self, gradients: Sequence[int | None], edges: Sequence[Any]) -> list[int | None]:
        """Record one check of what a node has computed, against the edges (R4.19)."""
        present = [k for k, v in enumerate(gradients) if v is not None]
        if not present:
            return list(gradients)
        types, sizes = [], []
        for k in present:
            node, index = edges[k]
            at = self.meta_at(node, index)
            types.append(tensor(self.shape(at), node.metas[index][1]))
            sizes += self.sizes_of(at)
        values = [gradients[k] for k in present]
        results = self.emit(ValidateGrads, (*values, *sizes), types, types=tuple(types))  # type: ignore[arg-type]
        checked = dict(zip(present, results, strict=True))
        return [checked.get(k) for k in range(len(gradients))]

    def subgraph(self, op: Any) -> str:
        """The prefix of the names of values of a pasted subgraph: ``aot0``, then ``aot0_1`` (R4.32)."""
        number, times = self.subgraphs.setdefault(op, [len(self.subgraphs), 0])
        self.subgraphs[op][1] += 1
        return f"aot{number}_{times}" if times else f"aot{number}"

    # --- sizes ------------------------------------------------------------------------------------

    def shape(self, at: int) -> tuple[Dim, ...]:
        """A shape of the walk, with symbols for sizes that change."""
        dynamic = self.dynamic
        return tuple(
            d if (symbol_ := dynamic.get((at, axis))) is None else symbol(f"s{symbol_}")
            for axis, d in enumerate(self.outline.shapes[at])
        )

    def sizes_of(self, at: int) -> list[int]:
        """The values of those sizes of a shape that change."""
        return [self.sizes[at, axis] for axis in range(len(self.outline.shapes[at])) if (at, axis) in self.dynamic]

    def meta_at(self, node: Node, index: int) -> int:
        """The place, among the shapes of the walk, of that of an output of a node."""
        return self.outline.marks[self.outline.places[node]][1] + index

    def marks(self, node: Node) -> tuple[int, ...]:
        """The places where the lists of the walk begin for a node."""
        return self.outline.marks[self.outline.places[node]]

    # --- the run ----------------------------------------------------------------------------------

    def run(self) -> Captured:
        """Record the run, in the order in which the engine would do it (R4.17)."""
        outline = self.outline
        gradients = self._record()
        self.origin, self.loc = "", None
        self.emit(FinalCallbacks, (), ())
        body = self.program.body
        body.instrs = [*self.head, *self.body]
        body.outputs = tuple(v for v in gradients if v is not None)
        return Captured(
            Module(self.program, self.functions),
            self.size_slots,
            self.array_slots,
            self.number_slots,
            self.origins,
            [v is not None for v in gradients],
            outline.leaves,
            self.order,
            self.starts,
        )

    def _record(self) -> list[int | None]:
        outline = self.outline
        captures = outline.captures or {}
        gradients: list[int | None] = [None] * sum(map(len, captures.values()))
        waiting = dict.fromkeys(outline.nodes, 0)
        for node in outline.nodes:
            for edge in node.edges:
                if edge is not None:
                    waiting[edge[0]] += 1
        pending: dict[Node, list[int | None]] = {}
        for k, (node, index, root) in enumerate(outline.roots):
            value = self.arrays[self.pattern[k]]
            self.program.types[value] = tensor(self.shape(k), root.dtype)
            self._hold(pending, node, index, value)
        pushed = len(pending)
        ready = [(-node.seq, k, node) for k, node in enumerate(pending) if not waiting[node]]
        heapify(ready)
        calls = 0
        while ready:
            node = heappop(ready)[2]
            self.origin, self.loc = f"{node.name} (NodeCall {calls})", node.loc
            calls += 1
            before = pending.pop(node, None)
            pulled = self._node(node, before or [None] * len(node.metas), gradients)
            later = []
            for edge, g in zip(node.edges, pulled, strict=True):
                if edge is None:
                    continue
                target, index = edge
                waiting[target] -= 1
                remaining = waiting[target]
                first = target not in pending
                if g is not None:
                    self._hold(pending, target, index, g)
                if remaining:
                    continue
                at_once = first and g is not None and self._is_plain_leaf(target)
                if at_once:
                    # As the engine does: nobody sees the order.
                    origin = self.origin
                    self.origin = f"{target.name} (NodeCall {calls})"
                    calls += 1
                    self._node(target, pending.pop(target), gradients)
                    self.origin = origin
                else:
                    later.append(target)
            for target in later:
                heappush(ready, (-target.seq, pushed, target))
                pushed += 1
        return gradients

    def _is_plain_leaf(self, node: Node) -> bool:
        outline = self.outline
        return type(node) is Accumulate and node not in outline.hooked and outline.captures is None

    def _hold(self, held: dict[Node, list[int | None]], node: Node, index: int, g: int) -> None:
        """Add a gradient to those that an output of a node has got (R4.18)."""
        gs = held.setdefault(node, [None] * len(node.metas))
        before = gs[index]
        gs[index] = g if before is None else self.emit(_ADD, (before, g), [self.program.type_of(g)])[0]

    def _node(self, node: Node, gs: list[int | None], gradients: list[int | None]) -> Sequence[int | None]:
        """Record one node, with its hooks in their order; what its edges are given."""
        outline = self.outline
        hooks = outline.hooked.get(node)
        self.next_hook = self.marks(node)[3]
        places = outline.captures.get(node, ()) if outline.captures is not None else ()
        runs = outline.needed is None or node in outline.needed
        limit = 0
        if hooks is not None:
            limit = len(hooks.outputs)
            for index in hooks.outputs:
                if gs[index] is None:
                    self.next_hook += 1
                elif runs or places:
                    gs[index] = self.hook("tensor_pre_hook", [gs[index]], 1)[0]
        for index, position in places:
            gradients[position] = gs[index]
        if not runs:
            return [None] * len(node.edges)
        own = self.marks(node)[3] + limit  # hooks of the walk are in the order of their calls
        if hooks is not None:
            for _ in range(hooks.pre):
                gs = self.hook("pre_hook", gs, len(gs))
            own += hooks.pre + hooks.accumulated + hooks.post
        incoming = list(gs)
        pulled: Sequence[int | None] = [None] * len(node.edges)
        if any(g is not None for g in gs):
            calls, self.next_hook = self.next_hook, own
            pulled = self._applied(node, gs)
            self.next_hook = calls
        if hooks is not None:
            leaf = self._leaf(node) if type(node) is Accumulate else None
            for _ in range(hooks.accumulated):
                if leaf is not None and any(g is not None for g in gs):
                    self.hook("post_acc_grad_hook", [leaf], 0)
                else:
                    self.next_hook += 1
            for _ in range(hooks.post):
                pulled = self.hook("post_hook", [*pulled, *incoming], len(pulled))
        return pulled

    def _leaf(self, node: Node) -> int:
        return self.leaf_values[self.marks(node)[5]]

    def _applied(self, node: Node, gs: list[int | None]) -> Sequence[int | None]:
        if type(node) is Accumulate:
            (g,) = gs
            assert g is not None
            self.emit(AccumulateGrad, (self._leaf(node), g), ())
            return ()
        entry = None if node in self.opaque else RECORDS.get(type(node))
        record, validates = entry or (record_opaque, True)
        pulled = record(self, node, gs)
        self.order.append(self.outline.places[node])
        return self.validate(pulled, node.edges) if validates else pulled
