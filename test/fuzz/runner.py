"""Runs programs in child processes, so that a crash costs one of them, and says what was found."""

from __future__ import annotations

import faulthandler
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profuse.lowering.cpu.pool_block import set_chunk_work
from profuse.lowering.thread_pool import CHECKED, CHUNK

from .modes import TURNS, Finding, check
from .programs import TooLong, at_most, generate
from .shrink import CRASH, script, shrink

BATCH = 200  # programs per process
_SECONDS = 60  # that a program may take in all modes


@dataclass
class Report:
    """What became of the programs.

    Attributes:
        counts: programs, calls, refusals by reason, and what executors counted.
        found: what went wrong -> (program, mode) of each.
        scripts: what went wrong -> a small program that shows it.
    """

    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)


def child(seed: int, numbers: Sequence[int], modes: tuple[str, ...]) -> None:
    """Check programs, and tell each step in a line of JSON; no modes = by number, in turn."""
    faulthandler.enable()

    dies_at = os.environ.get("FUZZ_CRASH")  # for the test of what becomes of a crash

    def tell(**what: object) -> None:
        print(json.dumps(what), flush=True)

    for number in numbers:
        counts: Counter[str] = Counter()
        set_chunk_work(CHECKED if number % 2 else CHUNK)
        tell(begin=number, mode="generate")
        program = generate(seed, number)
        turn = modes or ("tier 0", *TURNS[number % len(TURNS)])
        if dies_at == str(number):
            tell(begin=number, mode=turn[0])
            os.kill(os.getpid(), signal.SIGSEGV)
        try:
            with at_most(_SECONDS):
                found = check(program, turn, counts, lambda m, n=number: tell(begin=n, mode=m))
        except TooLong:
            found = [Finding(program, "", 0, f"takes longer than {_SECONDS} s")]
        tell(end=number, counts=counts, found=[(f.mode, f.what) for f in found])


def run(
    seed: int, first: int, programs: int, jobs: int, modes: tuple[str, ...], shrink_seconds: float = 60.0
) -> Report:
    """Check so many programs in so many processes at a time; no modes = one each, in turn."""
    report = Report()
    left = [list(range(k, min(k + BATCH, first + programs))) for k in range(first, first + programs, BATCH)]
    selector = selectors.DefaultSelector()
    running: set[_Child] = set()
    while left or running:
        while left and len(running) < jobs:
            started = _Child(seed, left.pop(0), modes)
            running.add(started)
            selector.register(started.process.stdout, selectors.EVENT_READ, started)
        for key, _ in selector.select(1.0):
            line = key.data.process.stdout.readline()
            if line and not line.startswith('{"'):
                continue  # LAPACK prints what it is not pleased with
            if line:
                key.data.hear(json.loads(line), report)
                continue
            selector.unregister(key.fileobj)
            running.discard(key.data)
            rest = key.data.ended(report)
            if rest:
                left.insert(0, rest)
        for one in running:
            if time.monotonic() - one.heard > 3 * _SECONDS:
                one.process.kill()  # stuck in native code, where no alarm is heard
    for what, where in report.found.items():
        report.scripts[what] = _shrunk(what, *where[0], shrink_seconds)
    return report


class _Child:
    """One process and what it has still to do."""

    def __init__(self, seed: int, numbers: list[int], modes: tuple[str, ...]) -> None:
        self.seed, self.numbers = seed, numbers
        self.at: tuple[int, str] | None = None
        self.heard = time.monotonic()
        environment = os.environ | {"PROFUSE_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"}
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "fuzz",
            "--child",
            "--seed",
            str(seed),
            *(["--modes", *modes] if modes else ["--rotate"]),
            "--numbers",
            *map(str, numbers),
        ]
        self.process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], env=environment, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def hear(self, told: dict, report: Report) -> None:
        self.heard = time.monotonic()
        if "begin" in told:
            self.at = told["begin"], told["mode"]
            return
        report.counts["programs"] += 1
        report.counts.update(told["counts"])
        self.numbers.remove(told["end"])
        self.at = None
        for mode, what in told["found"]:
            report.found.setdefault(what, []).append((f"{self.seed}/{told['end']}", mode))
            print(f"{self.seed}/{told['end']:<6} {mode:<10} {what}", flush=True)

    def ended(self, report: Report) -> list[int]:
        """What is left to do: nothing, or what comes after the program it died of."""
        self.process.stdout.close()
        status = self.process.wait()
        if status == 0:
            return []
        if self.at is None or status > 0:
            raise RuntimeError(f"a process ended with {status} at {self.at}")
        number, mode = self.at
        report.found.setdefault(CRASH, []).append((f"{self.seed}/{number}", mode))
        print(f"{self.seed}/{number:<6} {mode:<10} {CRASH} of signal {-status}", flush=True)
        self.numbers.remove(number)
        return self.numbers


def _shrunk(what: str, name: str, mode: str, seconds: float) -> str:
    """A script of the program, shrunk in a process of its own."""
    command = [sys.executable, "-m", "fuzz", "--shrink", name, mode, what, str(seconds)]
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            env=os.environ | {"PROFUSE_CACHE": "off"},
            timeout=3 * seconds + 60,
        )
    except subprocess.TimeoutExpired:
        return f"# {name}: shrinking it took too long"
    return done.stdout or f"# {name} could not be shrunk: {done.stderr[-500:]}"


def shrunk_script(name: str, mode: str, what: str, seconds: float) -> str:
    """A small script of what goes wrong with a program in a mode."""
    seed, number = map(int, name.split("/"))
    return script(shrink(Finding(generate(seed, number), mode, 0, what), seconds))
