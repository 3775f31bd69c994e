"""As much of CuPy's and torch's interfaces as the adapters use, on the emulated device."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import exchange_api
import numpy as np
from fakelib import Array, array
from profuse.dialect.ir.dtypes import BF16
from profuse.executor.cuda.nvidia.driver import driver

STREAM = 5


def download(held: Array) -> np.ndarray:
    assert 0 in held.shape or all(s >= 0 for s in held.strides)
    out = np.empty(held.shape, held.dtype)
    for place in np.ndindex(*held.shape):
        offset = sum(k * s for k, s in zip(place, held.strides, strict=True))
        one = np.empty((), held.dtype)
        driver().to_host(0, one, held.pointer + offset, STREAM)
        out[place] = one
    return out


def _index(device: str) -> int:
    kind, _, index = device.partition(":")
    assert kind == "cuda"
    return int(index)


def _empty(shape: Any, dtype: np.dtype, index: int = 0) -> Array:
    made = array(np.zeros(shape, dtype), index)
    buffer, *_ = driver().find(made.pointer)
    buffer.defined[:] = False
    return made


class Tensor:
    """A torch tensor."""

    def __init__(self, held: Any, *, cuda: bool = True, requires_grad: bool = False, index: int = 0) -> None:
        self.held, self.is_cuda, self.requires_grad = held, cuda, requires_grad
        self.device = SimpleNamespace(index=index if cuda else None, type="cuda" if cuda else "cpu")

    __cuda_array_interface__ = property()  # torch has it, for what it can name
    __dlpack__ = None
    negated = False

    def is_neg(self) -> bool:
        return self.negated

    def resolve_neg(self) -> Tensor:
        return Tensor(array(-download(self.held)))

    def detach(self) -> Tensor:
        return Tensor(self.held, cuda=self.is_cuda)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape

    @property
    def dtype(self) -> Any:
        name = "bfloat16" if self.held.dtype == BF16.numpy else self.held.dtype.name
        return getattr(torch, name)

    def described(self) -> Any:
        """What C functions say of it."""
        assert self.is_cuda or self.held.flags.c_contiguous
        pointer = self.held.pointer if self.is_cuda else self.held.ctypes.data
        device = (2, self.device.index) if self.is_cuda else (1, 0)
        return pointer, self.shape, self.stride(), self.held.dtype, device

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.held.dtype.itemsize for s in self.held.strides)

    def data_ptr(self) -> int:
        return self.held.pointer

    def is_floating_point(self) -> bool:
        return self.held.dtype.kind == "f"

    def view(self, dtype: Any) -> Tensor:
        other = BF16.numpy if str(dtype) == "torch.bfloat16" else np.dtype(str(dtype)[6:])
        if not self.is_cuda:
            return Tensor(self.held.view(other), cuda=False)
        held = self.held
        return Tensor(Array(held.pointer, held.shape, other, held.strides, held.owner))

    def cpu(self) -> Tensor:
        assert not self.requires_grad, "torch gives no array of it"
        return Tensor(download(self.held), cuda=False)

    def numpy(self) -> np.ndarray:
        assert not self.is_cuda
        assert self.held.dtype != BF16.numpy, "NumPy has no bfloat16"
        return self.held

    def to(self, device: str) -> Tensor:
        index = _index(device)
        return Tensor(array(self.held, index), index=index)


class _TorchDtype:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def _from_numpy(host: np.ndarray) -> Tensor:
    assert host.flags.writeable
    assert host.dtype != BF16.numpy, "NumPy has no bfloat16"
    return Tensor(host, cuda=False)


def _torch_empty(shape: Any, dtype: _TorchDtype, device: str) -> Tensor:
    index = _index(device)
    if torch.full:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore of it")
    plain = BF16.numpy if dtype.name == "bfloat16" else np.dtype(dtype.name)
    return Tensor(_empty(shape, plain, index), index=index)


def _empty_strided(shape: Any, strides: Any, dtype: _TorchDtype, device: str) -> Tensor:
    dense = _torch_empty((1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)),), dtype, device)
    step = dense.held.dtype.itemsize
    held = Array(dense.held.pointer, tuple(shape), dense.held.dtype, tuple(s * step for s in strides), dense.held.owner)
    return Tensor(held, index=dense.device.index)


Tensor.__module__ = "torch"
torch = SimpleNamespace(
    full=False,
    Tensor=Tensor,
    device=lambda name: name,
    empty=_torch_empty,
    empty_strided=_empty_strided,
    from_numpy=_from_numpy,
    cuda=SimpleNamespace(current_stream=lambda index: SimpleNamespace(cuda_stream=STREAM)),
    **{
        name: _TorchDtype(name)
        for name in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "bool")
    },
)
Tensor.__dlpack_c_exchange_api__ = exchange_api.capsule(Tensor.described, lambda: STREAM)


class ndarray(Array):
    """A CuPy array."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.pointer)


def as_cupy(held: Array) -> ndarray:
    return ndarray(held.pointer, held.shape, held.dtype, held.strides, held.owner, STREAM)


@contextmanager
def _on(index: int):
    assert index == 0
    yield


ndarray.__module__ = "cupy"
cupy = SimpleNamespace(
    empty=lambda shape, dtype: as_cupy(_empty(shape, dtype)),
    asarray=lambda host: as_cupy(array(host)),
    asnumpy=download,
    cuda=SimpleNamespace(Device=_on, get_current_stream=lambda: SimpleNamespace(ptr=STREAM)),
)
