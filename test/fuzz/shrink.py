"""Failing programs made small, and printed as scripts that run by themselves."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from . import data
from .compare import Reference
from .modes import MODES, Finding, check
from .programs import Program

CRASH = "the process died"
_LAYOUT = re.compile(r"(?<=\), )'\w+'(?=, \d)")
_KIND = re.compile(r"'(?:normal|special)'")


def needed(mode: str) -> tuple[str, ...]:
    """The modes to run for one of them."""
    return ("emitted", "warm") if mode == "warm" else (mode,)


def failure(program: Program, mode: str) -> Finding | None:
    """What goes wrong in this mode; None also for programs that miss a name in NumPy."""
    try:
        outcomes = Reference(program).outcomes
    except NameError:  # in what is around the function
        return None
    if any(isinstance(o.error, NameError) for o in outcomes):
        return None
    found = check(program, needed(mode), Counter())
    return next((f for f in found if f.mode == mode), None)


def failure_apart(program: Program, mode: str) -> Finding | None:
    """The same in a process of its own, which may crash."""
    pid = os.fork()
    if pid == 0:
        status = 0
        try:
            status = failure(program, mode) is not None
        finally:
            os._exit(int(status))
    died = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) < 0
    return Finding(program, mode, 0, CRASH) if died else None


def shrink(finding: Finding, seconds: float = 60.0) -> Finding:
    """A smaller program that fails in the same way; at most so long."""
    look = failure_apart if finding.what == CRASH else failure
    end = time.monotonic() + seconds
    best, again = finding, True
    while again:
        again = False
        for candidate in _smaller(best.program):
            if time.monotonic() > end:
                return best
            try:
                found = look(candidate, finding.mode)
            except SyntaxError:
                continue
            if found is not None and found.what == finding.what:
                best, again = found, True
                break
    return best


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less, those that are much smaller first."""
    for name in ("calls", "body", "results", "before"):
        parts = getattr(program, name)
        least = 1 if name in ("calls", "results") else 0
        for size in (len(parts) // 2, 1) if len(parts) > 3 else (1,):
            for start in range(len(parts) - size, -1, -size):
                left = parts[:start] + parts[start + size :]
                if len(left) >= least:
                    yield replace(program, **{name: left})
    if program.nested:
        yield replace(program, nested=False)
    for pattern, plain in ((_LAYOUT, "'C'"), (_KIND, "'eighths'")):
        for name in ("calls", "before"):
            parts = getattr(program, name)
            plainer = tuple(pattern.sub(plain, part) for part in parts)
            if plainer != parts:
                yield replace(program, **{name: plainer})
    for k, text in enumerate(program.body):
        if "\n" in text:
            inner = text.split("\n", 1)[1]
            first = "\n".join(line for line in inner.split("\n") if line.startswith("    "))
            body = (*program.body[:k], textwrap.dedent(first), *program.body[k + 1 :])
            yield replace(program, body=body)


def script(finding: Finding) -> str:
    """A script that shows the difference."""
    parts: list[Callable[..., object]] = [data.arr, data.given]
    program = finding.program
    options, settings = MODES[finding.mode]
    given = {"background": False, **options}
    if program.effects:
        given = {"unsupported": "python", **given}
    calls = "\n".join(f"    lambda: {call}," for call in program.calls)
    twice = "for again in range(2):  # the second is from disk\n    " * (finding.mode == "warm")
    return f"""\
# {program.name}, {finding.mode}, call {finding.call}: {finding.what}
import ml_dtypes, numpy as np, profuse as pf
{"".join(inspect.getsource(part) for part in parts)}
SOURCE = {_quoted(program.source())}
calls = [
{calls}
]
pf.knobs.cache = False
for name, value in {settings}.items():
    setattr(pf.knobs, name, value)
{twice}theirs, ours = dict(globals()), dict(globals())
exec(SOURCE, theirs), exec(SOURCE, ours)
g = pf.jit(ours["f"], **{given})
for call in calls:
    for run, scope in ((theirs["f"], theirs), (g, ours)):
        args, kwargs = call()
        try:
            print(run.__class__.__name__, repr(run(*args, **kwargs)))
        except Exception as error:
            print(run.__class__.__name__, type(error).__name__, error)
        if {program.effects}:
            state = [getattr(scope.get(n), "__dict__", scope.get(n)) for n in ("S", "G0", "G1")]
            print("  leaves", args, kwargs, *state)
"""


def _quoted(source: str) -> str:
    """A module's text as a literal that is as easy to read."""
    return f'"""\\\n{source}"""' if "\\" not in source and '"""' not in source else repr(source)
