"""DLPack's exchange of tensors by C functions, for emitted code.

A library that supports it publishes the addresses of C functions that describe a tensor without a
capsule, that make a tensor of memory, and that tell the library's current stream (dlpack.h, version
1.3: ``DLPackExchangeAPI``), in a capsule that the type of its tensors holds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.ir.device import EXCHANGE_NAMES
from ..memory.offsets import Refused
from .dlpack import data_type, pointer_of

_NAME = b"dlpack_exchange_api"
_MAJOR = 1


class Api(ctypes.Structure):
    """``DLPackExchangeAPI`` of dlpack.h, with the functions as addresses."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class Reader:
    """The way in which emitted code reads tensors of one type.

    Attributes:
        kind: exact type of the tensors.
        describe: address of ``int (PyObject *, DLTensor *)``, which borrows the tensor's memory.
        false: attributes that must be False; other tensors are left to Python.
        negative: methods that must return False; other tensors are left to Python.
        conjugate: such methods that return False of all but complex tensors.
        modes: objects, names of their attributes, and what these must hold; else calls are Python's.
        counts: functions that must return 0; else calls are Python's.
        gradients: tells whether gradient mode is on; where it is off, ``false`` may be True. None =
            nobody can tell.
    """

    kind: type
    describe: int
    false: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    conjugate: tuple[str, ...] = ()
    modes: tuple[tuple[Any, str, Any], ...] = ()
    counts: tuple[Callable[[], int], ...] = ()
    gradients: Callable[[], bool] | None = None


def api_of(kind: type) -> Api:
    """The C functions of the library of a type of tensors.

    Raises Refused if the library has none, or has another major version of them.
    """
    name = next((name for name in EXCHANGE_NAMES if getattr(kind, name, None) is not None), None)
    if name is None:
        raise Refused(f"{kind.__module__} has no {EXCHANGE_NAMES[0]}")
    try:
        api = Api.from_address(pointer_of(getattr(kind, name), _NAME))
    except (TypeError, ValueError) as error:
        raise Refused(f"{name} of {kind.__module__} cannot be read: {error}") from None
    if api.major != _MAJOR:
        raise Refused(f"{name} of {kind.__module__} is of version {api.major}, not {_MAJOR}")
    return api


def type_word(dtype: np.dtype) -> int:
    """The 32 bits with which a ``DLTensor`` describes a dtype."""
    return int.from_bytes(bytes(data_type(dtype)), "little")
