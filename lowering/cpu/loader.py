"""Object code into callable memory, with LLVM's linker; nothing of MLIR is imported.

Library products are looked up in scipy-openblas32, everything else (libm) in the process.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...dialect.errors import InternalError
from ..thread_pool import POOL
from .pool_block import block_address

if TYPE_CHECKING:
    from ..abi import KernelArtifact

_serial = itertools.count()
_lock = threading.Lock()


@dataclass(frozen=True)
class Loaded:
    """Code in memory: valid for as long as this object is alive.

    Attributes:
        address: of the entry function, ``void entry(int64_t *slots)``.
        keepalive: owner of the mapping.
        symbols: addresses of other symbols that were asked for.
    """

    address: int
    keepalive: Any
    symbols: Mapping[str, int] = field(default_factory=dict)


def load(artifact: KernelArtifact) -> Loaded:
    """Link the artifact's object code into this process.

    Raises InternalError when the object refers to a symbol that nothing provides.
    """
    if artifact.library_calls:
        _openblas()
    try:
        return link_object(artifact.object, artifact.entry)
    except RuntimeError as error:
        raise InternalError(f"kernel {artifact.name} does not link: {error}") from error


def link_object(code: bytes, entry: str, *others: str) -> Loaded:
    """Link object code into this process; raises RuntimeError.

    Args:
        entry: symbol of the function.
        others: further symbols whose addresses are wanted.
    """
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    builder.import_symbol(POOL, block_address())
    for name in (entry, *others):
        builder.export_symbol(name)
    with _lock:
        library = builder.link(_linker(), f"profuse{next(_serial)}")
        return Loaded(library[entry], library, {name: library[name] for name in others})


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
