"""A small compile, and a cache in a folder of its own, for tests of the disk cache."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import profuse as pf
from internals import FOLDER
from profuse.dialect.pipeline.options import PipelineOptions
from profuse.executor.compile.cache.lookup import cached
from profuse.executor.compile.cache.store import File, Store
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.request import CompileRequest, CompileResult
from profuse.executor.settings.events import Counters, Event
from profuse.executor.settings.knobs import knobs
from profuse.lowering.target import host_target

IR = """
module {
  func.func @f(%0: !profuse.tensor) -> (!profuse.tensor) {
    %1 = "profuse.profile"(%0) {profiled_type = tensor<4x8xf32, {strides = "contiguous"}>, site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor loc("user.py":3:0)
    %2 = "profuse.tanh"(%1) : (!profuse.tensor) -> !profuse.tensor loc("user.py":3:0)
    %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor loc("user.py":4:0)
    return %3 : !profuse.tensor
  }
}
"""  # noqa: E501

PACKAGE_PARENT = str(Path(pf.__file__).parents[1])


def request(**changes: Any) -> CompileRequest:
    """The compile of `IR`, or one that differs in some fields."""
    pipeline = PipelineOptions().optimizing()
    return replace(CompileRequest(IR, pipeline, host_target(), name="f"), **changes)


def numbered(number: int) -> CompileRequest:
    """One of many requests that miss each other."""
    return request(name=f"f{number}", ir=f"{IR}// {number}\n")


@functools.cache
def result() -> CompileResult:
    """The result of `request()`, compiled once per process; see `copy_of`."""
    return compile_graph(request())


def copy_of(_: CompileRequest) -> CompileResult:
    """Stands for a compile: a copy of `result()`."""
    return replace(result())


def never(_: CompileRequest) -> CompileResult:
    """Stands for a compile that must not happen."""
    raise AssertionError("the cache did not answer")


@contextmanager
def caching_in(folder: Path, **others: Any):
    """The disk cache on, in this folder; yields its store."""
    with knobs.override(cache=True, cache_dir=str(folder), **others):
        yield Store(folder)


class Asked:
    """A look-up: its result, its counters and the events it has logged."""

    def __init__(self, given: CompileRequest, compile_=copy_of) -> None:
        seen = len(pf.events())
        self.counters = Counters()
        self.result = cached(given, compile_, self.counters)
        self.events: tuple[Event, ...] = pf.events()[seen:]

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    @property
    def counts(self) -> tuple[int, int]:
        return self.counters.disk_hits, self.counters.disk_misses

    def reason(self, kind: str) -> str:
        (found,) = [event.reason for event in self.events if event.kind == kind]
        return found


def only_file(store: Store) -> File:
    """The one entry there is."""
    (file,) = store.files()
    return file


def leftovers(store: Store) -> list[str]:
    """Files in the folder that are no entries."""
    return [n for n in os.listdir(store.folder) if not n.endswith((".entry", ".fact"))]


def start(program: str, folder: Path, **options: Any) -> subprocess.Popen:
    """A process of its own that runs a program with the disk cache on."""
    environment = os.environ | {
        "PROFUSE_CACHE": "on",
        "PROFUSE_CACHE_DIR": str(folder),
        "PYTHONPATH": f"{PACKAGE_PARENT}:{FOLDER}",
        **options.pop("environment", {}),
    }
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def output_of(process: subprocess.Popen, seconds: float = 120) -> str:
    """What it printed, once it has ended well."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, out + err
    return out
