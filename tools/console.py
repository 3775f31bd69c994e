"""What all command-line tools do around their work."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Sequence
from typing import Protocol


class Main(Protocol):
    """An entry point: arguments (default: those of the process) -> exit status."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def tool(main: Main) -> Main:
    """An entry point whose reader may go at any time, as in ``profuse-opt --help | head``.

    It then ends with status 1 and says nothing, not even at exit.
    """

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
            return 1

    return run
