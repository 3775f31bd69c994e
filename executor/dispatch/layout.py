"""Struct offsets of CPython and NumPy that emitted code uses, verified in the running process.

`refusal` compares every offset with the values that Python reports for arrays of many kinds, and
calls every function of NumPy's C API once. If anything differs, the Python dispatcher serves all
calls.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import pickle
import platform
import struct
import sys
import sysconfig
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.importers.numpy.python.float_errors import STATE, TELLS
from ...dialect.ir.dtypes import DTYPES
from .number_values import LIBRARY
from .thread_state import THREAD, difference

C_CONTIGUOUS = 0x0001
ALIGNED = 0x0100
WRITEABLE = 0x0400

# The NumPy scalars that emitted code reads.
_NUMBER = 1.5 - 2.5j
# Of each three bits, 0 and 1 ignore an error and warn of it; all others tell it.
TOLD_ERRORS = 0o6666

SCALARS = frozenset(d.numpy.type for d in DTYPES if d.numpy.kind in "biufc")

_ABI_VERSION = 0x02000000  # NumPy 2's C ABI, which fixes the order of the function table
_API = {"array_type": 2, "PyArray_Scalar": 60, "PyArray_NewFromDescr": 94, "PyArray_Transpose": 123}
_PYTHON_API = (
    "PyBool_FromLong",
    "PyCell_Get",
    "PyComplex_FromDoubles",
    "PyContextVar_Get",
    "PyDict_GetItemWithError",
    "PyDict_New",
    "PyDict_Next",
    "PyDict_SetItem",
    "PyDict_Size",
    "PyErr_CheckSignals",
    "PyErr_Clear",
    "PyErr_ExceptionMatches",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyFunction_GetCode",
    "PyList_GetItem",
    "PyList_New",
    "PyList_SetItem",
    "PyList_Size",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyLong_FromSsize_t",
    "PyMethod_Function",
    "PyMethod_Self",
    "PyObject_CallNoArgs",
    "PyObject_GenericGetAttr",
    "PyObject_GenericGetDict",
    "PyObject_GetAttr",
    "PyObject_SetAttr",
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyThreadState_Get",
    "PyThreadState_GetID",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyUnicode_Compare",
    "Py_DecRef",
    "Py_IncRef",
)


@dataclass(frozen=True)
class StructLayout:
    """Byte offsets of struct fields (64-bit CPython 3.11 - 3.13, NumPy 2).

    ``dtype`` is the offset of eight bytes in a PyArray_Descr that identify a dtype: its kind, its
    character code, its byte order, an unused byte, and its type number. ``scalar`` is the offset of
    the element in a NumPy scalar. ``pointer`` is that of what a PyCapsule holds, ``errors`` that of
    NumPy's choice at floating-point errors in what the capsule of `float_errors.STATE` holds: three
    bits for each kind of error.
    """

    ob_type: int = 8
    data: int = 16
    nd: int = 24
    dimensions: int = 32
    strides: int = 40
    base: int = 48
    descr: int = 56
    flags: int = 64
    dtype: int = 24
    scalar: int = 16
    pointer: int = 16
    errors: int = 0


LAYOUT = StructLayout()


class Unknown(Exception):
    """The layout of the running interpreter or NumPy differs; the message names the difference."""


@functools.cache
def refusal() -> str | None:
    """The reason why native dispatch cannot be used in this process; None = it can."""
    try:
        _check_interpreter()
        _check_fields(LAYOUT)
        _check_dtypes(LAYOUT)
        _check_scalars(LAYOUT)
        _check_errors(LAYOUT)
        _check_functions()
        _check_thread()
    except Unknown as error:
        return str(error)
    except (AttributeError, ImportError, OSError, TypeError, ValueError) as error:
        return f"the probe of CPython and NumPy failed: {error}"
    return None


def _check_interpreter() -> None:
    if sys.implementation.name != "cpython":
        raise Unknown(f"the interpreter is {sys.implementation.name}, not CPython")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise Unknown("this is a free-threaded build of CPython: counts and guards rely on the GIL")
    if hasattr(sys, "gettotalrefcount"):
        raise Unknown("this is a debug build of CPython, whose objects are laid out differently")
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        raise Unknown(f"{platform.machine()} is not a little-endian 64-bit machine")
    if not hasattr(ctypes, "pythonapi"):
        raise Unknown("ctypes.pythonapi is missing")
    missing = [name for name in _PYTHON_API if not hasattr(ctypes.pythonapi, name)]
    if missing:
        raise Unknown(f"this CPython does not export {', '.join(missing)}")


def samples() -> list[np.ndarray]:
    """Arrays that differ in every field that emitted code reads."""
    base = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    return [
        base,
        base[::2, 1:, ::-1],
        base.T,
        np.zeros((4, 5), np.int8)[1:, ::2],
        np.zeros(()),
        np.zeros((0, 2)),
        np.asfortranarray(np.ones((2, 3), np.complex128)),
        frozen,
        np.ones(5, ">f4"),
        np.zeros(9, np.uint8)[1:].view(np.float64),
        np.broadcast_to(1.5, (2, 3)),
    ]


def dtype_word(dtype: np.dtype) -> int:
    """The eight bytes by which emitted code compares dtypes; equal dtypes may be two objects."""
    return ctypes.c_int64.from_address(id(dtype) + LAYOUT.dtype).value


def _check_dtypes(layout: StructLayout) -> None:
    swapped = [np.dtype(np.float32).newbyteorder(), np.dtype("i4, f8"), np.dtype("M8[s]")]
    for original in (*(d.numpy for d in DTYPES), *swapped):
        for dtype in (original, pickle.loads(pickle.dumps(original))):
            actual = ctypes.string_at(id(dtype) + layout.dtype, 8)
            expected = "".join((dtype.kind, dtype.char, dtype.byteorder)).encode()
            if actual[:3] != expected or int.from_bytes(actual[4:], "little") != dtype.num:
                raise Unknown(
                    f"the type number of PyArray_Descr of NumPy {np.__version__} is not at the "
                    f"expected offset (seen in {dtype})"
                )


def _check_scalars(layout: StructLayout) -> None:
    for kind in SCALARS:
        (value,) = np.array([0x5A3C7], np.int64).view(np.uint8).astype(kind)[:1]
        if ctypes.string_at(id(value) + layout.scalar, value.nbytes) != value.tobytes():
            raise Unknown(f"the element of {kind.__name__} is not at the expected offset")


def _check_fields(layout: StructLayout) -> None:
    word, half = ctypes.c_int64.from_address, ctypes.c_int32.from_address
    for a in samples():
        at = id(a)
        dims, steps = word(at + layout.dimensions).value, word(at + layout.strides).value
        fields = {
            "ob_type": (word(at + layout.ob_type).value, id(type(a))),
            "data": (word(at + layout.data).value, a.ctypes.data),
            "nd": (half(at + layout.nd).value, a.ndim),
            "base": (word(at + layout.base).value, 0 if a.base is None else id(a.base)),
            "descr": (word(at + layout.descr).value, id(a.dtype)),
            "flags": (half(at + layout.flags).value, a.flags.num),
            "flags.c_contiguous": (bool(a.flags.num & C_CONTIGUOUS), a.flags.c_contiguous),
            "flags.aligned": (bool(a.flags.num & ALIGNED), a.flags.aligned),
            "flags.writeable": (bool(a.flags.num & WRITEABLE), a.flags.writeable),
        }
        wrong = [name for name, (got, want) in fields.items() if got != want]
        # NumPy keeps sizes and strides in one block. Only if that holds are the pointers followed.
        if a.ndim and (dims % 8 or not dims or steps != dims + 8 * a.ndim):
            wrong.append("dimensions")
        if not wrong:
            for name, base, want in (("dimensions", dims, a.shape), ("strides", steps, a.strides)):
                if tuple(word(base + 8 * k).value for k in range(a.ndim)) != want:
                    wrong.append(name)
        if wrong:
            raise Unknown(
                f"PyArrayObject.{wrong[0]} of NumPy {np.__version__} on Python "
                f"{platform.python_version()} is not at the expected offset"
            )
    if ctypes.string_at(id(_NUMBER) + layout.scalar, 16) != np.complex128(_NUMBER).tobytes():
        raise Unknown("PyComplexObject.cval is not at the expected offset")
    for number in (True, 3, 2.5, _NUMBER):
        if word(id(number) + layout.ob_type).value != id(type(number)):
            raise Unknown("PyObject.ob_type is not at the expected offset")


def _check_thread() -> None:
    if (wrong := difference(THREAD)) is not None:
        raise Unknown(f"{wrong} is not at the expected offset")


def _check_errors(layout: StructLayout) -> None:
    kinds = ("divide", "over", "under", "invalid")
    for kind, how in itertools.product(kinds, ("ignore", "warn", *sorted(TELLS))):
        others = "warn" if how == "ignore" else "ignore"
        with np.errstate(**{k: how if k == kind else others for k in kinds}):  # type: ignore[arg-type]
            capsule = STATE.get()
            address = ctypes.c_int64.from_address(id(capsule) + layout.pointer).value
            if address != _pointer_of(capsule, b"numpy.ufunc.extobj"):
                raise Unknown("PyCapsule.pointer is not at the expected offset")
            bits = ctypes.c_int32.from_address(address + layout.errors).value & TOLD_ERRORS
            if bool(bits) != (how in TELLS):
                raise Unknown(
                    f"NumPy {np.__version__} does not keep its choice at floating-point errors at the expected offset"
                )


def _pointer_of(capsule: Any, name: bytes | None) -> int:
    """The pointer that a capsule holds."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return pointer(capsule, name)


@functools.cache
def addresses() -> dict[str, int]:
    """Addresses of the C functions that the emitted code calls, by name.

    Raises Unknown if NumPy's function table is not that of NumPy 2.
    """
    umath = importlib.import_module("numpy._core._multiarray_umath")
    api: Any = ctypes.pythonapi
    out = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in _PYTHON_API}
    start = _pointer_of(umath._ARRAY_API, None)
    table = (ctypes.c_void_p * (max(_API.values()) + 1)).from_address(start)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    if version != _ABI_VERSION:
        raise Unknown(f"NumPy's C ABI is {version:#x}, known is {_ABI_VERSION:#x}")
    if table[_API["array_type"]] != id(np.ndarray):
        raise Unknown("NumPy's C API table does not hold the array type where it should")
    out |= {name: table[index] for name, index in _API.items() if name != "array_type"}
    libc: Any = ctypes.CDLL(None)
    for name in ("clock_gettime", "free", "malloc", "pow", *LIBRARY):
        out[name] = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
    return {name: address or 0 for name, address in out.items()}


def _check_functions() -> None:
    """Make an array and a scalar with NumPy's function table, as emitted code does."""
    functions, pointer = addresses(), ctypes.c_void_p
    dtype = np.dtype(np.int32)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # NewFromDescr steals it
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, ctypes.c_int, pointer, pointer, pointer, ctypes.c_int, pointer
    )(functions["PyArray_NewFromDescr"])
    shape = (ctypes.c_int64 * 2)(2, 3)
    array = new(id(np.ndarray), id(dtype), 2, ctypes.addressof(shape), None, None, 0, None)
    if (array.shape, array.dtype, array.flags.owndata) != ((2, 3), dtype, True):
        raise Unknown("PyArray_NewFromDescr does not make the array that was asked for")
    axes = (ctypes.c_int64 * 2)(1, 0)
    dims = (ctypes.c_int64 * 2)(ctypes.addressof(axes), 2)
    turn = ctypes.PYFUNCTYPE(ctypes.py_object, pointer, pointer)(functions["PyArray_Transpose"])
    view = turn(id(array), ctypes.addressof(dims))
    if (view.shape, view.base is array) != ((3, 2), True):
        raise Unknown("PyArray_Transpose does not make the view that was asked for")
    scalar = ctypes.PYFUNCTYPE(ctypes.py_object, pointer, pointer, pointer)(functions["PyArray_Scalar"])
    number = ctypes.c_int32(-7)
    value = scalar(ctypes.addressof(number), id(dtype), None)
    if type(value) is not np.int32 or value != -7:
        raise Unknown("PyArray_Scalar does not make the scalar that was asked for")
