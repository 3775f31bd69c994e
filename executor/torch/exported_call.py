"""One export of a function of torch: its graph, what torch promises of its results, and the guards of its sizes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.source import LocalSource
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP, DimDynamic, ShapeEnv, StatelessSymbolicContext

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.foreign.fx.fx_export import FxExport, export
from ...dialect.importers.foreign.fx.torch_state import hooks_apart, state_kept
from ..functions.function import GraphFunction
from ..settings.fork_lock import hold_over_forks
from .call_arguments import overlap
from .graph_parts import GraphParts
from .result_promises import ResultPromise, check_symbols, evaluated, result_promises, symbols
from .tensor_function import detached

exporting = threading.RLock()
hold_over_forks(exporting)
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
Flat = Callable[..., Sequence[Any]]


@dataclass
class ExportedCall:
    """An export that serves calls whose sizes its guards hold for.

    Attributes:
        parts: runs its graph.
        promises: of its results.
        written: the numbers of the inputs that it writes to, and whether these have gradients then.
        symbols: of sizes, strides and numbers, each with what reads it of the inputs.
        guard: a condition on the inputs' sizes, as text of torch; None = there is none.
        count: the number of inputs, those that a module holds included.
        held: the number of these.
        is_plain: results of calls without gradients are those of the graph, and nothing is written to.
        keeps_all: no result is outside of torch's graph of gradients.
        has_gradients: gradients of what it computes flow to an input.
    """

    parts: GraphParts
    promises: list[ResultPromise]
    written: tuple[tuple[int, bool], ...]
    symbols: dict[Any, Callable[[Sequence[Any]], int]]
    guard: str | None
    count: int
    held: int
    is_plain: bool
    keeps_all: bool
    has_gradients: bool

    def accepts(self, inputs: Sequence[Any]) -> bool:
        """True if the guards hold for inputs of the kinds that it was made for."""
        if self.guard is None:
            return True
        return bool(eval(self.guard, SYMPY_INTERP, {"L": {f"t{k}": x for k, x in enumerate(inputs)}}))

    def __call__(self, held: Sequence[torch.Tensor], inputs: Sequence[Any], differentiates: bool) -> list[Any]:
        """The results of a call, as torch gives them; what it writes to is written.

        Raises ArgumentError, before anything is written, where a tensor that is written to shares memory with another.
        """
        passed = inputs
        if differentiates and not self.has_gradients:  # what requires gradients is plain data to the graph
            differentiates, passed = False, [*map(detached, inputs)]
        if self.is_plain:
            outputs = self.parts(held, passed, differentiates)
            if not differentiates or self.keeps_all:
                return [*outputs]
            return [_kept(x, p) for x, p in zip(outputs, self.promises, strict=True)]
        every = (*held, *inputs)
        if self.written and overlap(every, {number for number, _ in self.written}):
            raise ArgumentError("a tensor that is written to shares memory with another")
        read = [*held, *passed]
        if differentiates:  # the reverse half may need what has been written to
            for number, _ in self.written:
                read[number] = every[number].detach().clone()
        outputs = self.parts(read[: len(held)], read[len(held) :], differentiates)
        own = sum(p.is_own for p in self.promises)
        for (number, requires_grad), value in zip(self.written, outputs[own:], strict=True):
            with torch.set_grad_enabled(differentiates and requires_grad):
                every[number].copy_(value)
        values: dict[Any, int] | None = None
        own_results = iter(outputs)
        results: list[Any] = []
        for promise in self.promises:
            if not promise.is_tensor:
                if isinstance(promise.value, _SYMBOLIC):
                    values = values or self._values(every)
                results.append(evaluated(promise.value, values or {}))
            elif promise.result is not None:
                results.append(None)  # below, as it may be of one that comes later
            elif promise.source is None:
                x = next(own_results)
                if promise.order is not None:
                    x = _in_order(x, promise.order)
                results.append(_kept(x, promise))
            elif promise.view is None:
                results.append(every[promise.source])
            else:
                values = values or self._values(every)
                results.append(_viewed(every[promise.source], promise, values))
        for number, promise in enumerate(self.promises):
            if promise.result is not None:
                values = values or self._values(every)
                base = results[promise.result]
                results[number] = base if promise.is_source else _viewed(base, promise, values)
        return results

    def only_function(self) -> GraphFunction | None:
        """The function that gives the results of calls without gradients, as they are; None = more is to be done."""
        return self.parts.only_function() if self.is_plain else None

    def _values(self, inputs: Sequence[Any]) -> dict[Any, int]:
        return {symbol: read(inputs) for symbol, read in self.symbols.items()}


def _viewed(base: torch.Tensor, promise: ResultPromise, values: dict[Any, int]) -> torch.Tensor:
    """The view of a tensor that is promised."""
    assert promise.view is not None
    sizes, strides, offset = promise.view
    x = base.as_strided(
        [evaluated(d, values) for d in sizes],
        [evaluated(s, values) for s in strides],
        base.storage_offset() + evaluated(offset, values),
    )
    return _kept(x, promise)


def _kept(x: torch.Tensor, promise: ResultPromise) -> torch.Tensor:
    """A result in torch's graph of gradients, or outside of it, as is promised."""
    return x if promise.requires_grad or not x.requires_grad else x.detach()


def _in_order(x: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """A tensor whose axes lie in another order in memory, from the outermost to the innermost."""
    turned = x.permute(*order).contiguous()
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return turned.permute(*inverse)


def exported(
    fn: Flat,
    held: Sequence[torch.Tensor],
    inputs: Sequence[Any],
    *,
    name: str,
    source: str,
    differentiates: bool,
    dynamic: bool,
    options: dict[str, Any],
) -> ExportedCall:
    """Export a function of flat inputs.

    Args:
        fn: gives a flat list; its first arguments are what a module holds.
        held: these.
        inputs: the other inputs: tensors and plain values.
        name: of the function.
        source: what it is, for users.
        differentiates: gradients are taken, by the inputs that require them.
        dynamic: sizes of inputs become symbols.
        options: of `jit`.

    Raises TraceError, and what torch raises, where there is no graph.
    """
    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    every = (*held, *inputs)
    fakes = [
        _fake(mode, x, f"t{k}", dynamic and k >= len(held)) if isinstance(x, torch.Tensor) else x
        for k, x in enumerate(every)
    ]
    return traced(fn, every, fakes, env, len(held), name, source, differentiates, options, mode)


def traced(
    fn: Flat,
    every: Sequence[Any],
    fakes: Sequence[Any],
    env: ShapeEnv | None,
    held: int,
    name: str,
    source: str,
    differentiates: bool,
    options: dict[str, Any],
    mode: FakeTensorMode,
) -> ExportedCall:
    """Export a function whose inputs are there as fake tensors."""
    needs = [differentiates and isinstance(x, torch.Tensor) and x.requires_grad for x in every]
    with mode, _compiling(), hooks_apart():
        promises, after, own_gradients = result_promises(fn, fakes, needs)
    kept = [k for k, p in enumerate(promises) if p.is_own]

    def own(*values: Any) -> list[Any]:
        results = fn(*values)
        return [results[k] for k in kept]

    with _compiling():
        whole: FxExport = export(own, fakes, differentiates)
    for function in sorted(own_gradients - whole.own_gradients):
        raise TraceError(f"{function} is an autograd.Function with a gradient of its own")
    _check_default_dtype(whole.graph)
    if differentiates and any(map(_has_sparse_gradient, whole.graph.graph.nodes)):
        raise TraceError("a gradient is a sparse tensor")
    if any(needs[k] for k in whole.written):
        raise TraceError("a tensor that requires gradients is written to, and the graph may need what it was before")
    tensors = [x for x in fakes if isinstance(x, torch.Tensor)]
    guard = None
    if env is not None and tensors:
        names = [f"t{k}" for k, x in enumerate(fakes) if isinstance(x, torch.Tensor)]
        sources = [LocalSource(n) for n in names]
        guard = " and ".join(env.produce_guards(tensors, sources, ignore_static=False)) or None
    readers = symbols(fakes)
    check_symbols(promises, readers)
    reaches = [p.reaches for p in promises if p.is_own] + [after[k] or frozenset() for k in whole.written]
    parts = GraphParts(whole.graph, every[:held], name, source, options, reaches)
    written = tuple([(k, after[k] is not None) for k in whole.written])
    is_plain = not written and all(p.is_own and p.order is None for p in promises)
    keeps_all = all(p.requires_grad for p in promises)
    has_gradients = any(reaches)
    return ExportedCall(parts, promises, written, readers, guard, len(every), held, is_plain, keeps_all, has_gradients)


def _check_default_dtype(graph: torch.fx.GraphModule) -> None:
    """Raise TraceError where torch's default dtype decides of a result and is not float32, as tables have it."""
    if torch.get_default_dtype() == torch.float32:
        return
    for node in graph.graph.nodes:
        result = node.meta.get("val")
        if node.op != "call_function" or not isinstance(result, torch.Tensor) or node.kwargs.get("dtype") is not None:
            continue
        sources = [x.meta.get("val") for x in node.all_input_nodes]
        if _is_inexact(result) and not any(_is_inexact(x) for x in sources if isinstance(x, torch.Tensor)):
            raise TraceError(f"{node.target} gives numbers of torch's default dtype, which is not float32")


# Lookups, each with the place of the flag that asks for gradients of some rows alone.
_LOOKUPS = {
    torch.ops.aten.embedding.default: 4,
    torch.ops.aten._embedding_bag.default: 5,
    torch.ops.aten._embedding_bag_forward_only.default: 5,
}


def _has_sparse_gradient(node: torch.fx.Node) -> bool:
    """True for lookups whose gradients are sparse tensors."""
    place = _LOOKUPS.get(node.target)
    return place is not None and True in (*node.args[place : place + 1], node.kwargs.get("sparse"))


def _is_inexact(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


@contextmanager
def _compiling() -> Iterator[None]:
    """`torch.compiler.is_compiling` is true, so that models leave out what no graph holds, as checks of contents.

    It is true in all threads: others ask again when they have `exporting`. What fails is run by torch itself, whose
    error the user sees, so none is logged before.
    """
    with exporting:
        before, was_quiet = torch.compiler._is_compiling_flag, fake_tensor.log.disabled
        torch.compiler._is_compiling_flag = fake_tensor.log.disabled = True
        try:
            with state_kept():
                yield
        finally:
            torch.compiler._is_compiling_flag, fake_tensor.log.disabled = before, was_quiet


def _fake(mode: FakeTensorMode, x: torch.Tensor, name: str, dynamic: bool) -> torch.Tensor:
    """A fake tensor of the sizes and strides of another, which shares nothing with it."""
    like = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype)
    kind = DimDynamic.DYNAMIC if dynamic else DimDynamic.STATIC
    context = StatelessSymbolicContext(dynamic_sizes=[kind] * x.dim())
    return mode.from_tensor(like, source=LocalSource(name), symbolic_context=context)
