"""The frame of all command-line tools around their work."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from ..dialect.errors import ProfuseError
from .user_code import UsersError


class Main(Protocol):
    """An entry point: arguments (default: those of the process) -> exit status."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def tool(name: str, *errors: type[Exception]) -> Callable[[Main], Main]:
    """Decorate the entry point of a tool, which is called ``name``.

    Errors of ours, those of the user's code, and ``errors`` become one message on stderr, and exit
    status 1. A reader may go at any time, as in ``profuse-opt --help | head``: the tool then ends
    with status 1 and says nothing, not even at exit.
    """

    expected: tuple[type[Exception], ...] = (ProfuseError, UsersError, *errors)

    def decorate(main: Main) -> Main:
        @functools.wraps(main)
        def run(argv: Sequence[str] | None = None) -> int:
            try:
                try:
                    return main(argv)
                finally:  # argparse leaves by an exception when it has printed its help
                    if sys.stdout is not None:
                        sys.stdout.flush()
            except BrokenPipeError:
                # Python writes what is left in its buffer when it ends; there it has a reader.
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except expected as error:
                print(f"{name}: error: {error}", file=sys.stderr)
            return 1

        return run

    return decorate
