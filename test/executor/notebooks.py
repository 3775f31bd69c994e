"""A real Jupyter kernel in a process of its own, driven as a notebook drives it."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, Self

from cached_graphs import PACKAGE_PARENT
from internals import FOLDER
from jupyter_client.manager import AsyncKernelManager

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FIRST_CELL = """
import asyncio, gc, linecache, sys, threading, time, weakref
import numpy as np, profuse as pf
from internals import executors, name_of, worker_process
from profuse.executor.observe import live_functions
from profuse.executor.compile.worker import shared_pool

def worker():
    return worker_process(shared_pool()).pid

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
"""


@dataclass
class Cell:
    """What came of one cell: what it printed, and the exception that ended it.

    Attributes:
        raised: the exception's class, "" = none.
        value: the exception's text.
        traceback: as IPython shows it, without colours.
    """

    stdout: str = ""
    stderr: str = ""
    raised: str = ""
    value: str = ""
    traceback: str = ""

    def add(self, message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            setattr(self, content["name"], getattr(self, content["name"]) + content["text"])
        elif message["msg_type"] == "error":
            self.raised, self.value = content["ename"], content["evalue"]
            self.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))


class Notebook:
    """A kernel with a client: `run` runs a cell, `restart` is what the menu has under that name.

    A context manager, which shuts it down. Background compiles and the disk cache, in ``folder``,
    are on, as they are by default.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        # Without PYTEST_*, too: kernels that find it leave the descriptors of their streams alone.
        ours = ("PROFUSE_", "PYTEST_")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        settings = {
            "PROFUSE_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": f"{PACKAGE_PARENT}:{FOLDER}",
            "IPYTHONDIR": str(folder / "ipython"),
        }
        self._environment = inherited | settings | environment
        self._log = folder / "kernel.log"
        self._manager = AsyncKernelManager(connection_file=str(folder / "kernel.json"))

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._loop = opened.enter_context(asyncio.Runner())
            said = opened.enter_context(open(self._log, "ab"))
            self._loop.run(self._manager.start_kernel(env=self._environment, stdout=said, stderr=said))
            opened.callback(self.shut_down)
            self._client = self._manager.client()
            self._client.start_channels()
            self._begin()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _begin(self) -> None:
        self._loop.run(self._client.wait_for_ready(timeout=60))
        self.prints(_FIRST_CELL)

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return self._manager.provisioner.pid

    def run(self, code: str, *, interrupted: bool = False) -> Cell:
        """Run a cell to its end, or press the square button once it has printed something."""
        cell = Cell()
        begun = []

        def hook(message: dict[str, Any]) -> None:
            cell.add(message)
            if interrupted and cell.stdout and not begun:
                begun.append(asyncio.get_running_loop().create_task(self._interrupt()))

        self._loop.run(
            self._client.execute_interactive(dedent(code).strip(), timeout=60, allow_stdin=False, output_hook=hook)
        )
        return cell

    async def _interrupt(self) -> None:
        await asyncio.sleep(0.2)  # a kernel that is still printing may send no reply at all
        await self._manager.interrupt_kernel()

    def prints(self, code: str) -> str:
        """What a cell prints that has nothing to complain about."""
        cell = self.run(code)
        assert not cell.raised, cell.traceback
        assert not cell.stderr
        return cell.stdout

    def restart(self) -> None:
        """A new kernel for the same client."""
        self._loop.run(self._manager.restart_kernel())
        self._begin()

    def shut_down(self) -> None:
        """End the kernel as the server does; more calls do nothing."""
        if self._manager.has_kernel:
            self._client.stop_channels()
            self._loop.run(self._manager.shutdown_kernel())
