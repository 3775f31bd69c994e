"""The state of torch around a trace: hooks of the user's, and what a graph that fails on its way has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import _autograd, _functorch


def hooks_apart() -> Any:
    """What is saved for gradients meanwhile reaches no hook of the user's, as those of `torch.utils.checkpoint`.

    Where there is none, none is set in its place: the gradients of `torch.func` allow no hooks at all.
    """
    if _autograd._top_saved_tensors_default_hooks(True) is None:
        return contextlib.nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


@contextlib.contextmanager
def state_kept() -> Iterator[None]:
    """Where an exception ends a run of a graph, torch's state is that before.

    Graphs of Dynamo enter and leave levels of `torch.func` and regions of autocast by calls, of which an exception
    skips the second.
    """
    depth = _functorch.get_dynamic_layer_stack_depth()
    no_hooks = _autograd._saved_tensors_hooks_get_disabled_error_message()
    casts = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
    has_gradients = torch.is_grad_enabled()
    try:
        yield
    except BaseException:
        left = (_functorch.get_interpreter_stack() or [])[depth:]
        if left:
            _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        if any(level.key() == _functorch.TransformType.Jvp for level in left):
            with contextlib.suppress(RuntimeError):  # it has been left already
                torch._C._exit_dual_level(level=0)
        if no_hooks is None:
            _autograd._saved_tensors_hooks_enable()
        torch.set_autocast_enabled("cpu", casts[0])
        torch.set_autocast_dtype("cpu", casts[1])
        torch.set_autocast_cache_enabled(casts[2])
        torch.set_grad_enabled(has_gradients)
        raise
