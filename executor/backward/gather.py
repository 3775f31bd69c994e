"""A walk over the nodes of a run that has been met before, as generated functions.

The functions are straight-line code. They compare each node with that of the run before: it must have the
same plan (`tape.plans`), and its edges must lead to the same nodes. How sizes are compared depends on the run:

* If no size has changed from run to run, equal plans mean equal sizes: a plan for elementwise ops says that
  all operands have one size, any other plan says which sizes they have.
* If sizes have changed, plans are compared by what they do, all shapes are compared, and the sizes that
  change are read from them. So it is with plans that were made for a number, if that number changes.

A run that differs in any of this is left to the walk (`walk.Walk`), which knows no run in advance.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise
from typing import Any

from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.trees.leaves import NUMBERS
from ..plans.differentiable import DiffNode
from ..tape.eager_builder import Unsaved
from ..tape.node import Accumulate, Node
from ..tape.op_node import OpNode
from ..tape.plans import may_change
from .capture import Captured, Dims, Numbers
from .foreign_calls import calls_of
from .joined import Gather, JoinedParts, Part, joined
from .walk import Shape
from .walk_outline import Outline, Stand

_PART = 48  # nodes of a generated function: other threads wait while Python compiles one


def gather_of(outline: Outline, captured: Captured, dynamic: Dims, changing: Numbers) -> Gather | None:
    """A function that gathers what a run like this one is given; None where there is none.

    It is called with the roots of a run, and whether its nodes keep what they have saved. It
    returns None for a run that is not like this one, in which case nothing has changed.

    Args:
        outline: of the run.
        captured: what of it is passed.
        dynamic: the sizes that change from run to run, with the numbers of their symbols.
        changing: which numbers do.
    """
    nodes = outline.nodes
    inner = [node for node in nodes if node.edges]
    usual = all(node.__class__ in (OpNode, DiffNode) for node in inner) and all(
        node.__class__ is Accumulate or node.edges for node in nodes
    )
    usual = usual and not any(
        type(x) is Stand and x.packed for groups in outline.saved.values() for group in groups for x in group
    )
    ordered = all(a.seq > b.seq for a, b in pairwise(inner))
    single = len(outline.roots) == 1 and outline.roots[0][0].edges
    if not (usual and ordered and single and outline.captures is None and not outline.opaque):
        return None
    return _GatherWriter(outline, dynamic, changing).function(captured)


class _GatherWriter:
    """Writes the functions, each of which is given five lists to read and to add to.

    They are the nodes by their numbers, values of symbols, arrays, hooks and numbers.
    """

    def __init__(self, outline: Outline, dynamic: Dims, changing: Numbers) -> None:
        self.outline, self.dynamic, self.changing = outline, dynamic, changing
        self.numbers: dict[Node, int] = {}
        self.symbols: set[int] = set()
        self.told: set[Node] = set()  # nodes whose shape the plan of a node in front has told
        self.parts: list[Part] = []
        self._begin()

    def function(self, captured: Captured) -> Gather:
        """Write and compile the functions; what calls them."""
        outline = self.outline
        root, index, g = outline.roots[0]
        self.numbers[root] = 0
        self.local.add("n0")
        self.lines.append("  n0, g = N[0], A[0]")
        self.shape("g.shape", 0)
        inner = [node for node in outline.nodes if node.edges]
        for k, node in enumerate(inner):
            self.node(k, node, inner[k - 1] if k else None)
            if k % _PART == _PART - 1:
                self.end()
        self.end()
        inner_parts, self.parts = self.parts, []
        leaves = [node for node in outline.nodes if not node.edges]
        for k, node in enumerate(leaves):
            self.leaf(node)
            if k % _PART == _PART - 1:
                self.end()
        self.end()
        symbols = [self.dynamic[at] for at in captured.sizes]
        return joined(
            JoinedParts(
                (index, g.dtype),
                tuple(inner_parts),
                tuple(self.parts),
                [self.numbers[node] for node in inner if type(node) is OpNode],
                [self.numbers[node] for node in inner if type(node) is not OpNode],
                [self.numbers[node] for node in leaves],
                _equal(outline.pattern),
                captured.arrays,
                symbols,
                self.numbers[inner[-1]],
                [self.numbers[outline.nodes[k]] for k in captured.order] if outline.hooks else [],
            )
        )

    # --- parts ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.scope: dict[str, Any] = {
            "O": OpNode,
            "D": DiffNode,
            "L": Accumulate,
            "kinds": _kinds,
            "calls_of": calls_of,
        }
        self.lines = ["def part(N, Z, A, H, F):"]
        self.local: set[str] = set()

    def end(self) -> None:
        """Compile what has been written since the last time."""
        if len(self.lines) > 1:
            self.lines.append("  return True")
            source = "\n".join(self.lines)
            file = generated_file("walk of a backward run")
            exec(compile(source, file, "exec"), self.scope)
            self.parts.append(self.scope["part"])
        self._begin()

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def name(self, node: Node) -> str:
        """The variable for a node that has been met."""
        number = self.numbers[node]
        name = f"n{number}"
        if name not in self.local:
            self.local.add(name)
            self.emit(f"{name} = N[{number}]")
        return name

    def met(self, node: Node) -> str:
        """The variable for a node that is met for the first time; `store` keeps it."""
        number = self.numbers[node] = len(self.numbers)
        self.local.add(f"n{number}")
        return f"n{number}"

    # --- shapes -----------------------------------------------------------------------------------

    def shape(self, source: str, at: int) -> None:
        """Compare a shape of the walk, and take sizes that change from it."""
        shape: Shape = self.outline.shapes[at]
        symbols = [self.dynamic.get((at, axis)) for axis in range(len(shape))]
        if symbols == [None] * len(shape):
            self.emit(f"if {source} != {shape!r}: return None")
            return
        names, tests, new = [], [], []
        for axis, (size, symbol) in enumerate(zip(shape, symbols, strict=True)):
            name = f"a{axis}"
            if symbol is None:
                tests.append(f"{name} != {size}")
            elif symbol in self.symbols:
                if f"z{symbol}" not in self.local:
                    self.local.add(f"z{symbol}")
                    self.emit(f"z{symbol} = Z[{symbol}]")
                tests.append(f"{name} != z{symbol}")
            else:
                name = f"z{symbol}"
                self.local.add(name)
                self.symbols.add(symbol)
                new.append(symbol)
            names.append(name)
        self.emit(f"{', '.join(names)}, = {source}")
        if tests:
            self.emit(f"if {' or '.join(tests)}: return None")
        for symbol in new:
            self.emit(f"Z[{symbol}] = z{symbol}")

    # --- nodes ------------------------------------------------------------------------------------

    def node(self, k: int, node: Any, front: Node | None) -> None:
        """The inputs that one node asks for; ``front``: the node that runs before it."""
        name = self.name(node)
        letter, attribute = ("O", "plan") if type(node) is OpNode else ("D", "op")
        self.scope[f"P{k}"] = what = getattr(node, attribute)
        differs = f"{name}.{attribute} is not P{k}"
        if letter == "O" and self._is_loose(node):
            self.scope[f"T{k}"] = what.stamp or what.stamped()
            self.emit(f"p = {name}.plan")
            differs = f"p is not P{k} and (p.stamp or p.stamped()) != T{k}"
        # A node is older than those that lead to it; of others the order is asked for.
        if front is not None and not any(e is not None and e[0] is node for e in front.edges):
            differs += f" or {name}.seq >= {self.name(front)}.seq"
        self.emit(f"if {differs} or {name}.__class__ is not {letter}: return None")
        self.hook(node, name)
        self.edges(node, name)
        if letter == "O":
            self.op(node, name)
        else:
            self.subgraph(node, name, k)

    def _numbers_of(self, node: Node) -> range:
        """The places of its numbers among those of the walk."""
        marks, place = self.outline.marks, self.outline.places[node]
        return range(marks[place][6], marks[place + 1][6])

    def _is_loose(self, node: Node) -> bool:
        """True if the plan of an op may be another one, so that it does not tell sizes."""
        return bool(self.dynamic) or not self.changing.isdisjoint(self._numbers_of(node))

    def leaf(self, node: Node) -> None:
        """The inputs that a leaf asks for."""
        name = self.name(node)
        self.scope[f"M{name}"] = node.metas[0][1]
        self.emit(f"[(s, t)] = {name}.metas")
        self.emit(f"if {name}.__class__ is not L or t != M{name}: return None")
        self.shape("s", self._shapes_of(node))
        self.hook(node, name)

    def _shapes_of(self, node: Node) -> int:
        return self.outline.marks[self.outline.places[node]][1]

    def hook(self, node: Node, name: str) -> None:
        """Ask for the hooks of a node, of which places and numbers count (R4.8)."""
        hooks = self.outline.hooked.get(node)
        if hooks is None:
            self.emit(f"if {name}.hooked is not None: return None")
            return
        self.scope[f"H{name}"] = hooks.key
        self.emit(f"h = {name}.hooked")
        self.emit("k, c = h.calls or calls_of(h)")
        self.emit(f"if k != H{name} or h.retained: return None")
        self.emit("H += c")

    def edges(self, node: Node, name: str) -> None:
        """Follow the edges of a node: to a node that is new here, or to the one that it was."""
        parts, tests, new = [], [], []
        for k, edge in enumerate(node.edges):
            if edge is None:
                parts.append(f"e{k}")
                tests.append(f"e{k} is not None")
                continue
            target, index = edge
            if target in self.numbers:
                tests.append(f"e{k} is not {self.name(target)}")
                parts.append(f"(e{k}, i{k})")
            else:
                new.append(target)
                parts.append(f"({self.met(target)}, i{k})")
            tests.append(f"i{k} != {index}" if index else f"i{k}")
        self.emit(f"[{', '.join(parts)}] = {name}.edges")
        self.emit(f"if {' or '.join(tests)}: return None")
        for target in new:
            number = self.numbers[target]
            self.emit(f"N[{number}] = n{number}")

    def op(self, node: OpNode, name: str) -> None:
        """The values that an op has saved; its plan says of what types and, mostly, sizes."""
        operands, results = self.outline.saved[node]
        at = self._shapes_of(node)
        loose = self._is_loose(node)
        if loose or (node.plan.any_sizes and node not in self.told):
            self.emit(f"s = {name}.metas")
            for n in range(len(node.metas)):
                self.shape(f"s[{n}][0]", at + n)
        if not loose:
            self.told.update(edge[0] for edge in node.edges if edge is not None)
        at += len(node.metas)
        saved = [(f"x[{n}]", x) for n, x in enumerate(operands)]
        saved += [(f"y[{n}]", results[n]) for n in node.plan.kept_results]
        # Counts of writes are looked at in the end, if at all: what is not touched takes no time.
        read = {source[0] for source, x in saved if type(x) in (Stand, Unsaved)}
        read |= {"x"} if node.plan.numbers or node.plan.any_number else set()
        if read == {"x", "y"}:
            self.emit(f"x, y, _ = {name}.saved")
        elif read:
            self.emit(f"{(letter := read.pop())} = {name}.saved[{'xy'.index(letter)}]")
        else:
            self.emit(f"if {name}.saved is None: return None")
        arrays = []
        for source, x in saved:
            if type(x) is Stand:
                arrays.append(source)
            elif type(x) is not Unsaved:
                continue
            if loose:
                if type(x) is Stand or not x.is_unknown:
                    self.shape(f"{source}.shape", at)
                at += 1
        if arrays:
            self.emit(f"A += {', '.join(arrays)},")
        numbers = []
        sources = [f"x[{n}]" for n in node.plan.numbers]
        if node.plan.bounds and loose:
            self.emit(f"b = p.bounds\n  if len(b) != {len(node.plan.bounds)}: return None")
        sources += [f"b[{n}]" for n in range(len(node.plan.bounds))]
        for source, place in zip(sources, self._numbers_of(node), strict=True):
            if place in self.changing:
                numbers.append(source)
            elif loose or node.plan.any_number:
                self.emit(f"if {source} != {self.outline.numbers[place]!r}: return None")
        if node.plan.any_number and not node.plan.numbers:
            for n, x in enumerate(operands):
                if type(x) in NUMBERS:
                    self.emit(f"if x[{n}] != {x!r}: return None")
        if numbers:
            self.emit(f"F += {', '.join(numbers)},")

    def subgraph(self, node: DiffNode, name: str, k: int) -> None:
        """The captures of a subgraph; its sizes are compared."""
        (captures,) = self.outline.saved[node]
        at = self._shapes_of(node)
        if self.dynamic:
            self.emit(f"s = {name}.metas")
            for n in range(len(node.metas)):
                self.shape(f"s[{n}][0]", at + n)
        at += len(node.metas)
        floats = [n for n, x in enumerate(captures) if type(x) is float and may_change(x)]
        places = zip(floats, self._numbers_of(node), strict=True)
        numbers = [n for n, place in places if place in self.changing]
        self.scope[f"F{k}"] = frozenset(numbers)
        self.scope[f"S{k}"] = _kinds(captures, numbers)
        self.emit(f"c = [x for x, _ in {name}.captures]")
        self.emit(f"if kinds(c, F{k}) != S{k}: return None")
        if numbers:
            self.emit(f"F += {', '.join(f'c[{n}]' for n in numbers)},")
        arrays = []
        for n, x in enumerate(captures):
            if type(x) is Stand:
                arrays.append(f"c[{n}]")
                self.shape(f"c[{n}].shape", at)
                at += 1
            elif type(x) is Unsaved:
                at += 1
        if arrays:
            self.emit(f"A += {', '.join(arrays)},")


def _equal(pattern: Sequence[int]) -> list[tuple[int, int]]:
    """The arrays that were the same as an earlier one."""
    first: dict[int, int] = {}
    return [(k, first[p]) for k, p in enumerate(pattern) if first.setdefault(p, k) != k]


def _kinds(captures: Sequence[Any], passed: Container[int]) -> list[Any]:
    """The outline of a subgraph's captures: dtypes of arrays, other values themselves.

    ``passed``: the floats that are inputs, so that their values do not count.
    """
    return [
        x.dtype
        if hasattr(x, "dtype")
        else (float, may_change(x))
        if k in passed and x.__class__ is float
        else (x.__class__, repr(x))
        for k, x in enumerate(captures)
    ]
