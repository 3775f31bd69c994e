"""``python -m profuse.executor.compile.proof FILE``: repeat a check that has failed.

The reason of a failed check contains the path of FILE. Exit status 1 = the check fails again.
"""

from __future__ import annotations

import argparse
import sys

from ....dialect.errors import ProfuseError
from ....lowering.cpu.pool_block import set_chunk_work
from ....lowering.thread_pool import CHECKED
from .check_verdict import FAILED
from .kept import MODULE
from .repeat import replay


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("file")
    set_chunk_work(CHECKED)  # as in workers
    try:
        verdict = replay(parser.parse_args().file)
    except ProfuseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(verdict)
    return 1 if verdict.outcome == FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
