"""Exporting calls of a model: the function of flat tensors that torch traces, and what sizes its export holds for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ...dialect.errors import TraceError
from .call_arguments import containers, flat
from .exported_call import ExportedCall, exported
from .module_state import ModuleState
from .size_text import sizes_as_text
from .torch_runs import FixedExports, first_line

_ASKS_FOR_NUMBERS = "its code asks whether something is an int or a float, which a symbol for a size is not"
Entry = tuple[ExportedCall, Callable[[Sequence[Any]], Any]]  # an export, and what makes its results of a flat list
FIRST = operator.itemgetter(0)  # does so where the result is one leaf


class ModelExport:
    """Exports calls of one model.

    Args:
        model: what is called.
        state: of its module.
        fixed: counts exports for one combination of sizes where these were to be symbols.
        name: of the model.
        dynamic: sizes are to be symbols.
        options: of `jit`.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        state: ModuleState,
        fixed: FixedExports,
        name: str,
        dynamic: bool,
        options: dict[str, Any],
    ) -> None:
        self._model, self._state, self._fixed = model, state, fixed
        self._name, self._dynamic, self._options = name, dynamic, options

    def of(self, state: ModuleState) -> ModelExport:
        """The same for a module that holds other things by now."""
        return ModelExport(self._model, state, self._fixed, self._name, self._dynamic, self._options)

    def __call__(self, leaves: Sequence[Any], structure: Any, differentiates: bool, *, asks_for_numbers: bool) -> Entry:
        """The export of a call.

        Args:
            leaves: its arguments as a flat list.
            structure: makes arguments of such a list.
            differentiates: gradients are taken.
            asks_for_numbers: the model's code asks whether something is a number.

        Raises TraceError, and whatever torch raises, where there is none.
        """
        is_dynamic = self._dynamic and not asks_for_numbers
        why = _ASKS_FOR_NUMBERS if self._dynamic and not is_dynamic else ""
        try:
            entry = self._exported(leaves, structure, differentiates, is_dynamic)
        except Exception as error:  # of many kinds; one that is the model's own comes again
            if not is_dynamic:
                raise
            entry, why = self._exported(leaves, structure, differentiates, False), first_line(error)
        if why:
            self._fixed.note(why)
        return entry

    def _exported(self, leaves: Sequence[Any], structure: Any, differentiates: bool, dynamic: bool) -> Entry:
        out: list[Any] = []
        _, tree = flat(*structure(leaves))
        held = len(self._state.tensors)
        is_tensor = [isinstance(x, torch.Tensor) for x in leaves]

        def called(*values: Any) -> list[Any]:
            tensors = iter(values[held:])
            passed = [next(tensors) if t else x for t, x in zip(is_tensor, leaves, strict=True)]
            args, kwargs = structure(passed)
            with self._state.replaced(values[:held]) as module, sizes_as_text():
                result = (self._model if module is None else module)(*args, **kwargs)
            left, tree_left = flat(args, kwargs)
            if (
                tree_left != tree
                or len(left) != len(passed)
                or any(a is not b for a, b in zip(left, passed, strict=True))
            ):
                raise TraceError("the model changes a list or a dict among its arguments, which a graph does not")
            if not containers((args, kwargs)).isdisjoint(containers(result)):
                raise TraceError("the model returns a list or a dict that is an argument")
            results, out_tree = _pytree.tree_flatten(result)
            out[:] = [out_tree]
            return results

        with _random_kept():
            call = exported(
                called,
                self._state.tensors,
                [x for x in leaves if isinstance(x, torch.Tensor)],
                name=self._name,
                source=f"the torch model {self._name}",
                differentiates=differentiates,
                dynamic=dynamic,
                options=self._options,
            )
        out_tree = out[0]
        if out_tree.is_leaf():
            return call, FIRST
        return call, lambda results: _pytree.tree_unflatten(results, out_tree)


class _random_kept:
    """torch's random numbers are as before, whatever a trace draws."""

    def __enter__(self) -> None:
        self._state = torch.get_rng_state()

    def __exit__(self, *_: object) -> None:
        torch.set_rng_state(self._state)
