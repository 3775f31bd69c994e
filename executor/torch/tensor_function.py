"""Imported graphs of torch as functions of tensors: forward alone, and with gradients in torch's own graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch

from ...dialect.autodiff.pullback import Forward, backward, pulled_through
from ...dialect.importers.foreign.foreign_graph import ForeignGraph
from ...dialect.importers.foreign.fx.fx_sizes import FX
from ...dialect.importers.foreign.imported_function import ImportedFunction
from ...dialect.importers.foreign.torch_values import shared_array, tensor_of
from ..functions.function import GraphFunction
from ..functions.jit import jit
from ..settings.dynamo import tell_dynamo, unseen_by_dynamo
from ..settings.knobs import knobs

_Tensor = torch.Tensor
_transforms, _grad_mode = torch._C._functorch.peek_interpreter_stack, torch.is_grad_enabled


class TensorFunction:
    """A function of flat tensors, which gives a tuple of tensors, in torch's graph of gradients.

    Args:
        fn: a function of arrays, each argument and each leaf of the result one array.
        name: in messages and in IR.
        options: of `jit`.
        reaches: of each result, the numbers of the arguments that its gradient flows to; None = that may be all. The
            others have no gradient, which is not the same to an optimiser as one of zeros.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        options: dict[str, Any],
        reaches: Sequence[frozenset[int]] | None = None,
    ) -> None:
        tell_dynamo()
        self.fn, self.name, self.options, self._reaches = fn, name, options, reaches
        self._forward: dict[tuple[bool, ...], tuple[tuple[int, ...], GraphFunction]] = {}
        self._reverse: dict[tuple, TensorFunction] = {}

    def apply(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The results for tensors, with nodes in torch's graph."""
        return (_apply if _transforms() is None else DifferentiableCall.apply)(self, *tensors)

    def forward(self, needs: tuple[bool, ...]) -> tuple[tuple[int, ...], GraphFunction]:
        """The forward half, with what the pullback by those arguments needs that have gradients.

        Args:
            needs: of this function, which has none, and of each argument: whether it has gradients.

        Returns the numbers of these arguments, and the half.
        """
        half = self._forward.get(needs)
        if half is None:
            wrt = tuple([k for k, need in enumerate(needs[1:]) if need and self.reached(k)])
            forward = Forward(self.fn, wrt, knobs.activation_budget, borrows=True)
            function = jit(forward, name=f"{self.name}_forward", unsupported="raise", **self.options)
            half = self._forward[needs] = wrt, function
        return half

    def reached(self, argument: int, results: Sequence[int] | None = None) -> bool:
        """True if gradients of some results flow to an argument; None = of all results."""
        if self._reaches is None:
            return True
        reaches = self._reaches if results is None else [self._reaches[k] for k in results]
        return any(argument in each for each in reaches)

    @functools.cached_property
    def pull(self) -> GraphFunction:
        """The reverse half."""
        return jit(backward, name=f"{self.name}_backward", unsupported="raise", **self.options)

    def reverse(self, count: int, wrt: tuple[int, ...], outputs: tuple[int, ...], results: int) -> TensorFunction:
        """The gradients as a function of the arguments and of the gradients of results, to be differentiated again.

        Args:
            count: the number of arguments.
            wrt: the arguments that have gradients.
            outputs: the results whose gradients are given.
            results: the number of results.
        """
        key = count, wrt, outputs, results
        if key not in self._reverse:
            self._reverse[key] = TensorFunction(_Pulled(self.fn, *key), f"{self.name}_reverse", self.options)
        return self._reverse[key]

    def functions(self) -> list[GraphFunction]:
        """The jitted functions that there are."""
        own = [function for _, function in self._forward.values()] + ([self.pull] if "pull" in self.__dict__ else [])
        return own + [f for reverse in self._reverse.values() for f in reverse.functions()]


class _Pulled:
    """The gradients of a function, as a function of its arguments and of the gradients of its results."""

    only_traced: ClassVar[bool] = True

    def __init__(
        self, fn: Callable[..., Any], count: int, wrt: tuple[int, ...], outputs: tuple[int, ...], results: int
    ) -> None:
        self.fn, self.count, self.wrt, self.outputs, self.results = fn, count, wrt, outputs, results
        self.__name__ = self.__qualname__ = "gradients"

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        by_output = dict(zip(self.outputs, args[self.count :], strict=True))
        gradients = pulled_through(self.fn, args[: self.count], [by_output.get(k) for k in range(self.results)])
        return tuple(gradients[k] for k in self.wrt)


class DifferentiableCall(torch.autograd.Function):
    """One call of a `TensorFunction` in torch's graph."""

    @staticmethod
    def forward(ctx: Any, function: TensorFunction, *tensors: torch.Tensor) -> Any:
        # torch has switched gradient mode off: tensors that require gradients are plain data, here and below.
        wrt, half = function.forward(ctx.needs_input_grad)
        result, saved, token = half(*tensors)
        results = tensors_of(result)
        versions = [x._version if isinstance(x, _Tensor) else 0 for x in tensors]
        likes = [(x.shape, x.dtype) for x in results] if len(results) > 1 else ()
        # Of these the shape alone is read, so that torch is not to look for writes.
        shaped = [detached(results[~k] if k < 0 else tensors[k]) for k in token.shaped]
        ctx.call = function, token, wrt, [*saved, *shaped] if shaped else saved, tensors, versions, likes
        ctx.save_for_backward(*[results[~k] if k < 0 else tensors[k] for k in token.borrowed])
        if len(token.floats) < len(results):
            ctx.mark_non_differentiable(*[x for k, x in enumerate(results) if k not in token.floats])
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    @unseen_by_dynamo  # where a function that Dynamo runs calls for gradients, it would trace this package
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        defined = tuple([k for k, g in enumerate(gradients) if g is not None])
        function, token, wrt, saved, inputs, versions, likes = ctx.call
        by_input: list[Any] = [None] * (len(inputs) + 1)  # the first is that of the function
        if not defined:
            return tuple(by_input)
        if _grad_mode():
            for x, version in zip(inputs, versions, strict=True):
                if isinstance(x, _Tensor) and x._version != version:
                    raise RuntimeError(
                        "a tensor that is needed for a gradient of a gradient has been modified by an inplace operation"
                    )
            reverse = function.reverse(len(inputs), wrt, defined, len(gradients))
            results = reverse.apply((*inputs, *(gradients[k] for k in defined)))
        else:
            pairs = [
                torch.zeros(likes[k][0], dtype=likes[k][1]) if gradients[k] is None else gradients[k]
                for k in token.floats
            ]
            results = function.pull(token, [*saved, *ctx.saved_tensors], pairs)
        for k, x in zip(wrt, results, strict=True):
            if len(defined) < len(gradients) and not function.reached(k, defined):
                continue
            by_input[k + 1] = x if type(x) is _Tensor and x.is_contiguous() else as_tensor(x)
        return tuple(by_input)


# torch's own `apply` in Python takes a look at each argument for transforms, of which there are none here.
_apply = super(torch.autograd.Function, DifferentiableCall).apply


def as_tensor(x: Any) -> torch.Tensor:
    """A result of a jitted function as a tensor in C order, which NumPy's functions do not always give op by op."""
    tensor = x if isinstance(x, _Tensor) else tensor_of(x)
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def tensors_of(results: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The results of a jitted function as tensors, see `as_tensor`."""
    return tuple([x if type(x) is _Tensor and x.is_contiguous() else as_tensor(x) for x in results])


def detached(x: Any) -> Any:
    """A tensor without its place in torch's graph; a number as it is."""
    return x.detach() if isinstance(x, torch.Tensor) else x


class ImportedTensors:
    """An imported graph as a function of tensors, of which the first are held by a module.

    Args:
        graph: the graph.
        held: the tensors of the module that are its first inputs.
        options: of `jit`.
        reaches: as of `TensorFunction`.

    Attributes:
        plain: the function of calls that nothing is differentiated of, which has captured what the module holds; None
            before the first one.

    Raises TraceError where operators of the graph are not supported.
    """

    def __init__(
        self,
        graph: ForeignGraph,
        held: Sequence[torch.Tensor],
        options: dict[str, Any],
        reaches: Sequence[frozenset[int]] | None = None,
    ) -> None:
        self._graph, self._held, self._options = graph, held, options
        self.function = TensorFunction(ImportedFunction(graph, FX, single=False), graph.name, options, reaches)
        self.plain: GraphFunction | None = None

    def __call__(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The results of a call that nothing is differentiated of, for the inputs behind the held ones."""
        if self.plain is None:
            self.plain = self._bound()
        return tensors_of(self.plain(*tensors))

    def _bound(self) -> GraphFunction:
        """The function that has captured what the module holds."""
        bound = self._graph.with_constants([*map(shared_array, self._held)])
        return jit(ImportedFunction(bound, FX, single=False), unsupported="raise", **self._options)

    def functions(self) -> list[GraphFunction]:
        """The jitted functions that there are."""
        return ([] if self.plain is None else [self.plain]) + self.function.functions()
