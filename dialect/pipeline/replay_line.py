"""The line that runs a failing pipeline again, on a file that holds its input."""

from __future__ import annotations

import shlex
import tempfile


def replay_line(pipeline: str, text: str, folder: str | None = None) -> str:
    """The command by which `profuse-opt` runs the pipeline on IR text, kept in a new file; or why it is not kept.

    ``folder``: where the file goes; None = the system's temporary folder.
    """
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="profuse-", suffix=".mlir", dir=folder, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError as error:
        return f"its input is not kept for a replay: {error}"
    return f"replay with: profuse-opt -p {shlex.quote(pipeline)} {shlex.quote(file.name)}"
