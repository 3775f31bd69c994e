"""The interface of the package `onnx` to what runs models, for its conformance tests: `onnx.backend`."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.backend.base import Backend, BackendRep

from ...dialect.errors import ProfuseError
from ..plans.plan_options import Options
from .onnx_files import model_function

_MOST_ELEMENTS = 64  # of an input that may be constant


class PreparedModel(BackendRep):
    """A model that can be run.

    Inputs that decide what a graph is, as axes and scales, are given to it as numbers: it then holds for these. That
    is done where the graph cannot be made without them.
    """

    def __init__(self, model: Any, name: str = "model.onnx") -> None:
        self.function = model_function(model, Options(background=False), name, single=False)
        self.fixes_numbers = False

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in order; inputs may be given by name, too."""
        if not self.fixes_numbers:
            try:
                return self.function(*inputs, **kwargs)
            except ProfuseError as error:
                if not getattr(error, "of_contents", False):
                    raise
                self.fixes_numbers = True
        return self.function(*map(_numbers, inputs), **{name: _numbers(x) for name, x in kwargs.items()})


def _numbers(x: Any) -> Any:
    """Small vectors of integers and scales as tuples, integers and truths as Python's."""
    if not isinstance(x, (np.ndarray, np.generic)) or x.size > _MOST_ELEMENTS:
        return x
    if x.ndim == 1 and x.dtype in (np.int64, np.int32, np.float32):
        return tuple(x.tolist())
    return x.item() if x.ndim == 0 and x.dtype in (np.int64, np.int32, np.bool_) else x


class ProfuseBackend(Backend):
    """The backend, for CPUs."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """The model, ready to run; raises what `model_function` raises."""
        return PreparedModel(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for CPUs."""
        return device == "CPU"
