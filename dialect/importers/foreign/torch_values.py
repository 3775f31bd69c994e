"""Values of torch as those of NumPy: dtypes, arrays that share memory with tensors, places in the user's model.

torch is not imported before one of its objects is there.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from ...errors import Loc, TraceError

# The dtypes of torch by the numbers that they have in TorchScript; those without an array are None.
_NAMES: tuple[str | None, ...] = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *(None, "complex64", "complex128", "bool", None, None, None, "bfloat16"),
)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {name: _BFLOAT16 if name == "bfloat16" else np.dtype(name) for name in _NAMES if name is not None}
_CODES = {DTYPES[name]: code for code, name in enumerate(_NAMES) if name is not None}
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = re.compile(r"(^|/)(site-packages/|dist-packages/)?torch/(nn|functional|_|jit|autograd|utils)")


def numpy_dtype(dtype: Any) -> np.dtype:
    """The dtype of arrays that hold what tensors hold of a `torch.dtype`, or of one of TorchScript's numbers.

    Raises TraceError where there is none.
    """
    if type(dtype) is int:
        name = _NAMES[dtype] if 0 <= dtype < len(_NAMES) else None
    else:
        name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise TraceError(f"tensors of {dtype} are not supported", hint="run this part of the model in torch")
    return DTYPES[name]


def code_of(dtype: np.dtype) -> int:
    """The number that TorchScript has for a dtype; raises TraceError where it has none."""
    code = _CODES.get(dtype)
    if code is None:
        raise TraceError(f"torch has no tensors of {dtype}")
    return code


def shared_array(tensor: Any) -> np.ndarray:
    """A dense CPU tensor as an array of its memory, without its gradient.

    Raises TraceError for others.
    """
    dtype = numpy_dtype(tensor.dtype)
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided":
        raise TraceError(f"a tensor of layout {tensor.layout} on {tensor.device} is no dense CPU tensor")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if dtype != _BFLOAT16:
        return plain.numpy()
    import torch

    return plain.view(torch.int16).numpy().view(dtype)  # torch and NumPy do not exchange bfloat16


def tensor_of(array: Any) -> Any:
    """An array, or a number of NumPy's, as a tensor, which shares memory that may be written."""
    import torch

    array = np.asarray(array)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def users_place(trace: str | None) -> Loc | None:
    """The innermost place outside of torch of a traceback's text; None = there is none."""
    frames = [match.groupdict() for match in _FRAME.finditer(trace or "")]
    own = [frame for frame in frames if not _TORCH.search(frame["file"])] or frames
    return Loc(own[-1]["file"], int(own[-1]["line"])) if own else None
