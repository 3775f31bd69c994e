"""Walking dependences of any depth: graphs are deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def postorder(roots: Iterable[Node], needs: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Every node that the roots need, once, each after all that it needs itself; roots included.

    ``needs`` is asked once per node, before any of its answers is yielded. Recursion would take
    a frame per node of a chain; this takes none. The graph must have no cycle.
    """
    seen: set[Node] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        open_ = [(root, iter(needs(root)))]
        while open_:
            node, rest = open_[-1]
            for child in rest:
                if child not in seen:
                    seen.add(child)
                    open_.append((child, iter(needs(child))))
                    break
            else:
                open_.pop()
                yield node
