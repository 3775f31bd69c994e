"""What torch promises of a function's results: which are inputs or views of these, how they lie, what has a gradient.

One run on fake tensors, as torch runs the function itself, tells.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.autograd.function import BackwardCFunction

from ...dialect.dataclass import dataclass
from ...dialect.errors import TraceError
from ...dialect.importers.foreign.fx.memory_layout import hint, is_whole

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_IMMUTABLE = (
    bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
    *_SYMBOLIC,
)  # fmt: skip
_MOST_COMPARED = 1 << 24  # elements of memory that results share
Sizes = tuple[Any, ...]  # ints, and expressions of torch's symbols for sizes


@dataclass(frozen=True, slots=True)
class ResultPromise:
    """One result.

    Attributes:
        source: the number of the input that it is, or is a view of; None = it has memory of its own.
        is_source: it is that input, or that result, itself.
        view: its sizes, strides and offset, where it is a view of an input or of another result.
        result: the number of the other result that it is, or is a view of; None = it is of none.
        order: its axes from the outermost in memory to the innermost, where that is not their order; else None.
        is_expanded: some of its elements share memory.
        requires_grad: it has a gradient.
        value: what it is, where it is no tensor.
        reaches: the numbers of the inputs that its gradient flows to, which others have none of, and not one of zeros.
    """

    source: int | None = None
    is_source: bool = False
    result: int | None = None
    view: tuple[Sizes, Sizes, Any] | None = None
    order: tuple[int, ...] | None = None
    requires_grad: bool = False
    value: Any = None
    is_tensor: bool = True
    reaches: frozenset[int] = frozenset()

    @property
    def is_own(self) -> bool:
        """True if it is a tensor with memory of its own."""
        return self.is_tensor and self.source is None and self.result is None


def result_promises(
    fn: Callable[..., Sequence[Any]], inputs: Sequence[Any], needs_grad: Sequence[bool]
) -> tuple[list[ResultPromise], list[frozenset[int] | None], frozenset[str]]:
    """The promises of a function of flat inputs, and which inputs require gradients when it has run.

    Of these it is told which inputs their gradients flow to; None = an input requires none. The third are the names of
    functions of the user's that differentiate a part of it.

    Args:
        fn: the function.
        inputs: fake tensors of one mode, and plain values.
        needs_grad: which of them require gradients.

    Raises TraceError for functions that give an argument another shape, and for results that no promise holds.
    """
    fresh = [
        torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
        if isinstance(x, torch.Tensor) and (x.dim() or needs)  # Dynamo has numbers as tensors that know theirs
        else x
        for x, needs in zip(inputs, needs_grad, strict=True)
    ]
    layouts = [(tuple(x.size()), tuple(x.stride())) if isinstance(x, torch.Tensor) else None for x in fresh]
    places = {x.untyped_storage()._cdata: k for k, x in enumerate(fresh) if isinstance(x, torch.Tensor)}
    leaves = [x.requires_grad_() if needs else x for x, needs in zip(fresh, needs_grad, strict=True)]
    # What is written to in place may be no leaf that requires gradients: torch's own rule, seen on the leaf.
    with torch.set_grad_enabled(any(needs_grad)):
        results = fn(*leaves)
    own = _own_gradients([x for x in results if isinstance(x, torch.Tensor)]) if any(needs_grad) else frozenset()
    numbers = {id(x): k for k, x in enumerate(leaves) if needs_grad[k]}
    # A leaf that requires gradients is only written to where none are noted.
    after = [
        _reached(x, numbers) if isinstance(x, torch.Tensor) and x.requires_grad and not needs else None
        for x, needs in zip(leaves, needs_grad, strict=True)
    ]
    for x, layout in zip(leaves, layouts, strict=True):
        if layout is not None and layout != (tuple(x.size()), tuple(x.stride())):
            raise TraceError("an argument is given another shape in place, which a graph does not")
    owners = _owners(results, places)
    promises = [
        replace(promise, reaches=_reached(results[k], numbers)) if promise.is_own else promise
        for k in range(len(results))
        for promise in [_promise(k, results, leaves, places, owners)]
    ]
    if own and any(p.requires_grad and p.is_tensor and not p.is_own for p in promises):
        # The gradient of such a result is that of the tensor whose memory it has, and of nothing in between.
        raise TraceError(f"{min(own)} is an autograd.Function, beside a result that shares memory with another tensor")
    return promises, after, own


def _owners(results: Sequence[Any], places: dict[int, int]) -> dict[int, int]:
    """The results that share memory with another result, each with the number of the one that has all of it."""
    groups: dict[int, list[int]] = {}
    for k, x in enumerate(results):
        if isinstance(x, torch.Tensor) and x.layout == torch.strided and x.untyped_storage()._cdata not in places:
            groups.setdefault(x.untyped_storage()._cdata, []).append(k)
    owners: dict[int, int] = {}
    for group in groups.values():
        firsts = [k for place, k in enumerate(group) if not any(results[k] is results[j] for j in group[:place])]
        whole = next((k for k in firsts if len(firsts) == 1 or is_whole(results[k])), None)
        if whole is None and _overlaps([results[k] for k in firsts]):
            raise TraceError("two results share elements in memory, and none of them is all of it")
        for k in group:
            first = next(j for j in firsts if results[j] is results[k])
            owner = first if whole is None or first == whole else whole
            if owner != k:
                owners[k] = owner
    return owners


def _overlaps(results: Sequence[torch.Tensor]) -> bool:
    """True if some elements of two tensors are, or may be, the same memory."""
    size = hint(results[0].untyped_storage().nbytes())
    if size > _MOST_COMPARED:
        return True
    is_taken = np.zeros(size, bool)
    for x in results:
        steps = [hint(stride) * x.element_size() for stride in x.stride()]
        start = hint(x.storage_offset()) * x.element_size()
        shape = (*map(hint, x.size()), x.element_size())
        if 0 in shape:
            continue
        part = np.lib.stride_tricks.as_strided(is_taken[start:], shape, (*steps, 1))
        if part.any():
            return True
        part[...] = True
    return False


def _promise(
    number: int, results: Sequence[Any], inputs: Sequence[Any], places: dict[int, int], owners: dict[int, int]
) -> ResultPromise:
    x = results[number]
    if not isinstance(x, torch.Tensor):
        if type(x) not in _IMMUTABLE:
            raise TraceError(f"a result is a {type(x).__name__}, which each call makes anew")
        return ResultPromise(value=x, is_tensor=False)
    if x.layout != torch.strided or x.device.type != "cpu":
        raise TraceError(f"a result of layout {x.layout} on {x.device} is not supported")
    source = places.get(x.untyped_storage()._cdata)
    owner = owners.get(number)
    if source is not None or owner is not None:
        base = results[owner] if source is None and owner is not None else inputs[source or 0]
        is_source = x is base
        if x.dtype != base.dtype or x.is_conj() != base.is_conj() or x.is_neg() != base.is_neg():
            raise TraceError("a result shares memory with another tensor, and reads it as other numbers")
        view = None if is_source else (tuple(x.size()), tuple(x.stride()), x.storage_offset())
        return ResultPromise(source, is_source, owner, view, requires_grad=x.requires_grad)
    if x.is_conj() or x.is_neg():
        raise TraceError("a result has a pending conjugation or sign")
    return ResultPromise(order=_order(x), requires_grad=x.requires_grad)


def _order(x: torch.Tensor) -> tuple[int, ...] | None:
    strides = [hint(s) for s in x.stride()]
    sizes = [hint(d) for d in x.size()]
    axes = [k for k in range(x.dim()) if sizes[k] != 1]
    order = sorted(axes, key=lambda k: -strides[k])
    if order == axes or any(strides[k] == 0 for k in axes):
        return None
    result = list(range(x.dim()))
    for place, axis in zip(axes, order, strict=True):
        result[place] = axis
    return tuple(result)


def _own_gradients(results: Sequence[torch.Tensor]) -> frozenset[str]:
    """The names of the functions of the user's that differentiate a part of the graph."""
    names = set()
    for node in _nodes(results):
        name = type(node).__name__
        # Those of operators of `torch.library` stay operators of the graph, which torch runs with their gradients.
        if isinstance(node, BackwardCFunction) and not name.startswith("GeneratedBackwardFor_"):
            names.add(name.removesuffix("Backward"))
    return frozenset(names)


def _reached(result: torch.Tensor, numbers: Mapping[int, int]) -> frozenset[int]:
    """The numbers of the leaves, by their identities, that the gradient of a result flows to."""
    leaves = (getattr(node, "variable", None) for node in _nodes([result]))
    return frozenset({numbers[id(x)] for x in leaves if id(x) in numbers})


def _nodes(results: Sequence[torch.Tensor]) -> set[Any]:
    """The nodes of torch's graph behind tensors."""
    seen: set[Any] = set()
    stack = [x.grad_fn for x in results if x.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [following for following, _ in node.next_functions if following is not None]
    return seen


def evaluated(size: Any, values: dict[Any, int]) -> Any:
    """A size, or a number made of sizes, by the values of torch's symbols."""
    if not isinstance(size, _SYMBOLIC):
        return size
    return size.node.pytype(size.node.expr.xreplace(values))


def symbols(inputs: Sequence[Any]) -> dict[Any, Callable[[Sequence[Any]], int]]:
    """The symbols of sizes, strides and numbers: each with what reads it of the inputs."""
    readers: dict[Any, Callable[[Sequence[Any]], int]] = {}
    for k, x in enumerate(inputs):
        if isinstance(x, torch.Tensor):
            for axis, (size, stride) in enumerate(zip(x.size(), x.stride(), strict=True)):
                _add(readers, size, functools.partial(_size, k, axis))
                _add(readers, stride, functools.partial(_stride, k, axis))
        else:
            _add(readers, x, operator.itemgetter(k))
    return readers


def _size(number: int, axis: int, every: Sequence[Any]) -> int:
    return every[number].shape[axis]


def _stride(number: int, axis: int, every: Sequence[Any]) -> int:
    return every[number].stride(axis)


def _add(readers: dict[Any, Callable[[Sequence[Any]], int]], size: Any, reader: Callable[[Sequence[Any]], int]) -> None:
    if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
        readers.setdefault(size.node.expr, reader)


def check_symbols(promises: Sequence[ResultPromise], known: Collection[Any]) -> None:
    """Raise TraceError where a promise has a number that nothing tells of a call's inputs."""
    for promise in promises:
        numbers = [promise.value]
        if promise.view is not None:
            sizes, strides, offset = promise.view
            numbers += [*sizes, *strides, offset]
        for number in numbers:
            if isinstance(number, _SYMBOLIC) and not number.node.expr.free_symbols.issubset(known):
                raise TraceError("the shape of a result is not that of any input, or made of these")
