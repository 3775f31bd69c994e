"""Loads relocatable x86-64 ELF objects into callable memory, without LLVM, for kernels from disk.

Kernels are position independent, refer to their constants relative to the instruction, and call at
most library functions. Objects that need more raise `Unsupported`; LLVM's linker takes them.

On demand, the system's unwinder gets the unwind tables of an object. Dispatchers need that: the
interpreter may end a thread within one by unwinding its stack.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_IDENT = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_WRITE, _ALLOC, _EXEC, _KNOWN_FLAGS = 1, 2, 4, 0x37  # also MERGE, STRINGS
_ABS64, _PC32, _PLT32 = 1, 2, 4
_VIA_TABLE = (9, 41, 42)  # GOTPCREL, relaxable or not: relative to a place that holds the address
_UNDEFINED, _RESERVED = 0, 0xFF00
_UNWINDER = "libgcc_s.so.1"
_END = 4  # bytes of zeros after the tables
_PAGE = mmap.PAGESIZE
_JUMP = 6  # bytes of jmp *(%rip)
_STUB = struct.Struct(f"<{_JUMP}sQ2x")  # the jump, and the address that it reads


class Unsupported(Exception):
    """The object uses a feature of ELF that this loader does not support."""


class Mapped(NamedTuple):
    """Code in memory.

    Attributes:
        symbols: addresses of the symbols that were asked for.
        memory: owner of the memory.
    """

    symbols: Mapping[str, int]
    memory: object


class _Unwindable:
    """Memory whose unwind tables the system knows for as long as this object is alive."""

    __slots__ = ("_forget", "_memory", "_tables")

    def __init__(self, memory: mmap.mmap, tables: int) -> None:
        register, self._forget = _unwinder()
        self._memory, self._tables = memory, ctypes.c_void_p(tables)
        register(self._tables)

    def __del__(self) -> None:
        self._forget(self._tables)


@functools.cache
def _unwinder() -> tuple[Any, Any]:
    """The system's functions that register unwind tables and forget them; raises Unsupported."""
    try:
        library = ctypes.CDLL(_UNWINDER)
        return library.__register_frame, library.__deregister_frame
    except (OSError, AttributeError) as error:
        raise Unsupported(f"no unwinder: {error}") from error


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


def map_object(code: bytes, wanted: tuple[str, ...], find: Callable[[str], int], *, unwind: bool = False) -> Mapped:
    """Place an object in memory.

    Args:
        code: the object file.
        wanted: names of symbols whose addresses are asked for.
        find: address of a symbol that the object does not define; raises Unsupported.
        unwind: whether the stack may be unwound through the code.

    Raises Unsupported, also for a damaged object, and OSError if the system refuses executable
    memory.
    """
    try:
        return _map_object(code, wanted, find, unwind)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise Unsupported(f"not an object as LLVM writes it: {error}") from error


def _map_object(code: bytes, wanted: tuple[str, ...], find: Callable[[str], int], unwind: bool) -> Mapped:
    if code[:7] != _IDENT or struct.unpack_from("<HH", code, 16) != (_RELOCATABLE, _X86_64):
        raise Unsupported("no relocatable object of x86-64")
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    if size != _SECTION.size:
        raise Unsupported("sections of another size")
    sections = [_Section(*_SECTION.unpack_from(code, table + k * size)) for k in range(count)]
    symbols, names = _symbols(code, sections)
    outside = [n for n, s in zip(names, symbols, strict=True) if n and s[3] == _UNDEFINED]

    places, end = _layout(sections, write=False, unwind=unwind)
    stubs = {name: end + k * _STUB.size for k, name in enumerate(outside)}
    executable = -(-(end + len(stubs) * _STUB.size) // _PAGE) * _PAGE
    data, end = _layout(sections, write=True, at=executable)
    places |= data
    memory = mmap.mmap(-1, max(end, _PAGE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for number, place in places.items():
        section = sections[number]
        if section.type != _NOBITS:
            content = code[section.offset : section.offset + section.size]
            memory[place : place + section.size] = content
    imports = {name: find(name) for name in outside}
    for name, at in stubs.items():
        memory[at : at + _STUB.size] = _STUB.pack(b"\xff\x25\0\0\0\0", imports[name])

    def address(index: int, through_stub: bool) -> int:
        _, _, _, section, value, _ = symbols[index]
        if section == _UNDEFINED:
            name = names[index]
            return base + stubs[name] if through_stub else imports[name]
        if section not in places:
            raise Unsupported("a symbol outside of what is loaded")
        return base + places[section] + value

    def table_entry(index: int) -> int:
        if names[index] not in stubs:
            raise Unsupported("a table entry of a symbol within")
        return base + stubs[names[index]] + _JUMP

    for section in sections:
        if section.type == _RELA and section.info in places:
            body = code[section.offset : section.offset + section.size]
            for offset, info, addend in _RELOCATION.iter_unpack(body):
                at, kind = places[section.info] + offset, info & 0xFFFFFFFF
                if kind == _ABS64:
                    value = address(info >> 32, through_stub=False) + addend
                    struct.pack_into("<Q", memory, at, value)
                elif kind in _VIA_TABLE:
                    value = table_entry(info >> 32) + addend - base - at
                    struct.pack_into("<i", memory, at, value)
                elif kind in (_PC32, _PLT32):
                    value = address(info >> 32, kind == _PLT32) + addend - base - at
                    struct.pack_into("<i", memory, at, value)
                else:
                    raise Unsupported(f"relocation {kind}")
    _protect(base, executable)
    addresses = {n: address(k, through_stub=False) for k, n in enumerate(names) if n in wanted}
    if missing := [name for name in wanted if name not in addresses]:
        raise Unsupported(f"no symbol {missing[0]}")
    tables = [base + place for n, place in places.items() if sections[n].type == _UNWIND]
    return Mapped(addresses, _Unwindable(memory, *tables) if tables else memory)


def _symbols(code: bytes, sections: list[_Section]) -> tuple[list[tuple[int, int, int, int, int, int]], list[str]]:
    """The symbols of an object and their names; "" for symbols without a name."""
    (table,) = [s for s in sections if s.type == _SYMTAB]
    body = code[table.offset : table.offset + table.size]
    strings = sections[table.link].offset
    symbols = list(_SYMBOL.iter_unpack(body))
    names = [code[strings + s[0] : code.index(0, strings + s[0])].decode() for s in symbols]
    return symbols, names


def _layout(sections: list[_Section], *, write: bool, unwind: bool = False, at: int = 0) -> tuple[dict[int, int], int]:
    """Offsets of the writable sections (``write``) or of the others, and the end of the last."""
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        tables = section.type == _UNWIND
        if not section.flags & _ALLOC or (tables and not unwind):
            continue
        if section.type not in (_PROGBITS, _NOBITS, _UNWIND) or section.flags & ~_KNOWN_FLAGS:
            raise Unsupported("a section that needs more than a place")  # e.g. constructors
        if section.align > _PAGE:
            raise Unsupported("alignment beyond that of pages")
        if bool(section.flags & _WRITE) == write:
            at = -(-at // max(section.align, 1)) * max(section.align, 1)
            places[number] = at
            at += section.size + (_END if tables else 0)
    return places, at


def _protect(base: int, size: int) -> None:
    """Make memory executable and read-only; raises OSError."""
    if not size:
        return
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, use_errno=True)
    if kind(("mprotect", ctypes.pythonapi))(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
