"""``profuse-report``: run a Python script, and write a page that shows what Profuse made of it.

    profuse-report script.py [arguments of the script] -o report.html
    profuse-report run.jsonl -o report.html

The second makes a page of a log (PROFUSE_LOG=run.jsonl): there are no calls and no IR in it.

``-o`` may stand anywhere; what comes after ``--`` is all the script's. The exit status is that of
the script. The page is written also if the script fails.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...dialect.errors import ArgumentError, FileError, ProfuseError
from ...executor.files import check_writable
from ...executor.observe import live_functions
from ...executor.observe.perfetto import trace
from ..console import tool
from . import save
from .collect import collect
from .model import Run
from .page import render
from .recorded import from_log

_PATIENCE = 600.0  # seconds; a busy machine may take a minute to start a worker, and another one to compile
_USAGE = "usage: profuse-report [-h] [-o FILE] [--title TITLE] SCRIPT [ARGUMENT ...]"
_OPTIONS = {"-o": "output", "--output": "output", "--title": "title"}


@tool("profuse-report")
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status of the script (2 = it was not run)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        options, script = _split(arguments)
        if options is None:
            print(f"{_USAGE}\n\n{__doc__}".rstrip())
            return 0
        output = Path(os.path.abspath(options.get("output", "report.html")))
        check_writable(output, "a report")
        _check_script(script)
        if script[0].endswith(".jsonl"):
            _write(from_log(Path(script[0]), options.get("title", "")), output)
            return 0
    except ProfuseError as error:
        print(f"profuse-report: error: {error}", file=sys.stderr)
        return 2
    with trace() as timeline:
        status, ended = _run_script(script)
        _join_threads()
        missing = _wait_for_compiles()
    title = options.get("title") or Path(script[0]).name
    try:
        _write(collect(title, shlex.join(script), timeline, " ".join(filter(None, (ended, missing)))), output)
        return status
    except ProfuseError as error:
        print(f"profuse-report: error: {error}", file=sys.stderr)
        return status or 1


def _write(run: Run, output: Path) -> None:
    save(render(run), output)
    print(f"profuse-report: {output}", file=sys.stderr)


def _split(arguments: list[str]) -> tuple[dict[str, str] | None, list[str]]:
    """Our options, and the script with its arguments; None = help is asked for."""
    options: dict[str, str] = {}
    script: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument == "--":
            script += rest
        elif name in _OPTIONS:
            if not equals:
                value = next(rest, "")
            if not value:
                raise ArgumentError(f"{name} needs a value")
            options[_OPTIONS[name]] = value
        elif not script and argument in ("-h", "--help"):
            return None, []
        elif not script and argument.startswith("-"):
            raise ArgumentError(f"there is no option {argument}", hint=_USAGE)
        else:
            script.append(argument)
    if not script:
        raise ArgumentError("no script is given", hint=_USAGE)
    return options, script


def _check_script(script: list[str]) -> None:
    if not Path(script[0]).is_file():
        raise FileError(f"there is no file {script[0]}")


def _run_script(script: list[str]) -> tuple[int, str]:
    """Run it as Python does; its exit status, and how it ended, if not well."""
    with _as_main(script):
        try:
            runpy.run_path(script[0], run_name="__main__")
        except SystemExit as leaving:
            return _status(leaving.code)
        except KeyboardInterrupt:
            return 130, "The script was interrupted."
        except BaseException as error:
            _strip_frames(error, script[0])
            traceback.print_exception(error)
            return 1, "The script ended with " + "".join(traceback.format_exception_only(error)).strip()
    return 0, ""


def _status(code: object) -> tuple[int, str]:
    if code is None or code == 0:
        return 0, ""
    if isinstance(code, int):
        return code, f"The script left with exit status {code}."
    print(code, file=sys.stderr)
    return 1, f"The script left with: {code}"


@contextlib.contextmanager
def _as_main(script: list[str]) -> Iterator[None]:
    """The state of `sys` that a script expects which is run on its own."""
    arguments, path = sys.argv, list(sys.path)
    sys.argv = script
    sys.path[0] = str(Path(script[0]).resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, path


def _strip_frames(error: BaseException, script: str) -> None:
    """Leave out the frames above the script's own."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != script:
        frame = frame.tb_next
    if frame is not None:
        error.__traceback__ = frame


def _join_threads() -> None:
    """Wait as Python does at its end, so that what threads do is part of the run."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _wait_for_compiles() -> str:
    """Wait for background compiles, which belong to the run; what the page lacks if they do not end, else ""."""
    deadline = time.monotonic() + _PATIENCE
    ended = [function.wait(max(deadline - time.monotonic(), 0.0)) for function in live_functions.functions()]
    return "" if all(ended) else f"Compiles that had not ended {_PATIENCE / 60:.0f} minutes later are not shown."


if __name__ == "__main__":
    sys.exit(main())
