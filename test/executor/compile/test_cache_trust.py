"""The disk cache and other users: what they could have written is not used, and told."""

from __future__ import annotations

import grp
import os
import pwd
import signal
import socket
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import profuse as pf
import pytest
from cached_graphs import IR, Asked, caching_in, copy_of, never, only_file, request, result
from profuse.dialect.pipeline.options import PipelineOptions
from profuse.executor.compile.cache import folder as folders
from profuse.executor.compile.cache import installation
from profuse.executor.compile.cache.cache_key import key_of
from profuse.executor.compile.cache.codec import to_sections
from profuse.executor.compile.cache.disk import disk_cache
from profuse.executor.compile.cache.entry import CacheEntry
from profuse.executor.compile.cache.source_locations import SourceLocations
from profuse.executor.compile.cache.store import Store
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.proof import prove
from profuse.executor.compile.proof.check import KernelCheck
from profuse.executor.compile.request import CompileResult
from profuse.executor.settings.knobs import knobs
from profuse.tools.cache import main as cache_tool
from users import ALICE, MALLORY, SHARED, as_user, common_folder, needs_root

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
PLACES = SourceLocations.of(IR).listed


@pytest.fixture
def lax():
    """A umask that lets the group write, as users have it whose group is their own."""
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.fixture
def default(tmp_path, monkeypatch, lax):
    """The store in the default folder of a user, who has no file yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / ".cache"))
    with knobs.override(cache=True, cache_dir=""):
        yield Store(tmp_path / "home" / ".cache" / "profuse")


@pytest.fixture
def in_time():
    """What would wait for ever, for a pipe that nobody opens, raises instead."""

    def ring(number, frame):
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def wrong_entry(**changes: Any) -> CacheEntry:
    """An entry of `request(**changes)`, whole, but with the machine code of another kernel."""
    other = compile_graph(request(ir=IR.replace("profuse.exp", "profuse.sin"))).kernels
    ((name, kernel),) = result().kernels.items()
    ((_, planted),) = other.items()
    kernels = {name: replace(kernel, object=planted.object, entry=planted.entry)}
    sections = to_sections(replace(result(), kernels=kernels), PLACES)
    return CacheEntry(key_of(request(**changes)), "f", 1.0, sections)


def check_refused(asked: Asked, why: str) -> None:
    """The process goes without the folder, says so once, and has compiled."""
    assert asked.counts == (0, 1)
    assert asked.result.kernels == result().kernels
    assert why in asked.reason("disk-off")
    assert why in asked.result.missed, "explain() tells it"


def check_replaced(asked: Asked, why: str) -> None:
    """The entry was not used, and another one lies in its place."""
    assert asked.kinds == ["disk-corrupt", "disk-miss", "disk-store"]
    assert why in asked.reason("disk-corrupt")
    assert asked.result.kernels == result().kernels
    assert Asked(request(), never).counts == (1, 0)


# --- folders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o770, 0o720, 0o775, 0o707, 0o1777])
def test_a_folder_that_others_can_write_is_refused(folder, bits):
    """Whoever can put object code there runs it as this user."""
    Asked(request())
    folder.folder.chmod(bits)
    check_refused(Asked(request()), "written by every user" if bits & 2 else "written by its group")


@pytest.mark.parametrize("bits", [0o770, 0o777])
@pytest.mark.parametrize("levels", [1, 2])
def test_so_is_one_in_whose_place_they_could_put_another(tmp_path, bits, levels):
    with caching_in(tmp_path / "shared" / "cache") as store:
        Asked(request())
        place = store.folder.parents[levels - 1]
        place.chmod(bits)
        check_refused(Asked(request()), f"chmod go-w {place}")


def test_the_sticky_bit_protects_what_is_in_a_folder(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    with caching_in(tmp_path / "tmp" / "cache"):
        Asked(request())
        assert Asked(request(), never).counts == (1, 0)


def test_links_are_followed_through_folders_of_this_user_alone(tmp_path):
    """A link may lead to a large disk; the folder in which it lies counts, too."""
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "links").mkdir(mode=0o755)
    (tmp_path / "links" / "second").symlink_to("../disk")
    (tmp_path / "first").symlink_to(tmp_path / "links" / "second")
    with caching_in(tmp_path / "first" / "cache"):
        Asked(request())
        assert Asked(request(), never).counts == (1, 0)
        (tmp_path / "links").chmod(0o777)
        check_refused(Asked(request()), f"{tmp_path / 'links'} can be written by every user")
    (tmp_path / "round").symlink_to("round")
    with caching_in(tmp_path / "round" / "cache"):
        assert "links" in Asked(request()).reason("disk-off")


@needs_root
def test_links_and_folders_of_other_users_are_refused(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    os.lchown(tmp_path / "link", MALLORY, MALLORY)
    with caching_in(tmp_path / "link" / "cache"):
        check_refused(Asked(request()), "link of another user")
    os.chown(tmp_path / "disk", MALLORY, MALLORY)
    with caching_in(tmp_path / "disk" / "cache"):
        check_refused(Asked(request()), f"belongs to another user (uid {MALLORY})")


def test_folders_are_made_for_this_user_alone(tmp_path, lax):
    with caching_in(tmp_path / "a" / "b" / "cache") as store:
        os.umask(0)
        Asked(request())
        installation._known("x", lambda: "seen", lambda: "found")
        for place in (store.folder, *store.folder.parents[:3]):
            assert mode(place) == 0o700, place
        assert {mode(path) for path in store.folder.iterdir()} == {0o644}
        assert Asked(request(), never).counts == (1, 0)


# --- the default folder ---------------------------------------------------------------------------


def test_a_lax_umask_keeps_a_cache_in_the_default_folder(default):
    assert Asked(request()).kinds == ["disk-miss", "disk-store"]
    assert Asked(request(), never).kinds == ["disk-hit"]


@pytest.mark.parametrize("opened", ["root", "folder"])
def test_a_default_folder_that_was_open_is_emptied_and_closed(default, opened):
    """As this package made it once, under such a umask. What it holds may be anybody's."""
    Asked(request())
    default.put(wrong_entry(), 1 << 30)
    (default.folder / "x.fact").write_text("{}")
    getattr(default, opened).chmod(0o775)
    asked = Asked(request())
    assert asked.kinds == ["disk-emptied", "disk-miss", "disk-store"]
    assert asked.events[0].level == "warning"
    assert asked.result.kernels == result().kernels
    assert mode(default.root) & 0o022 == mode(default.folder) & 0o022 == 0
    assert not (default.folder / "x.fact").exists()
    assert Asked(request(), never).kinds == ["disk-hit"]


def test_nothing_is_closed_or_deleted_behind_an_open_parent(default):
    """The folder could be any one of this user's, moved there by others."""
    Asked(request())
    for place in (default.folder, default.root, default.root.parent):
        place.chmod(0o777)
    check_refused(Asked(request()), f"chmod go-w {default.root.parent}")
    assert mode(default.folder) == 0o777
    assert len(default.files()) == 1


def test_a_folder_that_the_user_names_is_neither_closed_nor_emptied(folder):
    Asked(request())
    folder.folder.chmod(0o775)
    check_refused(Asked(request()), f"chmod go-w {folder.folder}")
    assert (mode(folder.folder), len(folder.files())) == (0o775, 1)


def test_a_parent_may_be_written_by_a_group_of_one(tmp_path, monkeypatch):
    """Where users have groups of their own name, ~/.cache is often writable by the group."""
    members: list[str] = []
    others: list[SimpleNamespace] = []
    me = SimpleNamespace(pw_name="me", pw_uid=1000, pw_gid=1000)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: replace_of(me, uid))
    monkeypatch.setattr(pwd, "getpwall", lambda: [me, *others])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name="me", gr_mem=list(members)))

    def replace_of(user, uid):
        return SimpleNamespace(**{**vars(user), "pw_uid": uid})

    def is_private(uid=1000, gid=1000, bits=0o775):
        folders._is_own_group.cache_clear()
        found = SimpleNamespace(st_mode=stat.S_IFDIR | bits, st_uid=uid, st_gid=gid)
        return folders._is_private(tmp_path, found)

    assert is_private()
    assert not is_private(bits=0o777)
    assert not is_private(gid=100), "their first group is another one"
    assert not is_private(uid=0, gid=1000), "administrators have no such umask"
    members.append("me")
    assert is_private()
    members.append("mallory")
    assert not is_private()
    members.clear()
    others.append(SimpleNamespace(pw_name="robot", pw_uid=1001, pw_gid=1000))
    assert not is_private()
    others.clear()
    if hasattr(os, "getxattr"):
        monkeypatch.setattr(os, "getxattr", lambda path, name: b"")
        assert not is_private(), "the list of access may name others"
    folders._is_own_group.cache_clear()


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o664, 0o646])
def test_an_entry_that_others_can_write_is_made_anew(folder, bits):
    Asked(request())
    only_file(folder).path.chmod(bits)
    check_replaced(Asked(request()), "it can be written by")


@needs_root
def test_an_entry_of_another_user_is_made_anew(folder):
    Asked(request())
    os.chown(only_file(folder).path, MALLORY, -1)
    check_replaced(Asked(request()), f"it belongs to another user (uid {MALLORY})")


@pytest.mark.parametrize("kind", ["pipe", "socket", "link"])
def test_what_is_no_regular_file_is_no_entry_and_nobody_waits_for_it(folder, tmp_path, kind, in_time, capsys):
    Asked(request())
    path = only_file(folder).path
    path.rename(tmp_path / "whole")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path / "whole")
    else:
        with socket.socket(socket.AF_UNIX) as bound, pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder.folder)  # the path of a socket has to be short
            bound.bind(path.name)
    assert cache_tool(["verify", "--dir", str(folder.root)]) == 1
    assert "no regular file" in capsys.readouterr().out
    check_replaced(Asked(request()), "no regular file")


def test_a_folder_in_the_place_of_an_entry_is_left(folder):
    path = folder.path(key_of(request()).digest)
    path.mkdir(parents=True)
    folder.folder.chmod(0o700)
    asked = Asked(request())
    assert asked.kinds[:2] == ["disk-corrupt", "disk-miss"]
    assert asked.result.kernels == result().kernels


@needs_root
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_machine_code_of_another_user_does_not_run():
    """Mallory plants an entry in a folder that Alice shares with a group; nothing is left of it."""
    planted = wrong_entry()
    Asked(request())  # imports what Alice needs
    installation.sources()
    with common_folder() as common:
        store = Store(common / "alice")
        store.root.mkdir()
        os.chown(store.root, ALICE, ALICE)

        def share():
            store.folder.mkdir()
            os.chown(store.folder, ALICE, SHARED)
            store.folder.chmod(0o770)

        def plant():
            path = store.path(planted.key.digest)
            path.write_bytes(planted.to_bytes())
            assert path.stat().st_uid == MALLORY

        def ask():
            with caching_in(store.root):
                check_refused(Asked(request()), "written by its group")
                store.folder.chmod(0o700)
                disk_cache.cache_clear()  # as another process would begin
                check_replaced(Asked(request()), f"another user (uid {MALLORY})")

        as_user(ALICE, share)
        as_user(MALLORY, plant)
        as_user(ALICE, ask)


def test_facts_that_others_could_have_written_are_found_out_anew(folder):
    def known(value):
        return installation._known("x", lambda: "seen", lambda: value)

    assert (known("one"), known("two")) == ("one", "one")
    (path,) = folder.folder.glob("*.fact")
    path.chmod(0o666)
    assert (known("two"), known("three")) == ("two", "two")
    assert "can be written" in pf.events()[-1].reason
    assert pf.events()[-1].kind == "disk-corrupt"
    path.write_text(path.read_text().replace("two", "six"))
    assert known("four") == "four", "damage is noticed"


# --- kernels that lie elsewhere than in the default folder ----------------------------------------


def test_a_wrong_kernel_is_found_at_its_first_use(folder):
    given = request(check="sampled")
    folder.put(wrong_entry(check="sampled"), 1 << 30)
    asked = Asked(given)
    assert asked.kinds == ["disk-corrupt", "disk-miss", "disk-store"]
    assert "is wrong: result 0" in asked.reason("disk-corrupt")
    assert asked.result.kernels == result().kernels
    assert Asked(given, never).counts == (1, 0)


def test_kernels_of_the_default_folder_are_not_checked_again(default, monkeypatch):
    given = request(check="sampled")
    Asked(given)
    monkeypatch.setattr(prove, "refuted", lambda *_: "it is checked again")
    assert Asked(given, never).counts == (1, 0)


def test_others_are_checked_once_a_process_unless_checks_are_off(tmp_path, monkeypatch):
    run, runs = KernelCheck.run, []
    monkeypatch.setattr(KernelCheck, "run", lambda *given: runs.append(1) or run(*given))
    with caching_in(tmp_path / "once"):
        for number, checks in (("other", 1), ("other", 1), ("another", 2)):
            given = request(ir=f"{IR}// {number}\n", check="sampled")
            Asked(given, lambda _, n=number: replace(result(), ir=f"{result().ir}// {n}\n"))
            Asked(given, never)
            assert len(runs) == checks
        off = request(ir=f"{IR}// off\n", check="off")
        Asked(off)
        Asked(off, never)
        assert len(runs) == 2


def test_they_are_checked_on_the_sizes_of_their_profile(folder, monkeypatch):
    dynamic = request(pipeline=PipelineOptions(dynamic=True).optimizing(), check="sampled")
    made = compile_graph(replace(dynamic, check="off"))
    ((name, sizes),) = made.sizes.items()
    assert sorted(sizes.values()) == [4, 8]
    met = []
    one = KernelCheck.one
    monkeypatch.setattr(KernelCheck, "one", lambda self, setting: met.append(setting.sizes) or one(self, setting))
    Asked(dynamic, lambda _: made)
    assert Asked(dynamic, never).result.sizes == {name: sizes}
    assert sizes in met


def test_a_saved_file_that_others_could_have_written_is_checked(tmp_path, monkeypatch):
    x = np.linspace(-1, 1, 12, dtype=np.float32)
    refuted, found = prove.refuted, []

    def note(*given):
        found.append(refuted(*given))
        return found[-1]

    def check(bits, name="saved"):
        def f(x):
            return np.tanh(x) + len(name)

        path = tmp_path / name
        if not path.exists():
            made = pf.jit(f, background=False)
            made.warmup(x)
            made.save(path)
        path.chmod(bits)
        loaded = pf.load(path, background=False)
        np.testing.assert_allclose(loaded(x), f(x), rtol=1e-6)
        return loaded.explain()

    monkeypatch.setattr(prove, "refuted", note)
    assert "compiled anew" not in check(0o644)
    assert found == []
    assert "compiled anew" not in check(0o666)
    assert found == [""]
    monkeypatch.setattr(prove, "refuted", lambda *_: "its kernel is wrong")
    assert "holds is damaged: its kernel is wrong" in check(0o666, "other")


def test_a_result_without_its_function_is_refused():
    made: CompileResult = copy_of(request())
    made = replace(made, kernels={"gone": next(iter(made.kernels.values()))})
    assert "no function @gone" in prove.refuted(made, request(check="sampled"))
