"""``report``: one HTML page that shows a run: tiers, guards, passes, kernels, reasons, settings."""

from __future__ import annotations

import os
from pathlib import Path

from ...dialect.errors import FileError
from ...executor.files import check_writable, write_whole


def report(path: str | os.PathLike[str], title: str = "") -> Path:
    """Write a page on what this process has done so far, and return where it is.

    It shows every function that has been called and still exists. Inside ``with pf.trace():`` calls
    are recorded one by one, and shown too. What has been compiled is compiled once more, to show
    each pass and the assembly, so that this takes about as long as all compiles did.

    Raises FileError if the file cannot be written.
    """
    from .collect import collect
    from .page import render

    where = Path(os.path.abspath(path))
    check_writable(where, "a report")
    return save(render(collect(title or where.stem)), where)


def save(page: str, where: Path) -> Path:
    """Write a page; raises FileError."""
    try:
        write_whole(where, page)
    except OSError as error:
        raise FileError(f"cannot write a report to {where}: {error.strerror or error}") from None
    return where
