"""From IR text to a builtin function: compiling, linking, filling the table, and freeing the code.

A builtin's ``m_self`` is a tuple of the objects that the code knows by address, and a `_Tether`.
The garbage collector never clears a tuple and does not see the tether, so the tether is freed after
the builtin. Its finalizer unmaps the code. This order holds even if the builtin is part of a
reference cycle with finalizers that call the function.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...dialect.dataclass import dataclass
from ...lowering.cpu.loader import load_code
from ..settings.fork_lock import ForkLock
from .counter_table import LeafCells, Settings
from .emit import Emitted, emit
from .layout import addresses
from .leaf_spec import Leaf
from .llvm_writer import AddressEntry

PASSES = "default<O1>"  # of LLVM's, for the code of calls, which has no loops that are worth a vector
_FLAGS = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS
_METHODS_PER_SLAB = 128

_live: dict[int, Any] = {}  # tether -> the objects that must outlive its builtin
_serial = itertools.count()


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Methods:
    """Recycles PyMethodDefs: CPython reads one until its builtin dies."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._slabs: list[Any] = []
        self._lock = ForkLock()  # re-entrant: any allocation may free a tether

    def take(self, name: bytes, function: int) -> int:
        with self._lock:
            if not self._free:
                slab = (_Method * _METHODS_PER_SLAB)()
                self._slabs.append(slab)
                start = ctypes.addressof(slab)
                self._free += [start + k * ctypes.sizeof(_Method) for k in range(_METHODS_PER_SLAB)]
            address = self._free.pop()
        method = _Method.from_address(address)
        method.name, method.function, method.flags, method.doc = name, function, _FLAGS, b""
        return address

    def give_back(self, address: int) -> None:
        self._free.append(address)


_methods = _Methods()


class _Tether(int):
    """A key of `_live`; the garbage collector does not track it, since it holds no references."""

    __slots__ = ()

    # As defaults, since a module's names are gone when the interpreter frees the last tethers.
    def __del__(self, live: dict[int, Any] = _live, methods: _Methods = _methods) -> None:
        code = live.pop(int(self), None)
        if code is not None:
            methods.give_back(code[0])


@dataclass(frozen=True)
class Entry:
    """An emitted dispatcher.

    Attributes:
        call: the builtin.
        cells: the cells of each leaf.
        table: the table of the code, a ctypes array of 64-bit integers.
        emitted: the IR text and its table entries.
        keep: the loaded machine code.
    """

    call: Callable[..., Any]
    cells: Sequence[LeafCells]
    table: Any
    emitted: Emitted
    keep: Any

    def read(self, cell: int) -> int:
        """The number in a cell."""
        return self.table[cell]

    @property
    def current(self) -> int:
        """Number of the leaf that ran last, counted from 1; 0 = none has run since `forget`."""
        return self.table[self.emitted.shared.current]

    @property
    def clock(self) -> int:
        """Number of hits that came after a miss."""
        return self.table[self.emitted.shared.clock]

    def set_clock(self, value: int) -> None:
        """Set the clock, to continue from the clock of the previous dispatcher."""
        self.table[self.emitted.shared.clock] = value

    def forget(self) -> None:
        """Note that the last call ran in Python."""
        self.table[self.emitted.shared.current] = 0


def make_entry(leaves: Sequence[Leaf], slow: Callable[..., Any], settings: Settings, keep: Sequence[Any] = ()) -> Entry:
    """Make a builtin for these leaves.

    Args:
        leaves: the leaves, tried in this order.
        slow: the Python dispatcher, called with the same arguments if no leaf fits.
        settings: settings and functions on which the code depends.
        keep: objects that live as long as the builtin, such as loaded kernels.
    """
    emitted = emit(leaves, slow, settings)
    loaded = load_code(_object_code(emitted.text, PASSES), "entry", "table", unwind=True)
    table = (ctypes.c_int64 * len(emitted.entries)).from_address(loaded.symbols["table"])
    functions, objects = addresses(), []
    for index, item in enumerate(emitted.entries):
        if isinstance(item, tuple):
            objects.append(item[0])
            table[index] = id(item[0])
        elif isinstance(item, str):
            table[index] = functions[item]
        elif isinstance(item, AddressEntry):
            table[index] = item.value
    name = b"profuse_dispatch"
    method = _methods.take(name, loaded.address)
    tether = _Tether(next(_serial))
    _live[int(tether)] = (method, name, loaded, tuple(keep))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    call = new(method, (*objects, tether), None)
    return Entry(call, emitted.cells, table, emitted, loaded)


@functools.lru_cache(maxsize=64)
def _object_code(text: str, passes: str) -> bytes:
    """Object code of IR text; equal dispatchers are compiled once."""
    from ...lowering.cpu.codegen import object_code
    from ...lowering.target import host_target

    return object_code(text, host_target(), passes)
