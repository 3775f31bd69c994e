"""The disk cache among processes: many that share it, some that are killed, limited or forked."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest
from cached_graphs import Asked, leftovers, never, numbered, output_of, request, start
from every_case import EVERY_CASE
from profuse.executor.compile.cache.codec import check_entry
from profuse.executor.compile.cache.profiles import is_profile
from profuse.executor.compile.cache.store import Store

PROGRAM = """
import json, sys
import numpy as np, profuse as pf
{before}
count, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 3, 0
wrong = 0
def make(k):
    def f(x):
        return np.tanh(x * (k + 1.5)) + k
    return f
for k in range({count}):
    f, x = make(k), np.linspace(-1, 1, 60 + k, dtype=np.float32)
    g = pf.jit(f)
    for _ in range(3):
        wrong += not np.allclose(g(x), f(x), rtol=1e-4)
totals = pf.counters()
kinds = [e.kind for e in pf.events() if e.kind.startswith("disk")]
print(json.dumps([wrong, totals["disk_hits"], totals["disk_misses"], totals["kernel_launches"],
                  {{k: kinds.count(k) for k in kinds}}]))
"""


def test_files_may_not_grow(tmp_path):
    """A limit of the process, as a quota would be: one event, right results."""
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    process = start(PROGRAM.format(before=before, count=3), tmp_path)
    wrong, hits, misses, launches, kinds = json.loads(output_of(process))
    assert (wrong, hits, misses) == (0, 0, 3)
    assert launches == 6
    assert kinds == {"disk-miss": 3, "disk-off": 1}
    assert leftovers(Store(tmp_path)) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_processes_share_a_cache_that_is_being_vandalised(tmp_path):
    """Truncated, flipped and deleted while they run, and too small for all of it: every result is
    right, and what is left is whole."""
    small = {"PROFUSE_CACHE_BYTES": "20000"}
    program = PROGRAM.format(before="", count=4)
    running = [start(program, tmp_path, environment=small) for _ in range(4 if EVERY_CASE else 2)]
    store, rng, damaged = Store(tmp_path), random.Random(7), 0
    while any(process.poll() is None for process in running):
        for file in store.files():
            damaged += _vandalise(file.path, rng)
        time.sleep(0.02)
    for process in running:
        wrong, hits, misses, launches, kinds = json.loads(output_of(process))
        assert wrong == 0
        assert hits + misses == 4
        assert 8 <= launches <= 12, "two calls of each graph, or three where a profile was stored"
        assert "disk-off" not in kinds
    assert damaged > 0
    assert leftovers(store) == []
    assert sum(file.size for file in store.files()) <= 20000
    output_of(start(program, tmp_path))  # repairs what is still damaged
    wrong, hits, misses, _, kinds = json.loads(output_of(start(program, tmp_path)))
    assert (wrong, hits, misses, kinds) == (0, 4, 0, {"disk-hit": 8}), "profiles, too"


def _vandalise(path: Path, rng: random.Random) -> bool:
    """Cut, change or delete an entry, or leave it alone; whether something was done."""
    try:
        what = rng.randrange(4)
        if what == 0:
            os.truncate(path, rng.randrange(path.stat().st_size or 1))
        elif what == 1:
            with open(path, "r+b") as file:
                file.seek(rng.randrange(path.stat().st_size or 1))
                file.write(b"?")
        elif what == 2:
            path.unlink()
    except FileNotFoundError:
        return False
    return what < 3


def test_processes_that_compile_the_same_publish_one_entry_each(tmp_path):
    """No lock is held while they compile: all may, and whoever is last stays."""
    program = PROGRAM.format(before="", count=2)
    running = [start(program, tmp_path) for _ in range(4 if EVERY_CASE else 2)]
    for process in running:
        wrong, hits, misses, launches, _ = json.loads(output_of(process))
        assert (wrong, hits + misses) == (0, 2)
        assert 4 <= launches <= 6, "three of a graph whose profile was there"
    store = Store(tmp_path)
    assert sorted(is_profile(entry.key) for entry in map(store.check, store.files())) == [0, 0, 1, 1]
    for file in store.files():
        check_entry(store.check(file))
    wrong, hits, misses, _, _ = json.loads(output_of(start(program, tmp_path)))
    assert (wrong, hits, misses) == (0, 2, 0)


WRITER = """
import sys, os
sys.path.insert(0, {tests!r})
from pathlib import Path
from profuse.executor.compile.cache.profiles import is_profile
from profuse.executor.compile.cache.store import Store
from profuse.executor.compile.cache.entry import CacheEntry
from profuse.executor.compile.cache.cache_key import Key
store = Store(Path(os.environ["PROFUSE_CACHE_DIR"]))
print("ready", flush=True)
for k in range(10**9):
    store.put(CacheEntry(Key({{"ir": str(k % 5)}}), "f", 1.0, {{"ir": bytes([k % 256]) * 300000}}), 1 << 30)
"""


def test_a_writer_that_is_killed_leaves_no_torn_entry(tmp_path):
    store, rng = Store(tmp_path), random.Random(3)
    for _ in range(5):
        process = start(WRITER.format(tests=str(Path(__file__).parent)), tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0.01, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert 0 < len(store.files()) <= 5
    for file in store.files():
        store.check(file)
    assert len(leftovers(store)) <= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork_both_processes_use_it(folder):
    Asked(request())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            first = Asked(request(), never).counts == (1, 0)
            status = 0 if first and Asked(numbered(1)).counts == (0, 1) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert Asked(numbered(1), never).counts == (1, 0)
