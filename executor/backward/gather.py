"""A walk over the nodes of a run that has been met before, as one generated function.

It asks of each node, in straight-line code, whether it is what it was: the same plan, and edges
that lead to the same nodes. Plans tell sizes, but for elementwise ops, whose shapes are compared.
Whatever is not so is left to the walk (`walk.Walk`), which knows no run in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ...dialect.importers.python.users_code import generated_file
from ..plans.differentiable import DiffNode
from ..tape.node import Accumulate, Node
from ..tape.op_node import OpNode
from ..tape.saved import Packed
from .walk import Walk, hooks_of

Given = tuple[list[Any], list[Any], list[Any]]
"""Inputs of a captured run, with its leaves behind the arrays; values of sizes; hooks."""
Gather = Callable[[Sequence[Any], bool], "Given | None"]
_MOST = 4000  # nodes of a generated function


def gather_of(walk: Walk, arrays: Sequence[int], sizes: Sequence[tuple[int, int]]) -> Gather | None:
    """A function that gathers what a run like this one is given; None where there is none.

    It is called with the roots of a run, and whether its nodes keep what they have saved. It
    returns None for a run that is not like this one, in which case nothing has changed.

    Args:
        walk: of the run.
        arrays: which lifted arrays are passed.
        sizes: which sizes of the walk are passed.
    """
    inner = [node for node in walk.nodes if node.edges]
    usual = all(node.__class__ in (OpNode, DiffNode) for node in inner) and all(
        node.__class__ is Accumulate or node.edges for node in walk.nodes
    )
    usual = usual and not any(
        type(x) is Packed
        for node in inner
        if type(node) is DiffNode
        for x, _ in node.captures or ()
    )
    ordered = all(a.seq > b.seq for a, b in pairwise(inner))
    single = len(walk.roots) == 1 and walk.roots[0][0].edges
    plain = not walk.opaque and walk.captures is None and len(inner) <= _MOST
    if not (usual and ordered and single and plain):
        return None
    return _Writer(walk).function(arrays, sizes)


class _Writer:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.scope: dict[str, Any] = {
            "O": OpNode, "D": DiffNode, "L": Accumulate, "hooked": _hooked, "shapes": _shapes,
        }  # fmt: skip
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.arrays: list[str] = ["g"]
        self.hooks: list[str] = []

    def function(self, arrays: Sequence[int], sizes: Sequence[tuple[int, int]]) -> Gather:
        """Write and compile the function."""
        walk = self.walk
        root, index, g = walk.roots[0]
        emit = self.lines.append
        emit("def gather(roots, retain):")
        emit("  try:")
        self.emit("[(n0, i, g)] = roots")
        self.emit(f"if i != {index} or g.shape != {g.shape!r} or g.dtype != G: return None")
        self.scope["G"] = g.dtype
        self.names[root] = "n0"
        self.emit("q = n0.seq + 1")
        inner = [node for node in walk.nodes if node.edges]
        for k, node in enumerate(inner):
            self.node(k, node)
        leaves = [node for node in walk.nodes if not node.edges]
        hooks, self.hooks = self.hooks, []  # those of leaves come first, as in the walk
        for node in leaves:
            name = self.names[node]
            shape, dtype = node.metas[0]
            self.scope[f"M{name}"] = dtype
            self.emit(f"[(s, t)] = {name}.metas")
            self.emit(
                f"if {name}.__class__ is not L or s != {shape!r} or t != M{name}: return None"
            )
            self.hook(node, name)
        self.hooks += hooks
        names = [self.names[node] for node in leaves]
        self.emit(f"if len({{{', '.join(names)}}}) != {len(names)}: return None")
        return self.compiled(arrays, sizes, names)

    def _pattern(self) -> list[int]:
        return [id(x) for x in self.walk.arrays]

    def compiled(
        self, arrays: Sequence[int], sizes: Sequence[tuple[int, int]], leaves: Sequence[str]
    ) -> Gather:
        """The end of the function: which arrays are the same, and what is returned.

        Those that were different ones are inputs of their own, and may be the same now.
        """
        found = self._pattern()
        self.emit(f"A = [{', '.join(self.arrays)}]")
        first: dict[int, int] = {}
        for k, one in enumerate(found):
            if one in first:
                self.emit(f"if A[{k}] is not A[{first[one]}]: return None")
            first.setdefault(one, k)
        self.emit("if not retain:")
        for node, name in self.names.items():
            if type(node) is OpNode:
                self.emit(f"  {name}.saved = None")
            elif type(node) is DiffNode:
                self.emit(f"  {name}.release()")
        self.emit("  pass")
        passed = [f"A[{k}]" for k in arrays] + [f"{name}.leaf()" for name in leaves]
        shapes = self.walk.shapes
        values = [str(shapes[k][axis]) for k, axis in sizes]
        hooks = ", ".join(self.hooks)
        self.emit(f"return [{', '.join(passed)}], [{', '.join(values)}], [{hooks}]")
        self.lines.append("  except (AttributeError, TypeError, ValueError): return None")
        source = "\n".join(self.lines)
        exec(compile(source, generated_file("walk of a backward run"), "exec"), self.scope)
        return self.scope["gather"]

    def emit(self, line: str) -> None:
        self.lines.append(f"    {line}")

    def node(self, k: int, node: Any) -> None:
        """What is asked of one node, and taken from it."""
        name = self.names[node]
        letter = "O" if type(node) is OpNode else "D"
        what, attribute = (node.plan, "plan") if letter == "O" else (node.op, "op")
        self.scope[f"P{k}"] = what
        self.emit(
            f"if {name}.{attribute} is not P{k} or {name}.__class__ is not {letter} or "
            f"{name}.seq >= q: return None"
        )
        self.emit(f"q = {name}.seq")
        self.hook(node, name)
        self.edges(node, name)
        if letter == "O":
            self.op(node, name, k)
        else:
            self.subgraph(node, name, k)

    def hook(self, node: Node, name: str) -> None:
        """Ask for the hooks of a node, of which places and numbers count (R4.8)."""
        if node.hooked is None:
            self.emit(f"if {name}.hooked is not None: return None")
            return
        self.scope[f"H{name}"], _ = _hooked(node)
        self.emit(f"k, h{name} = hooked({name})")
        self.emit(f"if k != H{name}: return None")
        self.hooks.append(f"*h{name}")

    def edges(self, node: Node, name: str) -> None:
        """Follow the edges of a node: to a node that is new here, or to the one that it was."""
        parts, tests = [], []
        for k, edge in enumerate(node.edges):
            if edge is None:
                parts.append(f"e{k}")
                tests.append(f"e{k} is not None")
                continue
            target, index = edge
            known = self.names.get(target)
            if known is None:
                self.names[target] = f"n{len(self.names)}"
                parts.append(f"({self.names[target]}, i{k})")
            else:
                parts.append(f"(e{k}, i{k})")
                tests.append(f"e{k} is not {known}")
            tests.append(f"i{k} != {index}" if index else f"i{k}")
        self.emit(f"[{', '.join(parts)}] = {name}.edges")
        self.emit(f"if {' or '.join(tests)}: return None")

    def op(self, node: OpNode, name: str, k: int) -> None:
        """What an op has saved; its plan says of what types and, mostly, sizes."""
        assert node.saved is not None
        operands, results, versions = node.saved
        plan = node.plan
        self.emit(f"s = {name}.metas")
        (first, *more) = [meta[0] for meta in node.metas]
        test = f"s[0][0] != {first!r}"
        for n, shape in enumerate(more, 1):
            test += f" or s[{n}][0] != {shape!r}"
        self.emit(f"if {test}: return None")
        kept = [n for n, x in enumerate(operands) if hasattr(x, "dtype") and n in plan.kept]
        self.emit(f"x, y, v = {name}.saved")
        for n in kept:
            self.take(f"x[{n}]", f"{name}x{n}")
        for n in plan.kept_results:
            if hasattr(results[n], "dtype"):
                self.take(f"y[{n}]", f"{name}y{n}")
        if versions:
            self.emit("for w, c in v:")
            self.emit("  if w.count != c: return None")
        else:
            self.emit("if v: return None")

    def take(self, source: str, name: str) -> None:
        """Lift an array."""
        self.emit(f"{name} = {source}")
        self.arrays.append(name)

    def subgraph(self, node: DiffNode, name: str, k: int) -> None:
        """What a subgraph has captured; its sizes are compared."""
        assert node.captures is not None
        self.scope[f"S{k}"] = _shapes(node.captures)
        self.emit(f"c{k} = {name}.captures")
        self.emit(f"if shapes(c{k}) != S{k}: return None")
        self.emit(f"for w, c in {name}.versions:")
        self.emit("  if w.count != c: return None")
        self.arrays.append(f"*[x for x, _ in c{k} if hasattr(x, 'dtype')]")


def _hooked(node: Node) -> Any:
    """The key of the hooks of a node, and what calls them."""
    found: list[Any] = []
    return hooks_of(node, found), found


def _shapes(captures: Sequence[tuple[Any, Any]]) -> list[Any]:
    """What captures of a subgraph are: shapes and dtypes of arrays, other values themselves."""
    return [
        (x.__class__, x.shape, x.dtype) if hasattr(x, "dtype") else (x.__class__, repr(x))
        for x, _ in captures
    ]


__all__ = ["Gather", "Given", "gather_of"]
