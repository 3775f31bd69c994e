"""Object code into callable memory, with LLVM's linker; nothing of MLIR is imported.

Library products are looked up in scipy-openblas32, everything else (libm) in the process.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..dialect.errors import InternalError

if TYPE_CHECKING:
    from .abi import KernelArtifact

_serial = itertools.count()
_lock = threading.Lock()


@dataclass(frozen=True)
class Loaded:
    """Code in memory: valid for as long as this object is alive.

    Attributes:
        address: of the entry function, ``void entry(int64_t *slots)``.
        keepalive: owner of the mapping.
    """

    address: int
    keepalive: Any


def load(artifact: KernelArtifact) -> Loaded:
    """Link the artifact's object code into this process.

    Raises InternalError when the object refers to a symbol that nothing provides.
    """
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(artifact.object).add_current_process()
    if artifact.library_calls:
        _openblas()
    builder.export_symbol(artifact.entry)
    with _lock:
        name = f"profuse{next(_serial)}"
        try:
            library = builder.link(_linker(), name)
            return Loaded(library[artifact.entry], library)
        except RuntimeError as error:
            raise InternalError(f"kernel {artifact.name} does not link: {error}") from error


@functools.cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


@functools.cache
def _openblas() -> ctypes.CDLL:
    """The BLAS library, its products made visible to the linker, limited to one thread."""
    import os

    import llvmlite.binding as llvm
    import scipy_openblas32

    folder = scipy_openblas32.get_lib_dir()
    name = next(n for n in sorted(os.listdir(folder)) if n.startswith("libscipy_openblas"))
    library = ctypes.CDLL(os.path.join(folder, name))
    for symbol in BLAS_SYMBOLS:
        address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        llvm.add_symbol(symbol, address)
    return library


def set_library_threads(count: int) -> None:
    """Threads that library products may use (this process)."""
    _openblas().scipy_openblas_set_num_threads(ctypes.c_int(count))


BLAS_SYMBOLS = tuple(f"scipy_cblas_{t}{op}" for t in "sd" for op in ("gemm", "gemv", "dot"))
