"""The source of a function's graphs: the protocol of NumPy functions, ``.mlir`` files, saved files."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from ...dialect.importers.numpy.capture.trace import Trace
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ...dialect.trees.pytree import TreeDef
    from ..plans.plan_options import Options
    from .function import GraphFunction
    from .graphs import Graphs
    from .saved.file import StoredGraph
    from .variants import Key

Leaves = tuple[list, "TreeDef"]


class GraphSource(Protocol):
    """Gives the graphs of a function.

    Attributes:
        fn: has the name, signature and text of the function; Python runs it where ``has_code``.
        has_code: whether Python can run calls: there is code, which needs no trace.
        raises: calls without a graph raise errors, whatever is set.
        shares_memory: results share memory with arguments and each other as those of the function do, also
            where Python may not run calls.
        stands_for_python: what Python code would do besides computing matters: report
            floating-point errors, hide values from the tape.
    """

    fn: Callable[..., Any]
    has_code: bool = False
    raises: bool = True
    shares_memory: bool = False
    stands_for_python: bool = True

    def graph(self, graphs: Graphs, key: Key, leaves: list, args: tuple, kwargs: dict[str, Any], home: str) -> Trace:
        """The graph of a call; raises ProfuseError, or `NoGraph`, if there is none."""
        ...

    def flatten(self, graphs: Graphs, args: tuple, kwargs: dict[str, Any]) -> Leaves:
        """Leaves and structure of a call; raises `NoGraph` or ArgumentError for what no graph takes."""
        ...

    def inline(self, graphs: Graphs, leaves: list, tree: TreeDef, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The results of a call within another function's trace, which records it."""
        ...

    def executor(self, home: str, options: Options) -> AnyExecutor | None:
        """The executor that runs all graphs on a device; None = each graph has an executor of its own."""
        return None

    def executors(self) -> list[AnyExecutor]:
        """The executors that are there without a call."""
        return []

    def stored(self, graphs: Graphs) -> list[StoredGraph]:
        """The graphs for a file."""
        ...

    def by_name(self, function: GraphFunction) -> FunctionType | None:
        """A copy of the Python function that can be imported by its name; None = there is none."""
        return None

    def reduced(self, function: GraphFunction, protocol: SupportsIndex) -> str | tuple:
        """The function for pickles and copies, without profiles and plans."""
        ...
