"""The program for memory checkers (``make memcheck``) runs, and takes the ways that it is for."""

import subprocess
import sys
from pathlib import Path


def test_it_runs():
    program = Path(__file__).with_name("memcheck.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
