"""``python -m profuse.executor.compile.proof FILE``: run a check again that has failed.

FILE is named by the reason why a kernel does not serve. Exit status 1 = it fails again.
"""

from __future__ import annotations

import argparse
import sys

from ....dialect.errors import ProfuseError
from .kept import MODULE
from .replay import replay
from .verdict import FAILED


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("file")
    try:
        verdict = replay(parser.parse_args().file)
    except ProfuseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(verdict)
    return 1 if verdict.outcome == FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
