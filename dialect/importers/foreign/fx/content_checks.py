"""Checks of contents in a function of torch, which have no result: a graph keeps them with one that it has.

Torch keeps them apart as effects. Here the first result of a graph is one of which they are demanded.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode

_library = torch.library.Library("profuse", "FRAGMENT")
_library.define("demanded(Tensor x, Tensor[] holds, str reason) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("demanded", lambda x, *_: x.clone(), "CompositeExplicitAutograd")
_library.impl("demanded", lambda x, *_: torch.empty_like(x), "Meta")
_aten = torch.ops.aten
_ASSERTIONS = (_aten._assert_async.default, _aten._assert_async.msg)


class CheckedFunctionalMode(FunctionalTensorMode):
    """Takes writes out of what is traced, and collects checks of contents, each a tensor and the words of its error."""

    def __init__(self) -> None:
        super().__init__()
        self._zeros: list[tuple[torch.Tensor, str]] = []
        self._truths: list[tuple[torch.Tensor, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func is _aten._linalg_check_errors.default:
            self._zeros.append((args[0], f"{args[1]}: LAPACK has found an error in a matrix"))
            return None
        if func in _ASSERTIONS:
            self._truths.append((args[0], str(args[1]) if len(args) > 1 else "an assertion does not hold"))
            return None
        return super().__torch_dispatch__(func, types, args, kwargs)

    def demanded(self, results: list[Any]) -> list[Any]:
        """The results, the first tensor of which is what it is only where all checks hold."""
        holds = [x == 0 for x, _ in self._zeros] + [x != 0 for x, _ in self._truths]
        if not holds:
            return results
        place = next((k for k, x in enumerate(results) if isinstance(x, torch.Tensor)), None)
        if place is None:
            raise RuntimeError("contents are checked of a function that has no result to check them with")
        reason = "; ".join(dict.fromkeys(words for _, words in (*self._zeros, *self._truths)))
        checked = torch.ops.profuse.demanded.default(results[place], holds, reason)
        return [checked if k == place else x for k, x in enumerate(results)]
