"""What TorchScript asks of tensors, and tensors of Python's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.dtypes import dtype_of
from ...numpy.tracing.current import trace_error
from ...numpy.tracing.mutation import in_memory
from ...numpy.tracing.operators import Recording, op
from ..aten.all_aten import ATEN
from ..aten.promotion import category, number_dtype
from ..interpreter import NodeContext
from ..torch_values import code_of, numpy_dtype
from .number_operators import converted
from .script_containers import ScriptList
from .script_table import is_distinct, script


@script("prim::InMemory")
def _in_memory(call: NodeContext, value: Any) -> Any:
    """A tensor that is written: one without axes is an array, and no scalar of NumPy's."""
    if hasattr(value, "ndim") and not value.ndim:
        return in_memory(value) if isinstance(value, Recording) else np.array(value)
    return value


@script("select")
def _select(call: NodeContext, value: Any, dim: int, index: Any) -> Any:
    """A part of a tensor: of one with an axis a view without axes, to which the script may write."""
    return value[..., index] if value.ndim == 1 else _of_aten("select", call, value, dim, index)


@script("unbind")
def _unbind(call: NodeContext, value: Any, dim: int = 0) -> ScriptList:
    if value.ndim == 1:
        return ScriptList(value[..., k] for k in range(int(value.shape[0])))
    return ScriptList(_of_aten("unbind", call, value, dim))


def _of_aten(name: str, call: NodeContext, *operands: Any) -> Any:
    handler = ATEN.find(name)
    assert handler is not None
    return handler(call, *operands)


@script("prim::NumPyDtype")
def _numpy_dtype(call: NodeContext, code: Any) -> Any:
    return None if code is None else numpy_dtype(int(code))


@script("prim::dtype")
def _dtype(call: NodeContext, value: Any) -> int:
    return code_of(value.dtype)


@script("prim::device")
def _device(call: NodeContext, value: Any) -> str:
    return "cpu"


@script("prim::layout")
def _layout(call: NodeContext, value: Any) -> int:
    return 0


@script("prim::type")
def _type(call: NodeContext, device: Any) -> str:
    return str(device).partition(":")[0]


@script("prim::is_cuda", "prim::is_sparse", "prim::is_mkldnn", "prim::is_quantized", "prim::is_mps", "prim::is_nested")
@script("prim::is_meta", "prim::is_xpu", "prim::is_vulkan", "prim::is_ort", "prim::is_maia", "prim::is_sparse_csr")
def _is_other(call: NodeContext, value: Any) -> bool:
    return False


@script("prim::is_cpu")
def _is_cpu(call: NodeContext, value: Any) -> bool:
    return True


@script("prim::requires_grad")
def _requires_grad(call: NodeContext, value: Any, grad_mode: bool, tensors: Any, requires: Any) -> bool:
    """Whether a tensor requires gradients; raises TraceError where that is not known.

    Args:
        call: the node.
        value: the tensor.
        grad_mode: torch records gradients: calls then refuse arguments that require some.
        tensors: parameters and buffers.
        requires: which of these require gradients.
    """
    for tensor, flag in zip(tensors, requires, strict=True):
        if value is tensor:
            return flag
    is_argument = any(value is argument for argument in call.interpreter.arguments)
    if (is_argument or not any(requires)) if grad_mode else (is_distinct(call, value) and not is_argument):
        return False
    raise trace_error(
        "a tensor is asked whether it requires gradients, which is torch's to know",
        "call the function under torch.no_grad(), if its code then asks no more",
    )


@script("prim::data")
def _data(call: NodeContext, value: Any) -> Any:
    return _of_aten("detach", call, value)


@script("size")
def _size(call: NodeContext, value: Any, dim: Any = None) -> Any:
    shape = tuple(value.shape)
    return ScriptList(shape) if dim is None else shape[int(dim)]


@script("dim", "ndim", "prim::ndim")
def _dim(call: NodeContext, value: Any) -> int:
    return value.ndim


@script("numel", "prim::numel")
def _numel(call: NodeContext, value: Any) -> Any:
    return value.size


@script("prim::shape", "prim::size")
def _shape(call: NodeContext, value: Any) -> ScriptList:
    return ScriptList(value.shape)


@script("len")
def _length(call: NodeContext, value: Any) -> Any:
    if not value.ndim:
        raise trace_error("len() of a 0-d tensor")
    return value.shape[0]


@script("is_floating_point")
def _is_floating_point(call: NodeContext, value: Any) -> bool:
    return category(value.dtype) == 2


@script("is_complex")
def _is_complex(call: NodeContext, value: Any) -> bool:
    return category(value.dtype) == 3


@script("element_size")
def _element_size(call: NodeContext, value: Any) -> int:
    return value.dtype.itemsize


# --- numbers of tensors -------------------------------------------------------------------------

_KINDS = {"b": bool, "i": int, "u": int, "f": float, "V": float, "c": complex}


def _number(value: Any, kind: type | None = None) -> Any:
    if kind is None:
        kind = _KINDS[value.dtype.kind]
    if value.ndim:
        value = value.reshape(())  # which is an error for several elements
    if not isinstance(value, Recording):
        return kind(value)
    return converted(kind, value)


@script("item", "ScalarImplicit", "Scalar", "_local_scalar_dense")
def _item(call: NodeContext, value: Any) -> Any:
    return _number(value)


@script("Int", "IntImplicit")
def _int(call: NodeContext, value: Any) -> Any:
    return _number(value, int)


@script("Float", "FloatImplicit")
def _float(call: NodeContext, value: Any) -> Any:
    return _number(value, float)


@script("Bool")
def _bool(call: NodeContext, value: Any) -> Any:
    return _number(value, bool)


@script("is_nonzero")
def _is_nonzero(call: NodeContext, value: Any) -> Any:
    return _number(value, bool)


# --- tensors of numbers -------------------------------------------------------------------------


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, Recording):
        return op("cast", op("to_tensor", value) if not hasattr(value, "ndim") else value, dtype=dtype_of(dtype))
    return np.array(value, dtype)


@script("prim::NumToTensor")
def _tensor_of_number(call: NodeContext, value: Any) -> Any:
    """A tensor without axes; of a float it is one of double precision, as torch's."""
    if hasattr(value, "ndim"):
        return value
    dtype = number_dtype(value)
    return _cast(value, np.dtype(np.float64) if dtype.kind == "f" else dtype)


@script("tensor", "as_tensor", "aten::tensor", "aten::as_tensor", "scalar_tensor")
def _tensor(call: NodeContext, data: Any, dtype: Any = None, **_: Any) -> Any:
    if hasattr(data, "ndim"):
        return data if dtype is None or data.dtype == dtype else data.astype(dtype)
    if type(data) in (ScriptList, tuple):
        return _stacked(list(data), dtype)
    return _cast(data, dtype or number_dtype(data))


def _stacked(items: list[Any], dtype: Any) -> Any:
    if not items:
        return np.zeros((0,), dtype or np.float32)
    if type(items[0]) in (ScriptList, tuple):
        return np.stack([_stacked(list(item), dtype) for item in items])
    wanted = dtype or max(map(number_dtype, items), key=category)
    if any(isinstance(item, Recording) for item in items):
        return np.stack([_cast(item, wanted) for item in items])
    return np.array(items, wanted)


__all__: list[str] = []
