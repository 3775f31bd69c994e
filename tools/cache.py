"""``profuse-cache``: what compiled code lies on disk; check it, make room, delete it.

The folder is the one that profuse itself uses (PROFUSE_CACHE_DIR, else profuse in the user's cache
folder), or that of ``--dir``. All commands are safe while other processes use the cache.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..dialect.errors import ArgumentError, FileError, ProfuseError
from ..executor.compile.cache.cache_key import outdated
from ..executor.compile.cache.codec import check_entry
from ..executor.compile.cache.entry import CorruptEntry, Header
from ..executor.compile.cache.folder import UnusableCache, check_folder, default_root
from ..executor.compile.cache.profiles import is_profile
from ..executor.compile.cache.store import Evicted, File, Store
from ..executor.settings.knobs import knobs
from .console import tool
from .quantities import UNITS, size


@tool("profuse-cache", UnusableCache)
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status (1 = corrupt entries, or an error: one message)."""
    args = _parser().parse_args(argv)
    try:
        return args.run(args, _store(args.dir))
    except (BrokenPipeError, ProfuseError):  # some of ours are OSErrors, too
        raise
    except OSError as error:
        raise FileError(f"{error.filename or 'the cache'}: {error.strerror}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="profuse-cache", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--dir", help="the cache's folder, instead of the one profuse uses")
    common.add_argument("--json", action="store_true", help="one JSON object instead of text")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, parents=[common], help=text, description=text)
        parser.set_defaults(run=run)
        return parser

    command("list", _list, "entries, the latest used first")
    verify = command("verify", _verify, "read every entry; exit status 1 if one is corrupt")
    verify.add_argument("--delete", action="store_true", help="delete what is corrupt")
    prune = command("prune", _prune, "delete what was not used for longest")
    prune.add_argument("--bytes", metavar="N", help="keep so much: 1000, 64K, 20M, 1G (default: the knob)")
    prune.add_argument(
        "--outdated",
        action="store_true",
        help="first delete what other versions of profuse or its packages have stored",
    )
    command("clear", _clear, "delete every entry")
    return parser


def _store(folder: str | None) -> Store:
    if folder is None:
        return Store(default_root())
    if not Path(folder).is_dir():
        raise FileError(f"there is no folder {folder}")
    return Store(Path(folder))


def _unused(store: Store) -> str:
    """The reason why no process of this user would use the folder; "" = they would."""
    try:
        check_folder(store.folder, may_close=False)
    except FileNotFoundError:
        return ""  # there is nothing yet
    except UnusableCache as error:
        return str(error)
    return ""


def _list(args: argparse.Namespace, store: Store) -> int:
    rows = [_row(file, header) for file, header in store.headers()]
    total = sum(row["bytes"] for row in rows)
    if args.json:
        print(json.dumps({"folder": str(store.root), "unused": _unused(store), "bytes": total, "entries": rows}))
        return 0
    for row in rows:
        last_use = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["used"]))
        kernels = f"{row['kernels']} kernel{'s' * (row['kernels'] != 1)}"
        holds = "profile" if row["holds"] == "profile" else kernels
        print(
            f"{row['entry'][:12]}  {last_use}  {size(row['bytes']):>9}  {holds:<10}  "
            f"{row['function']}  {_state(row) or row['checked']}".rstrip()
        )
    print(f"{_count(len(rows))}, {size(total)} of {size(knobs.cache_bytes)}, in {store.root}")
    _say_unused(store)
    return 0


def _say_unused(store: Store) -> None:
    reason = _unused(store)
    if reason:
        print(f"not used: {reason}")


def _row(file: File, header: Header | CorruptEntry) -> dict[str, Any]:
    row: dict[str, Any] = {"entry": file.digest, "bytes": file.size, "used": file.used / 1e9}
    if isinstance(header, CorruptEntry):
        return row | {"function": "", "holds": "", "kernels": 0, "corrupt": str(header), "outdated": [], "checked": ""}
    return row | {
        "function": header.label,
        "holds": "profile" if is_profile(header.key) else "compile",
        "kernels": header.kernels,
        "created": header.created,
        "checked": header.checked,
        "corrupt": "",
        "outdated": outdated(header.key),
        "key": header.key.parts,
    }


def _state(row: dict[str, Any]) -> str:
    if row["corrupt"]:
        return f"corrupt: {row['corrupt']}"
    return f"outdated: {', '.join(row['outdated'])}" if row["outdated"] else ""


def _verify(args: argparse.Namespace, store: Store) -> int:
    files = store.files()
    bad: list[dict[str, Any]] = []
    kernels: Counter[str] = Counter()
    for file in files:
        try:
            entry = store.check(file)
            check_entry(entry)
            for count, outcome in re.findall(r"(\d+) (\w+)", entry.checked):
                kernels[outcome] += int(count)
        except FileNotFoundError:
            continue  # evicted meanwhile
        except CorruptEntry as error:
            deleted = args.delete and store.remove(file.path)
            bad.append({"entry": file.digest, "why": str(error), "deleted": deleted})
    if args.json:
        print(
            json.dumps(
                {
                    "folder": str(store.root),
                    "unused": _unused(store),
                    "checked": len(files),
                    "corrupt": bad,
                    "kernels": kernels,
                }
            )
        )
    else:
        for row in bad:
            end = " (deleted)" if row["deleted"] else ""
            print(f"{row['entry'][:12]}  {row['why']}{end}")
        if kernels:
            print("kernels:", ", ".join(f"{count} {how}" for how, count in kernels.items()))
        print(f"{_count(len(files))} checked, {len(bad)} corrupt, in {store.root}")
        _say_unused(store)
    return 1 if any(not row["deleted"] for row in bad) else 0


def _prune(args: argparse.Namespace, store: Store) -> int:
    limit = knobs.cache_bytes if args.bytes is None else _bytes(args.bytes)
    entries = freed = 0
    if args.outdated:
        for file, header in list(store.headers()):
            foreign = isinstance(header, CorruptEntry) or bool(outdated(header.key))
            if foreign and store.remove(file.path):
                entries, freed = entries + 1, freed + file.size
    more = store.prune(limit)
    kept = sum(file.size for file in store.files())
    if kept > limit:
        raise FileError(f"{size(kept)} are left in {store.root}: some files cannot be deleted")
    return _report(args, store, Evicted(entries + more.entries, freed + more.bytes))


def _clear(args: argparse.Namespace, store: Store) -> int:
    gone = store.clear()
    if left := len(store.files()):
        raise FileError(f"{_count(left)} in {store.root} cannot be deleted")
    return _report(args, store, gone)


def _report(args: argparse.Namespace, store: Store, gone: Evicted) -> int:
    if args.json:
        print(json.dumps({"folder": str(store.root), "deleted": gone.entries, "bytes": gone.bytes}))
    else:
        print(f"{_count(gone.entries)} deleted, {size(gone.bytes)} freed, in {store.root}")
    return 0


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not match:
        raise ArgumentError(f"{text!r} is no number of bytes", hint="write 1000, 64K, 20M or 1G")
    return int(match[1]) * UNITS[match[2]]


def _count(entries: int) -> str:
    return f"{entries} entr{'y' if entries == 1 else 'ies'}"


if __name__ == "__main__":
    sys.exit(main())
