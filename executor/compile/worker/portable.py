"""Decides whether a worker can compile a request, and makes requests portable."""

from __future__ import annotations

import os
import select
import sys
from dataclasses import replace

from ..request import CompileRequest
from ..user_extensions import users_own


def why_local(request: CompileRequest) -> str:
    """The reason why only this process can compile a request; "" = a worker can.

    A worker does not import the user's modules, so it lacks extensions that are registered here.
    """
    if own := users_own(request):
        return f"{own} is registered in this process only"
    if request.dump == "stderr":
        return "dumps go to this process's stderr"
    return ""


def why_no_workers() -> str:
    """The reason why this process cannot have workers at all; "" = it can."""
    if not sys.executable:
        return "sys.executable does not say which Python to start"
    if getattr(sys, "frozen", False):
        return "in a frozen program sys.executable is the program itself"
    if sys.platform == "win32" or not hasattr(select, "poll"):
        return f"workers are not available on {sys.platform}"
    return ""


def portable(request: CompileRequest) -> CompileRequest:
    """The request with absolute paths, since a worker has another current folder."""
    paths = {name: getattr(request, name) for name in ("repro_dir", "dump")}
    return replace(request, **{n: os.path.abspath(p) for n, p in paths.items() if p})
