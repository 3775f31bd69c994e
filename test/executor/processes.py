"""What has become of other processes."""

from __future__ import annotations

import time
from pathlib import Path


def is_gone(pid: int, within: float) -> bool:
    """Whether a process ends within so many seconds; a zombie counts as ended."""
    deadline = time.monotonic() + within
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
