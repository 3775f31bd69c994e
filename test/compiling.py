"""How tests compile: with little of LLVM's optimisation, and each request once in a session.

A suite compiles thousands of small kernels, of which it runs each a few times on a few elements;
half of its time was LLVM's, on code whose speed nobody asks for. So LLVM generates code as it does
for debuggers, unless a test is marked ``optimised``: those that assert bits, vector code, accuracy
or speed, or that kernels of all ops are right as users get them.

A quarter of all requests are those of an earlier test. `Memo` keeps results in a folder that the
processes of pytest share, below counters, events and the disk cache, which notice nothing. Tests of
the compiler, of checks of kernels and of caches are marked ``compiles``: each of their compiles
takes place. So do those of a test that has replaced something which a compile may use (`compiles_as_ever`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import profuse.executor.compile.compiler as compiler
import pytest
from profuse.executor.compile.cache.cache_key import key_of, obstacle
from profuse.executor.compile.cache.codec import from_sections, to_sections
from profuse.executor.compile.cache.source_locations import SourceLocations
from profuse.executor.compile.request import CompileRequest, CompileResult
from profuse.executor.dispatch import loaded_dispatcher
from profuse.executor.files import replacing
from profuse.lowering import libllvm
from profuse.lowering.cpu import codegen

# LLVM's own passes that code needs: none. The generator for debuggers takes everything.
_NO_PASSES = "verify"
_NO_OPTIMISATION = 0  # LLVMCodeGenLevelNone


@contextmanager
def quick_code(wanted: bool = True) -> Iterator[None]:
    """Kernels and code of calls are generated without optimisation in this ``with`` block, in this process."""
    if not wanted:
        yield
        return
    before = libllvm.LEVEL, codegen.pipeline_of, loaded_dispatcher.PASSES
    libllvm.LEVEL, codegen.pipeline_of, loaded_dispatcher.PASSES = _NO_OPTIMISATION, lambda text: _NO_PASSES, _NO_PASSES
    try:
        yield
    finally:
        libllvm.LEVEL, codegen.pipeline_of, loaded_dispatcher.PASSES = before


_EXECUTOR = "profuse.executor."
# What serves calls: nothing that runs in `compile_graph` imports any of it.
_OF_CALLS = ("arguments.", "backward.", "dispatch.", "exchange.", "explain.", "functions.", "observe.", "plans.")
_OF_CALLS += ("routing.", "tape.", "tiers.", "memory.thread_block.")


def compiles_as_ever(patches: pytest.MonkeyPatch | None) -> bool:
    """Whether no compile can notice what is replaced at present: parts of what serves calls, and nothing else."""
    if patches is None:
        return True
    # What pytest is going to put back: items of dicts, such as variables of the environment, folders, attributes.
    if patches._setitem or patches._cwd is not None or patches._savesyspath is not None:
        return False
    return all(_module_of(target).startswith(_OF_CALLS) for target, *_ in patches._setattr)


def _module_of(target: Any) -> str:
    """The module of the executor, such as ``"tiers.keyed."``, that a class or an object is of; "" = none."""
    if not isinstance(target, ModuleType):
        target = inspect.getmodule(target) or inspect.getmodule(type(target))
    name = f"{target.__name__}." if target else ""
    return name.removeprefix(_EXECUTOR) if name.startswith(_EXECUTOR) else ""


class Memo:
    """Results of requests, in a folder that processes share.

    A result is that of an equal request in the same mode of code generation, source locations
    aside, as for the disk cache. What that does not store is compiled each time, and so is all
    while ``is_in_use`` says no.
    """

    def __init__(self, folder: Path, is_in_use: Callable[[], bool] = lambda: True) -> None:
        self.folder = folder
        self.is_in_use = is_in_use
        self.hits = 0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Compiles of this process go through the memo in this ``with`` block."""
        before = compiler.compile_graph
        compiler.compile_graph = functools.partial(self._compiled, before)
        try:
            yield
        finally:
            compiler.compile_graph = before

    def _compiled(self, compile_: Any, request: CompileRequest, *args: Any, **options: Any) -> CompileResult:
        if not self.is_in_use() or args or options or request.keep_stages or request.repro_dir or obstacle(request):
            return compile_(request, *args, **options)
        places = SourceLocations.of(request.ir)
        path = self.folder / self._name(request, places)
        try:
            sections = pickle.loads(path.read_bytes())
        except FileNotFoundError:
            pass
        else:
            self.hits += 1
            return from_sections(sections, places.listed)
        result = compile_(request)
        if not result.faulty:
            self._keep(path, to_sections(result, places.listed))
        return result

    def _name(self, request: CompileRequest, places: SourceLocations) -> str:
        parts = (
            key_of(request, places).digest,
            request.check_ms,
            request.check_bytes,
            request.pinned,
            request.name,
            libllvm.LEVEL,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _keep(self, path: Path, sections: dict[str, bytes]) -> None:
        with replacing(path) as new:  # whole, or not at all: other processes read it
            new.write_bytes(pickle.dumps(sections))
