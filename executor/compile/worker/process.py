"""The parent's side of one worker process: starting, asking, watching and ending it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from ....dialect.dataclass import dataclass
from ....dialect.interrupts import interrupts_held_back
from .frames import FrameError, FrameReader, frame
from .protocol import WireError, decode_hello

_POLL_MS = 50  # interval at which the parent checks memory and deadline of a busy worker
_START_SECONDS = 60.0  # time limit of a start: MLIR may load from a cold disk on a busy machine
_PIECE = 1 << 18
_HOME = str(Path(__file__).parents[__name__.count(".")])  # the folder that contains this package
_SAYS_WHY = re.compile(r"Assertion|LLVM ERROR|Error\b|error:")


@dataclass(frozen=True)
class Limits:
    """The limits of a worker.

    Attributes:
        timeout: seconds per request.
        memory: bytes of resident memory of its own, without the pages of files.
        nice: number to add to the worker's nice value.
        idle: seconds without work after which the worker is ended.
    """

    timeout: float = 60.0
    memory: int = 4 << 30
    nice: int = 10
    idle: float = 300.0


class Lost(Exception):
    """A worker has died or was killed; the message says why.

    Attributes:
        delivered: True if the worker had received the request, which may be the cause.
        group: the fusion function that the worker had begun to compile; "" = none.
        checking: True if the worker was running that function's kernel to check it.
    """

    def __init__(self, reason: str, *, delivered: bool = True, group: str = "", checking: bool = False) -> None:
        self.reason, self.delivered, self.group = reason, delivered, group
        self.checking = checking
        super().__init__(reason)


class Process:
    """A worker process. Only one thread may use it at a time, except for `kill` and `abandon`.

    The system kills the worker when the thread that made this object ends, so that thread must
    live as long as the worker.

    Attributes:
        size_ready: bytes of memory of its own after the worker had loaded the compiler.
        group: the fusion function that the worker is compiling; "" = none.
        checking: True if the worker is running that function's kernel to check it.
    """

    def __init__(self, limits: Limits) -> None:
        """Start a worker; `wait_ready` waits until it can work. Raises Lost if the start fails."""
        self.limits = limits
        self.size_ready, self.group, self.checking = 0, "", False
        self._deadline = 0.0
        self._reader = FrameReader()
        settings = json.dumps({**asdict(limits), "parent": os.getpid()})
        command = [sys.executable, "-P", "-m", __package__, settings]
        with contextlib.ExitStack() as opened:
            try:
                # A file and not a pipe, which a lot of output would fill. It is opened for
                # appending, so that truncating it is safe.
                self._said = opened.enter_context(tempfile.TemporaryFile("a+b", buffering=0))
                with interrupts_held_back():
                    self._process = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=self._said,
                        bufsize=0,
                        env=_environment(),
                        cwd="/",
                    )
            except (OSError, ValueError) as error:
                raise Lost(f"cannot start {sys.executable}: {error}", delivered=False) from None
            opened.pop_all()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        os.set_blocking(self._out.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self, version: str) -> None:
        """Wait until the worker has loaded the compiler.

        Raises Lost if the worker fails, or if it runs another version of this package.
        """
        try:
            self._deadline = time.monotonic() + _START_SECONDS
            said = decode_hello(self._converse(b"", _START_SECONDS))
        except (FrameError, WireError) as error:
            raise self._end(f"said something else than hello: {error}") from None
        if said != version:
            raise self._end(f"is of version {said}, not {version}")
        self.size_ready = self.memory()

    def ask(self, payload: bytes) -> bytes:
        """Send a message and return the first reply; `more` returns later ones.

        One time limit holds for all replies. Raises Lost; this object cannot be used after that.
        """
        self.group, self.checking = "", False
        if not self.is_alive:
            raise self._end("", delivered=False)
        self._deadline = time.monotonic() + self.limits.timeout
        return self._reply(frame(payload))

    def more(self) -> bytes:
        """The next reply to the same message. Raises Lost."""
        return self._reply(b"")

    def _reply(self, data: bytes) -> bytes:
        try:
            return self._converse(data, self.limits.timeout)
        except FrameError as error:
            raise self._end(f"sent what is not a reply: {error}") from None

    def loss(self) -> Lost:
        """The error for a worker that has died while it was idle."""
        return self._end("", delivered=False)

    def memory(self) -> int:
        """Bytes of resident memory of its own; 0 if the system does not tell.

        The pages of files do not count. Libraries take some 150 MB of them, which processes share
        and the system can drop; how many are resident depends on what the system has read ahead.
        """
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                _, resident, of_files, *_ = map(int, file.read().split())
                return (resident - of_files) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return 0

    def take_said(self) -> str:
        """The text that the worker has written to stderr since the last call."""
        if not self._size_said():
            return ""
        self._said.seek(0)
        text = self._said.read().decode(errors="replace")
        self._said.truncate(0)
        return text

    def kill(self) -> None:
        """Kill the worker, from any thread; a thread that waits for its reply notices that."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """Kill the worker and close its streams."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        for stream in (self._in, self._out, self._said):
            stream.close()

    def abandon(self) -> None:
        """Close the streams in a forked child; the parent continues to use the worker."""
        self._process.returncode = 0  # else the finalizer would wait for the parent's child
        for stream in (self._in, self._out, self._said):
            stream.close()

    def _size_said(self) -> int:
        return os.fstat(self._said.fileno()).st_size

    def _converse(self, data: bytes, seconds: float) -> bytes:
        """Send bytes and wait for one frame, within the limits.

        ``seconds``: the time limit, for the error message; the deadline is `_deadline`.
        """
        remaining = memoryview(data)
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if remaining:
            poll.register(self._in, select.POLLOUT)
        while True:
            for fd, event in poll.poll(_POLL_MS):
                if fd == self._out.fileno():
                    payload = self._receive(not remaining)
                    if payload is not None:
                        return payload
                elif event & select.POLLERR:
                    raise self._end("", delivered=False)
                else:
                    remaining = self._send(remaining)
                    if not remaining:
                        poll.unregister(self._in)
            if time.monotonic() > self._deadline:
                raise self._end(f"took more than {seconds:g} seconds")
            if self.memory() > self.limits.memory:
                raise self._end(f"took more than {self.limits.memory >> 20} MiB of memory")

    def _send(self, left: memoryview) -> memoryview:
        try:
            return left[self._in.write(left) or 0 :]
        except BlockingIOError:
            return left
        except OSError:
            raise self._end("", delivered=False) from None

    def _receive(self, delivered: bool) -> bytes | None:
        piece = self._out.read(min(_PIECE, self._reader.missing))
        if piece is None:
            return None
        if not piece:
            raise self._end("", delivered=delivered)
        return self._reader.feed(piece)

    def _end(self, reason: str, *, delivered: bool = True) -> Lost:
        """Close the worker and return the error to raise.

        ``reason``: why the parent ends the worker; "" = the worker has ended itself.
        """
        if not reason:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        status = None if reason else self._process.poll()
        said = self.take_said()
        self.close()
        if not reason:
            reason = _fate(status)
        why = _telling_line(said)
        reason = f"{reason}: {why}" if why else reason
        return Lost(reason, delivered=delivered, group=self.group, checking=self.checking)


def _fate(status: int | None) -> str:
    if status is None:
        return "stopped answering"
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _telling_line(said: str) -> str:
    """The most informative line of a dead worker's stderr."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if _SAYS_WHY.search(line)]
    return (telling or lines or [""])[-1][:400]


def _environment() -> dict[str, str]:
    """Environment variables for a worker: those of this process, with its module search path."""
    env = dict(os.environ)
    if sys.flags.ignore_environment:
        env = {name: text for name, text in env.items() if not name.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(_module_path())
    env.pop("PYTHONINSPECT", None)
    return env


def _module_path() -> list[str]:
    """This process's module search path, without the folders around the user's script.

    A file there with the name of a module of the compiler would be imported in its place. This
    process may never notice such a file, as it does not import the compiler.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    around = {os.path.dirname(os.path.abspath(script))} if script else set()
    with contextlib.suppress(OSError):
        around.add(os.getcwd())
    entries = [entry for entry in sys.path if os.path.isabs(entry) and entry not in around]
    return list(dict.fromkeys((*entries, _HOME)))
