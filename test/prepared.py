"""Runs the tools of lit tests in forks of one process that has imported them, and MLIR with them.

The imports of a tool take longer than most tests of IR. So lit.cfg.py starts `serve` once, and the
tools in RUN lines are ``python -S -E prepared.py SOCKET TOOL ARGUMENT…``: this sends its arguments,
streams, folder and environment to that process, and ends with the status of what ran there. What
tests of a cold start need is in pytest, which starts tools as users do.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_CRASHED = 134  # the status that a shell gives for an abort


def ask(path: str, tool: str, arguments: list[str]) -> int:
    """Have a tool run; returns its exit status.

    ``tool``: the name of a console script, or ``"python"`` for a script or options of Python.
    """
    call = json.dumps([tool, arguments, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(call).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(call)
        status = connection.recv(1)
    return status[0] if status else _CRASHED


def serve(path: str) -> None:
    """Answer at a socket until the standard input ends, which is a pipe of the process to serve."""
    import gc
    import select
    import signal

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)  # who asks before the imports are done waits
    _import_tools()
    gc.collect()
    gc.freeze()  # in each fork, what has been imported would be looked for garbage in
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            return
        connection, _ = listener.accept()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # tools wait for theirs
            listener.close()
            _answer(connection)
        connection.close()


def _import_tools() -> None:
    import profuse.tools.opt
    import profuse.tools.run  # noqa: F401
    from profuse.executor.compile.compiler import load_compiler

    load_compiler(gradients=True, gpu=True)


def _answer(connection: socket.socket) -> None:
    """Run what was asked for in this process, say how it ended, and end."""
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        tool, arguments, folder, environment = json.loads(file.read(int.from_bytes(size, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    status = _status(tool, arguments)
    connection.sendall(bytes([status & 0xFF]))
    os._exit(status & 0xFF)


def _status(tool: str, arguments: list[str]) -> int:
    import atexit
    import traceback

    try:
        try:
            _run(tool, arguments)
        finally:
            atexit._run_exitfuncs()
            sys.stdout.flush()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    else:
        return 0
    return 1


def _run(tool: str, arguments: list[str]) -> None:
    import runpy

    if tool == "python" and arguments[0].startswith("-"):
        import subprocess

        sys.exit(subprocess.run([sys.executable, *arguments]).returncode)
    if tool == "python":
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        return
    from profuse.tools import opt, run

    sys.argv = [tool, *arguments]
    sys.exit({"profuse-opt": opt.main, "profuse-run": run.main}[tool]())


if __name__ == "__main__":
    if sys.argv[2:] == ["--serve"]:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2], sys.argv[3:]))
