"""The worker process: it reads requests from stdin, compiles them, and replies on stdout.

`process.Process` starts it as ``python -P -m profuse.executor.compile.worker SETTINGS``, so it does
not import the user's main module. It ends when its stdin ends, when its parent has died, or when
the timer of `limits.alarm_after` expires.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
from functools import partial

from .... import __version__
from ....dialect.errors import InternalError, ProfuseError
from ....dialect.pipeline.options import PipelineOptions
from ....lowering.cpu.pool_block import set_chunk_work
from ....lowering.target import host_target
from ....lowering.thread_pool import CHECKED
from ..compiler import compile_graph
from ..request import CompileRequest
from . import faults, protocol
from .frames import FrameError, frame, read_frame
from .limits import alarm_after, settle, stand_back

_POLL_SECONDS = 1.0  # interval at which an idle worker checks that its parent is alive
_GRACE = 5.0  # seconds by which the worker's own timer exceeds the parent's timeout
_SMALL = """
func.func @main(%0: tensor<?xf32>) -> !profuse.tensor {
  %1 = "profuse.tanh"(%0) : (tensor<?xf32>) -> !profuse.tensor
  return %1 : !profuse.tensor
}
"""


def main() -> int:
    """Serve requests until stdin ends or the parent has died; returns the exit status."""
    settings = json.loads(sys.argv[1])
    settle(settings["memory"])
    requests, replies = _take_streams()
    faults.REPLIES.fd = replies
    faults.meet(faults.START)
    set_chunk_work(CHECKED)
    _warm()
    # Starting takes more CPU time than most compiles, and all functions wait for it: a nice worker
    # would not get that beside NumPy's products on few cores, and slow them down all the while.
    stand_back(settings["nice"])
    _send(replies, protocol.encode_hello(__version__))
    while _wait_for(requests, settings["parent"]):
        try:
            payload = read_frame(partial(os.read, requests))
        except FrameError as error:
            print(f"profuse worker: {error}", file=sys.stderr)
            return 1
        if payload is None:
            return 0
        alarm_after(settings["timeout"] + _GRACE)
        reply = answer(payload, replies)
        alarm_after(0)
        _send(replies, reply)
    return 0


def answer(payload: bytes, replies: int) -> bytes:
    """The reply to a message; an unexpected exception becomes an InternalError.

    Before each fusion group the worker sends a message on ``replies``, so that the parent knows
    which group was compiled when a worker died.
    """
    try:
        request = protocol.decode_request(payload)
        faults.meet(request.name)

        def on_group(name: str) -> None:
            _send(replies, protocol.encode_group(name))
            faults.meet(f"{request.name}:{name}")

        def on_check(name: str) -> None:
            _send(replies, protocol.encode_group(name, checking=True))
            faults.meet(f"{request.name}:{name}:check")

        return protocol.encode_result(compile_graph(request, on_group, on_check=on_check))
    except ProfuseError as error:
        return protocol.encode_error(error)
    except protocol.WireError as error:
        return protocol.encode_error(InternalError(f"the compile worker got {error}"))
    except Exception as error:
        what = f"the compiler failed: {type(error).__name__}: {error}"
        return protocol.encode_error(InternalError(what))


def _take_streams() -> tuple[int, int]:
    """Private copies of stdin and stdout; from now on, text that a pass prints goes to stderr."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _warm() -> None:
    """Compile a small graph, because the first compile of a process takes many times longer.

    What is loaded by then lives as long as the process. Collections of garbage need not go through
    it: that took an eighth of the time of compiles.
    """
    compile_graph(CompileRequest(_SMALL, PipelineOptions().keyed(), host_target()))
    gc.freeze()


def _wait_for(requests: int, parent: int) -> bool:
    """Wait for input or the end of input, and return True; False if the parent has died.

    The end of input is not enough: a process that the parent has forked keeps the pipe open.
    """
    while os.getppid() == parent:
        ready, _, _ = select.select([requests], [], [], _POLL_SECONDS)
        if ready:
            return True
    return False


def _send(replies: int, payload: bytes) -> None:
    data = memoryview(frame(payload))
    while data:
        data = data[os.write(replies, data) :]


if __name__ == "__main__":
    try:
        status = main()
    except BrokenPipeError:
        status = 0  # the parent is gone
    sys.stderr.flush()
    os._exit(status)  # skip destructors: those of MLIR take long, and there is nothing to save
