"""The worker process: compiles what comes in on stdin, answers on stdout.

Started as ``python -P -m profuse.executor.compile.worker SETTINGS`` by `process.Process`; it never
sees the user's main module. It ends when its stdin does, when its parent is gone, or when the
kernel carries out `limits.alarm_after`.
"""

from __future__ import annotations

import json
import os
import select
import sys
from functools import partial

from .... import __version__
from ....dialect.errors import InternalError, ProfuseError
from ....lowering.target import host_target
from ..compiler import compile_graph
from ..request import CompileRequest, keyed_pipeline
from . import faults, protocol
from .frames import FrameError, frame, read_frame
from .limits import alarm_after, settle

_POLL_SECONDS = 1.0  # how often an idle worker looks whether its parent is still there
_GRACE = 5.0  # beyond the parent's own timeout
_SMALL = """
func.func @main(%0: tensor<?xf32>) -> !profuse.tensor {
  %1 = "profuse.tanh"(%0) : (tensor<?xf32>) -> !profuse.tensor
  return %1 : !profuse.tensor
}
"""


def main() -> int:
    """Serve until there is nobody left to serve; the exit status."""
    settings = json.loads(sys.argv[1])
    settle(settings["nice"], settings["memory"])
    requests, replies = _take_streams()
    faults.REPLIES.fd = replies
    faults.meet(faults.START)
    _warm()
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
    """The reply to a message; what nobody foresaw is an InternalError.

    Groups are announced on ``replies``, so that the parent knows which one has killed a worker.
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
    """Private copies of stdin and stdout; what a pass prints goes to stderr from now on."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _warm() -> None:
    """Compile something small: the first compile of a process takes many times longer."""
    compile_graph(CompileRequest(_SMALL, keyed_pipeline(1, 128, 128), host_target()))


def _wait_for(requests: int, parent: int) -> bool:
    """True once there is something to read, be it the end; False if the parent is gone.

    A child that the parent forked holds the pipe open after it.
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
    os._exit(status)  # no destructors: MLIR's own take long, and there is nothing to save
