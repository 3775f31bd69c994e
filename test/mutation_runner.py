"""Runs mutations: each replaces a piece of text in a copy of the tree, and tests should fail then.

The command line is `mutations.py`, which has the mutations.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lowering_faults import FAULTS, NOT_SHOWN
from profuse.lowering.target import host_target

ROOT = Path(__file__).resolve().parents[1]
QUICK = 20.0  # seconds that the tests of a mutation may take if it is not declared slow
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
_TIMEOUT = 180.0  # seconds for the tests of one mutation
_PART = 10  # a sample is one mutation in so many
_NEEDS = re.compile(r'^ *(?:\w+ = )?pytest\.importorskip\("([\w.]+)"', re.MULTILINE)
_SKIPS = re.compile(r'^(\w+) = pytest\.mark\.skipif\(importlib\.util\.find_spec\("([\w.]+)"\) is None', re.MULTILINE)
_FUNCTION = re.compile(r"^def (\w+)\(.*?(?=^[^\s)]|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Mutation:
    """One deliberate fault.

    Attributes:
        name: what goes wrong.
        file: where, relative to the root.
        old, new: text that occurs exactly once, and what replaces it.
        tests: pytest ids below ``test/`` of which at least one must fail.
        also: further replacements that make the fault, each (file, old, new).
        hangs: the fault shows as a hang, so that tests which end at the timeout are a catch.
        slow: the tests take longer than `QUICK` seconds, and samples leave the mutation out.
        between_cpus: the fault shows where the host runs code of CPUs with other vectors, and is left out elsewhere.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[tuple[str, str, str], ...] = ()
    hangs: bool = False
    slow: bool = False
    between_cpus: bool = False


Status = Callable[[Path, tuple[str, ...], float], "int | None"]


def pytest_status(tree: Path, tests: tuple[str, ...], seconds: float = _TIMEOUT) -> int | None:
    """Exit status of pytest on a copy of the tree; None = it did not end in time."""
    pytest = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    return _status(tree, [*pytest, *(f"test/{t}" for t in tests)], seconds)


def corpus_status(tree: Path, _tests: tuple[str, ...], seconds: float = _TIMEOUT) -> int | None:
    """Exit status of compiling the corpus; 1 = a check failed. None = it did not end in time."""
    return _status(tree, ["test/proof_corpus.py"], seconds)


def _status(tree: Path, arguments: list[str], seconds: float) -> int | None:
    # Bytecode of a file that changes within a second would be taken for that of the next change;
    # conftest.py knows this value.
    environment = os.environ | {"PYTHONPATH": str(tree.parent), "PYTHONDONTWRITEBYTECODE": "mutated"}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:  # with what the tests have started
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def of_cpu_lowering(mutations: Sequence[Mutation]) -> list[Mutation]:
    """Faults that the check of new kernels has to notice."""
    known = [
        m
        for m in mutations
        if m.file.startswith("lowering/") and not m.file.startswith("lowering/gpu/") and m.name not in NOT_SHOWN
    ]
    return [*known, *(Mutation(*fault[:4], (), fault[4:]) for fault in FAULTS)]


def try_out(mutation: Mutation, tree: Path, seconds: float = _TIMEOUT, run: Status = pytest_status) -> str:
    """``"caught"``, ``"NOT CAUGHT"``, ``"TIMED OUT"``, or why it could not be tried.

    Tests that hang say nothing of what they would have found: a fault that shows as a hang has
    to be declared as one.
    """
    edits = [(mutation.file, mutation.old, mutation.new), *mutation.also]
    before = {file: (tree / file).read_text("utf-8") for file, _, _ in edits}
    after = dict(before)
    for file, old, new in edits:
        if after[file].count(old) != 1:
            return f"STALE: its text occurs {after[file].count(old)} times in {file}"
        after[file] = after[file].replace(old, new)
    try:
        for file, text in after.items():
            (tree / file).write_text(text, "utf-8")
        status = run(tree, mutation.tests, seconds)
    finally:
        for file, text in before.items():
            (tree / file).write_text(text, "utf-8")
    if status is None:
        return "caught" if mutation.hangs else "TIMED OUT"
    if status == 0:
        return "NOT CAUGHT"
    # A process with the fault may also crash: on a signal the status is negative.
    return "caught" if status == 1 or status < 0 else f"NOT RUN: it ended with {status}"


def lacks(mutation: Mutation) -> str:
    """The package without which none of the mutation's tests would run, or AVX-512; empty if it can be tried."""
    if mutation.between_cpus and "+avx512f" not in host_target().features.split(","):
        return "AVX-512"
    missing = ""
    for test in mutation.tests:
        file, _, name = test.partition("::")
        path = ROOT / "test" / file
        text = path.read_text("utf-8")
        above = text.partition(f"\ndef {name.partition('[')[0]}(")[0].rpartition("\n\n")[2].splitlines()
        skips = [package for mark, package in _SKIPS.findall(text) if f"@{mark}" in above]
        for function in _FUNCTION.finditer(text):  # what other functions need is not asked
            if function[1] != name.partition("[")[0]:
                text = text.replace(function[0], "")
        roots = [package.partition(".")[0] for package in (*_NEEDS.findall(text), *skips)]
        beside = {name for name in roots for folder in path.parents if (folder / f"{name}.py").exists()}
        lacking = [name for name in roots if name not in beside and not _is_there(name)]
        if not lacking:
            return ""
        missing = lacking[0]
    return missing


def _is_there(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def revision(root: Path = ROOT) -> str:
    """Text that differs from commit to commit: the commit, or without git a digest of the list."""
    try:
        done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    except OSError:
        pass
    return hashlib.sha256((root / "test" / "mutations.py").read_bytes()).hexdigest()


def sample(mutations: Sequence[Mutation], of: str) -> list[Mutation]:
    """The quick mutations of a tenth of all; which tenth depends on the text ``of`` alone."""
    first = int(hashlib.sha256(of.encode()).hexdigest(), 16) % _PART
    return [m for m in mutations[first::_PART] if not (m.slow or m.hangs)]


def main(mutations: Sequence[Mutation]) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="do the tests notice deliberate faults?")
    parser.add_argument("names", nargs="*", help="parts of names; default: all mutations")
    parser.add_argument("--sample", action="store_true", help="quick ones of a tenth, by commit")
    parser.add_argument("--seconds", type=float, help="begin no further mutation after so many")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--selfcheck", action="store_true", help="faults of lowering, which kernels' checks notice")
    arguments = parser.parse_args()
    names = arguments.names
    run: Status = corpus_status if arguments.selfcheck else pytest_status
    mutations = of_cpu_lowering(mutations) if arguments.selfcheck else mutations
    chosen = [m for m in mutations if not names or any(n in m.name for n in names)]
    if arguments.sample:
        chosen = sample(chosen, revision())
    if not arguments.selfcheck:
        left = [(m, package) for m in chosen if (package := lacks(m))]
        chosen = [m for m in chosen if not any(m is other for other, _ in left)]
        for m, package in left:
            print(f"left out, as {package} is not here: {m.name}")
        if left and not chosen:
            return 0
    with tempfile.TemporaryDirectory(prefix="profuse-mutations-") as folder:
        trees = [Path(folder) / str(k) / "profuse" for k in range(arguments.jobs)]
        for tree in trees:
            shutil.copytree(ROOT, tree, ignore=_LEFT_OUT)
        every = tuple(dict.fromkeys(t for m in chosen for t in m.tests))
        if run(trees[0], every, _TIMEOUT * max(1, len(chosen))) != 0:
            print("something fails, or is gone, without any mutation:", *every, file=sys.stderr)
            return 1
        begun = time.perf_counter()
        waiting = iter(chosen)
        outcomes: list[str] = []

        def work(tree: Path) -> None:
            while not (arguments.seconds and time.perf_counter() - begun > arguments.seconds):
                mutation = next(waiting, None)  # one step of the interpreter: no two get the same
                if mutation is None:
                    return
                start = time.perf_counter()
                outcome = try_out(mutation, tree, run=run)
                outcomes.append(outcome)
                seconds = time.perf_counter() - start
                late = seconds > QUICK and not mutation.slow
                remark = " (to be declared slow)" if late else ""
                print(f"{outcome:<11} {seconds:5.1f} s  {mutation.name}{remark}", flush=True)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(work, trees))
    caught, tried = outcomes.count("caught"), len(outcomes)
    if tried < len(chosen):
        print(f"after {arguments.seconds:.0f} s, {len(chosen) - tried} are left out")
    print(f"{caught} of {tried} caught")
    if arguments.selfcheck:
        for name, why in NOT_SHOWN.items():
            print(f"not tried: {name}: {why}")
    return 0 if caught == tried else 1
