"""Functions of torch traced to graphs of ATen that are free of writes.

The function is run once on fake tensors, whose sizes may be symbols. What it writes to inputs become
further results. Composed operators are taken apart by torch's core decompositions, except for those that the table
has whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from ....dataclass import dataclass
from ..aten.all_aten import ATEN
from .content_checks import CheckedFunctionalMode
from .custom_gradients import noting
from .gradient_stops import GradientStops
from .torch_state import hooks_apart


@dataclass(frozen=True)
class FxExport:
    """A traced function.

    Attributes:
        graph: its module; the placeholders are the inputs, in order.
        count: how many of its outputs are results of the function; the others are what it leaves in inputs.
        written: the numbers of these inputs.
        own_gradients: the names of functions with gradients of their own, which the graph has.
    """

    graph: torch.fx.GraphModule
    count: int
    written: tuple[int, ...]
    own_gradients: frozenset[str] = frozenset()


def export(fn: Callable[..., Sequence[Any]], inputs: Sequence[Any], differentiates: bool) -> FxExport:
    """Trace a function of flat inputs, which returns a flat list.

    Args:
        fn: the function.
        inputs: fake tensors of one mode, ints and symbolic ints.
        differentiates: the graph is to be differentiated, so it notes where the function stops gradients.

    Raises what the function raises, and what torch raises where a graph cannot hold it, as for control flow on data.
    """
    count = 0
    written: tuple[int, ...] = ()
    own_gradients: set[str] = set()
    has_gradients = torch.is_grad_enabled()

    def functional(*values: Any) -> list[Any]:
        nonlocal count, written
        functionalize = torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
        with torch._C._ExcludeDispatchKeyGuard(functionalize), CheckedFunctionalMode() as mode:
            wrapped = [FunctionalTensor.to_functional(x) if isinstance(x, torch.Tensor) else x for x in values]
            with (
                torch.set_grad_enabled(has_gradients),
                GradientStops(differentiates) as stops,
                noting(stops if differentiates else None) as names,
            ):
                results = [_plain(x) for x in mode.demanded(list(fn(*wrapped)))]
            own_gradients.update(names)
            count = len(results)
            is_written = [isinstance(x, FunctionalTensor) and _has_new_contents(x) for x in wrapped]
            written = tuple(k for k, is_new in enumerate(is_written) if is_new)
            return results + [_plain(wrapped[k]) for k in written]

    trace = functools.partial(
        make_fx,
        decomposition_table=_decompositions(),
        tracing_mode="symbolic",
        _allow_non_fake_inputs=True,
        record_stack_traces=True,
    )
    with torch.no_grad(), preserve_node_meta(), hooks_apart():
        graph = trace(functional)(*inputs)
        if any(map(_is_mutable, graph.graph.nodes)):  # some decompositions write
            count_before, written_before = count, written
            graph = trace(functional_again(graph))(*inputs)
            count, written = count_before, written_before
    graph.graph.eliminate_dead_code()
    return FxExport(graph, count, written, frozenset(own_gradients))


def functional_again(graph: Callable[..., Any]) -> Callable[..., Any]:
    """A traced function with its writes, which reach no input, taken out."""

    def functional(*values: Any) -> Any:
        functionalize = torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
        with torch._C._ExcludeDispatchKeyGuard(functionalize), FunctionalTensorMode():
            wrapped = [FunctionalTensor.to_functional(x) if isinstance(x, torch.Tensor) else x for x in values]
            return [_plain(x) for x in graph(*wrapped)]

    return functional


def _plain(x: Any) -> Any:
    if not isinstance(x, FunctionalTensor):
        return x
    torch._sync(x)
    return torch._from_functional_tensor(x.elem)


def _has_new_contents(x: FunctionalTensor) -> bool:
    torch._sync(x)
    return torch._functionalize_has_data_mutation(x.elem)


def _is_mutable(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


@functools.cache
def _decompositions() -> dict[Any, Callable]:
    table = core_aten_decompositions()
    return {op: rule for op, rule in table.items() if not is_whole(op, ATEN)}


def is_whole(op: Any, names: Collection[str]) -> bool:
    """True if the table has an operator itself, so that it is not taken apart."""
    return isinstance(op, torch._ops.OpOverload) and op.name().removeprefix("aten::") in names
