"""A process that runs one system, as its parent says; and what the parent holds of it.

Each system has a process of its own: its threads, libraries and caches are nobody else's, and one
that crashes or hangs takes nothing with it. Calls are timed in there, without what the pipe takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WARM = 3  # calls, by which all systems have compiled what they will
TIMEOUT = 300.0  # seconds that one command may take


class WorkerError(Exception):
    """A system that could not do what was asked, and why."""


class Worker:
    """A system in a process of its own; ``env``: in addition to this process's."""

    def __init__(self, system: str, env: dict[str, str], timeout: float = TIMEOUT) -> None:
        self.system, self.timeout = system, timeout
        # A function that no graph can hold must not be measured as ours while Python runs it.
        ours = {"BENCH_SYSTEM": system, "PROFUSE_UNSUPPORTED": "raise"}
        self._env = os.environ | env | ours
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as this
        self._process: subprocess.Popen | None = None

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command; raises WorkerError, after which the process starts anew."""
        process = self._process or self._start()
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], self.timeout)
            line = process.stdout.readline() if ready else ""
        except OSError:
            ready, line = [True], ""
        if not line:
            self.close()
            reason = "it crashed" if ready else f"it took more than {self.timeout:.0f} s"
            raise WorkerError(f"{reason}: {self._last_words()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise WorkerError(answer["failed"])
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.worker"],
            env=self._env,
            text=True,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class Served:
    """The contents of a worker: one kernel, prepared."""

    def __init__(self, system: str) -> None:
        self.system = system
        self.prepared: Any = None

    def prepare(self, kernel: str, dtype: str, size: list, exact: str | None) -> dict[str, Any]:
        """Compile a kernel and compare its results with the exact ones in a file."""
        import numpy as np
        import suite

        from . import systems

        self.prepared = None  # its arrays are free before there are new ones
        case = suite.case(kernel, dtype, suite.Size(*size))
        case.args()
        start = time.perf_counter()
        prepared = systems.SYSTEMS[self.system](case)
        out = prepared.call()
        first = time.perf_counter() - start
        seconds = []
        for _ in range(WARM - 1):
            start = time.perf_counter()
            out = prepared.call()
            seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        out = prepared.call()
        usual = time.perf_counter() - start
        if exact is not None:
            with np.load(exact) as file:
                error = case.error(prepared.results(out), tuple(file[n] for n in file.files))
            if not error <= 1:
                raise ArithmeticError(f"its error is {error:.3g} times what is tolerated")
        self.prepared = prepared
        return {"compile_seconds": first + sum(seconds) - WARM * usual, "usual": usual, "steady": prepared.steady()}

    def time(self, calls: int, warm: int) -> dict[str, Any]:
        """Seconds per call, after some that warm the caches."""
        call = self.prepared.call
        for _ in range(warm):
            call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return {"seconds": (time.perf_counter() - start) / calls}

    def drop(self) -> dict[str, Any]:
        """Free the arrays of the kernel."""
        self.prepared = None
        return {}


def serve() -> None:
    """Answer each line of the input with a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    from . import systems

    systems.pin()
    served = Served(os.environ["BENCH_SYSTEM"])
    for line in sys.stdin:
        asked = json.loads(line)
        do = getattr(served, asked.pop("do"))
        try:
            answer = do(**asked)
        except Exception as error:
            words = str(error).strip().splitlines() or [""]
            answer = {"failed": f"{type(error).__name__}: {words[0][:200]}"}
        with contextlib.suppress(BrokenPipeError):
            # Files of results are read on other machines: places are those in the checkout.
            answers.write(json.dumps(answer).replace(f"{ROOT}/", "") + "\n")
            answers.flush()


if __name__ == "__main__":
    serve()
