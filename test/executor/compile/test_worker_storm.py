"""Processes that share one disk cache, whose workers are killed at random moments."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from cached_graphs import caching_in, output_of, start
from every_case import EVERY_CASE
from profuse.executor.compile.cache.codec import check_entry
from profuse.executor.compile.cache.profiles import is_profile

COMPILES = int(os.environ.get("PROFUSE_STORM_COMPILES", "16" if EVERY_CASE else "6"))  # over all processes
PROCESSES = 4 if EVERY_CASE else 2

# Two processes each share graphs, from both ends, so that the second half of them can be hits.
PROGRAM = """
import json, os, random, signal, sys, threading, time
import numpy as np
import profuse as pf
from internals import worker_processes
from profuse.executor.compile import worker

number, count = int(sys.argv[1]), int(sys.argv[2])
rng, done, pids = random.Random(number), threading.Event(), set()

def strike():
    # One less than there are graphs: on a slow machine, too, one of them is compiled in peace.
    for _ in range(count - 1):
        struck = False
        while not struck and not done.wait(rng.uniform(0.5, 3.0)):
            for process in worker_processes(worker.shared_pool())[:1]:
                # Not at their start: three in a row that do not start are given up for good.
                if struck := process.size_ready > 0:
                    pids.add(process.pid)
                    os.kill(process.pid, signal.SIGKILL)

def graph(k):
    def fn(x):
        for j in range(1 + k % 5):
            x = np.tanh(x * (k + 1.0) + j)
        return x.sum(axis=0) - k
    return fn

threading.Thread(target=strike, daemon=True).start()
x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
tiers = []
first = number // 2 * count
for k in range(first, first + count)[:: 1 if number % 2 else -1]:
    fn = graph(k)
    f = pf.jit(fn, name=f"g{k}")
    for _ in range(4):
        np.testing.assert_allclose(f(x), fn(x), rtol=1e-5, atol=1e-5)
        f.wait()
    np.testing.assert_allclose(f(x[:2]), fn(x[:2]), rtol=1e-5, atol=1e-5)
    state = f.state()
    assert state.tier == "optimized" or any("replay with" in r for r in state.reasons), state
    tiers.append(state.tier)
done.set()
pids.update(process.pid for process in worker_processes(worker.shared_pool()))
c = pf.counters()
assert "mlir" not in sys.modules
print(json.dumps({
    "pids": sorted(pids), "tiers": tiers, "lost": worker.shared_pool().counts.lost,
    "hits": c["disk_hits"], "misses": c["disk_misses"], "here": c["in_process_compiles"],
}))
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_killed_at_random_cost_no_result_no_entry_and_no_orphan(tmp_path):
    folder, count = tmp_path / "cache", max(1, COMPILES // PROCESSES)
    environment = {"PROFUSE_BACKGROUND": "on"}
    program = tmp_path / "storm.py"
    program.write_text(PROGRAM)
    processes = [
        start(
            f"import sys, runpy; sys.argv[1:] = ['{k}', '{count}']; runpy.run_path({str(program)!r})",
            folder,
            environment=environment,
        )
        for k in range(PROCESSES)
    ]
    said = [json.loads(output_of(process, 120 + 5 * COMPILES)) for process in processes]
    pids = {pid for one in said for pid in one["pids"]}
    deadline = time.monotonic() + 60  # a busy machine takes its time; where all is well, nobody waits
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, pids)), "a worker outlives its process"
    assert pids, "no worker was struck"
    assert sum(one["here"] for one in said) == 0
    assert all(len(one["tiers"]) == count for one in said)
    with caching_in(folder) as store:
        entries = [store.check(file) for file in store.files()]
        for entry in entries:
            check_entry(entry)
    misses = sum(one["misses"] for one in said)
    assert 0 < sum(not is_profile(entry.key) for entry in entries) <= misses
    print({k: [one[k] for one in said] for k in ("lost", "hits", "misses", "tiers")})
