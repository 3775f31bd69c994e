"""Loads object code into callable memory, without importing MLIR.

`elf` places objects: importing LLVM's linker takes half as long as a first call from disk. LLVM's
linker takes the objects that `elf` cannot place, and says why an object does not link.

Symbols of library products come from scipy-openblas32, all others (libm) from the process.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from . import elf

if TYPE_CHECKING:
    from ..abi import KernelArtifact


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
        return load_code(artifact.object, artifact.entry)
    except InternalError as error:
        raise InternalError(f"kernel {artifact.name} does not link: {error.what}") from error


def load_code(code: bytes, entry: str, *others: str, unwind: bool = False) -> Loaded:
    """Link object code into this process; raises InternalError.

    Args:
        code: the object file.
        entry: symbol of the function.
        others: further symbols whose addresses are wanted.
        unwind: whether the stack may be unwound through the code.
    """
    try:
        mapped = elf.map_object(code, (entry, *others), _outside, unwind=unwind)
    except (elf.Unsupported, OSError):
        return _link(code, (entry, *others))
    return Loaded(mapped.symbols[entry], mapped.memory, mapped.symbols)


def _outside(name: str) -> int:
    """Address of a symbol of a library, or of this process; raises elf.Unsupported."""
    symbols = _known_symbols()
    if name in symbols:
        return symbols[name]
    try:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise elf.Unsupported(f"no symbol {name}") from None


def _known_symbols() -> dict[str, int]:
    """Addresses of the symbols that kernels refer to and the process does not export."""
    from ..thread_pool import POOL
    from .pool_block import block_address

    return {**_library_symbols, POOL: block_address()}


# Kernels of the library with which parts of the columns of a product in f32 have the bits of the
# whole; `schedule.library_calls` tells more.
_JOINING = ("Nehalem", "Sandybridge", "SkylakeX")
_library_symbols: dict[str, int] = {}  # of libraries that only this module has loaded


def _link(code: bytes, wanted: tuple[str, ...]) -> Loaded:
    """`load_code` with LLVM's linker; ``wanted`` begins with the entry."""
    from ..libllvm import LinkedCode

    linked = LinkedCode(code, wanted, _known_symbols())
    return Loaded(linked.symbols[wanted[0]], linked, linked.symbols)


@functools.cache
def _openblas() -> ctypes.CDLL:
    """The BLAS library, its products made visible to kernels, limited to one thread."""
    import os

    import scipy_openblas32

    from ..thread_pool import COLUMNS
    from .pool_block import block

    folder = scipy_openblas32.get_lib_dir()
    name = next(n for n in sorted(os.listdir(folder)) if n.startswith("libscipy_openblas"))
    library = ctypes.CDLL(os.path.join(folder, name))
    for symbol in BLAS_SYMBOLS:
        address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        _library_symbols[symbol] = address or 0
    library.scipy_openblas_get_corename.restype = ctypes.c_char_p
    block()[COLUMNS] = library.scipy_openblas_get_corename().decode() not in _JOINING
    return library


def set_library_threads(count: int) -> None:
    """Set the number of threads that library products may use in this process."""
    _openblas().scipy_openblas_set_num_threads(ctypes.c_int(count))


BLAS_SYMBOLS = tuple(f"scipy_cblas_{t}{op}" for t in "sd" for op in ("gemm", "gemv", "dot", "syrk"))
