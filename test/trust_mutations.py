"""Faults in what is trusted of files and folders, and in what signals may interrupt."""

from __future__ import annotations

from mutation_runner import Mutation

_TRUST = "executor/compile/test_cache_trust.py::"
_FOLDER = "executor/compile/cache/folder.py"
_LOOKUP = "executor/compile/cache/lookup.py"
_FACTS = "executor/compile/cache/installation.py"
_STORE = "executor/compile/cache/store.py"
_FILES = "executor/files.py"
_INTERRUPTS = "dialect/test_interrupts.py::"
_END = ("executor/functions/test_end_of_interpreter.py",)

TRUST_MUTATIONS = (
    Mutation(
        "folders that the group can write are trusted",
        _FILES,
        "if status.st_mode & stat.S_IWGRP:",
        "if False:",
        (_TRUST + "test_a_folder_that_others_can_write_is_refused",),
    ),
    Mutation(
        "folders of the cache count as their parents do",
        _FOLDER,
        "others = who_else_writes(status)\n    if",
        'others = ""\n    if',
        (_TRUST + "test_a_folder_that_others_can_write_is_refused",),
    ),
    Mutation(
        "folders above the cache are not looked at",
        _FOLDER,
        "for place in (*reversed(folder.parents), folder):",
        "for place in (folder,):",
        (_TRUST + "test_so_is_one_in_whose_place_they_could_put_another",),
    ),
    Mutation(
        "the sticky bit protects nothing",
        _FOLDER,
        "elif status.st_mode & stat.S_ISVTX:",
        "elif False:",
        (_TRUST + "test_the_sticky_bit_protects_what_is_in_a_folder",),
    ),
    Mutation(
        "links of other users are followed",
        _FOLDER,
        'if status.st_uid not in owners:\n                raise UnusableCache(f"{place} is a sym',
        'if False:\n                raise UnusableCache(f"{place} is a sym',
        (_TRUST + "test_links_and_folders_of_other_users_are_refused",),
    ),
    Mutation(
        "the folder of a second link is not looked at",
        _FOLDER,
        "_check_way(place.parent / os.readlink(place), links - 1)",
        "pass",
        (_TRUST + "test_links_are_followed_through_folders_of_this_user_alone",),
    ),
    Mutation(
        "every group with a user's name is of one user",
        _FOLDER,
        "set(group.gr_mem) <= {user.pw_name} and all(",
        "all(",
        (_TRUST + "test_a_parent_may_be_written_by_a_group_of_one",),
    ),
    Mutation(
        "folders above the cache are made by the umask",
        _FOLDER,
        "        _make(folder.parent)\n",
        "        folder.parent.mkdir(parents=True)\n",
        (_TRUST + "test_folders_are_made_for_this_user_alone",),
    ),
    Mutation(
        "an open default folder keeps what it holds",
        _FOLDER,
        "        folder.rename(aside)",
        "        pass",
        (_TRUST + "test_a_default_folder_that_was_open_is_emptied_and_closed",),
    ),
    Mutation(
        "a default folder is closed behind an open one",
        _FOLDER,
        "                _check_way(folder.parent.parent)",
        "                pass",
        (_TRUST + "test_nothing_is_closed_or_deleted_behind_an_open_parent",),
    ),
    Mutation(
        "folders that users name are closed and emptied",
        _FOLDER,
        "if may_close and is_own(folder.parent):",
        "if may_close:",
        (_TRUST + "test_a_folder_that_the_user_names_is_neither_closed_nor_emptied",),
    ),
    Mutation(
        "entries of other users are read",
        _STORE,
        "return opened_if_ours(path)",
        'return open(path, "rb")',
        (_TRUST + "test_an_entry_that_others_can_write_is_made_anew",),
    ),
    Mutation(
        "entries are written by the umask",
        _STORE,
        "replacing(path, _MODE)",
        "replacing(path)",
        (_TRUST + "test_folders_are_made_for_this_user_alone",),
    ),
    Mutation(
        "opening a file waits for pipes",
        _FILES,
        'getattr(os, "O_NONBLOCK", 0)',
        "0",
        (_TRUST + "test_what_is_no_regular_file_is_no_entry_and_nobody_waits_for_it",),
    ),
    Mutation(
        "links stand for entries",
        _FILES,
        '_NO_LINK = getattr(os, "O_NOFOLLOW", 0)',
        "_NO_LINK = 0",
        (_TRUST + "test_what_is_no_regular_file_is_no_entry_and_nobody_waits_for_it",),
    ),
    Mutation(
        "a new file is written to whatever has its name",
        _FILES,
        "os.O_CREAT | os.O_EXCL",
        "os.O_CREAT",
        ("executor/test_files.py::test_the_new_file_is_made_by_nobody_else",),
    ),
    Mutation(
        "dumps are written to where links lead",
        "executor/compile/ir_dump.py",
        "write_whole(path, f",
        "path.write_text(f",
        ("executor/compile/test_dumps.py::test_a_dump_is_not_written_to_where_a_link_leads",),
    ),
    Mutation(
        "facts of other users are believed",
        _FACTS,
        "with opened_if_ours(path) as file:",
        'with open(path, "rb") as file:',
        (_TRUST + "test_facts_that_others_could_have_written_are_found_out_anew",),
    ),
    Mutation(
        "damaged facts are believed",
        _FACTS,
        ' and stored["checksum"] == _checksum(stored["fact"])',
        "",
        (_TRUST + "test_facts_that_others_could_have_written_are_found_out_anew",),
    ),
    Mutation(
        "kernels of a folder that the user names are not checked",
        _LOOKUP,
        "checks=not ours",
        "checks=False",
        (_TRUST + "test_a_wrong_kernel_is_found_at_its_first_use",),
    ),
    Mutation(
        "kernels of the default folder are checked again",
        _LOOKUP,
        "checks=not ours",
        "checks=True",
        (_TRUST + "test_kernels_of_the_default_folder_are_not_checked_again",),
    ),
    Mutation(
        "kernels of files that others could write are not checked",
        _LOOKUP,
        "checks=saved.others_write",
        "checks=False",
        (_TRUST + "test_a_saved_file_that_others_could_have_written_is_checked",),
    ),
    Mutation(
        "stored kernels are not checked on the sizes of their profile",
        "executor/compile/proof/check.py",
        "            input_sets.insert(1, ",
        "            id(",
        (_TRUST + "test_they_are_checked_on_the_sizes_of_their_profile",),
    ),
    Mutation(
        "the import of MLIR is interrupted",
        "dialect/mlir/__init__.py",
        "with interrupts_held_back():",
        "if True:",
        (_INTERRUPTS + "test_ctrl_c_while_mlir_is_imported",),
    ),
    Mutation(
        "passes are registered in part",
        "executor/compile/compiler.py",
        "    with interrupts_held_back():\n",
        "    if True:\n",
        (_INTERRUPTS + "test_ctrl_c_while_passes_are_registered",),
    ),
    Mutation(
        "dialects are imported as their operations are met",
        "executor/compile/compiler.py",
        "(*_DIALECTS, *DIALECTS, *(_GPU_DIALECTS if gpu else ()))",
        "()",
        (_INTERRUPTS + "test_nothing_of_mlir_is_imported_behind_the_block",),
    ),
    Mutation(
        "a mask alone holds signals back",
        "dialect/interrupts.py",
        "        _replace(handlers, held)\n",
        "",
        (_INTERRUPTS + "test_a_signal_that_another_thread_gets_waits_as_well",),
    ),
    Mutation(
        "handlers of other signals interrupt",
        "dialect/interrupts.py",
        "for number in range(1, signal.NSIG):",
        "for number in (signal.SIGINT,):",
        (_INTERRUPTS + "test_handlers_of_other_signals_wait_too_and_none_is_lost",),
    ),
    Mutation(
        "signals that were held back are lost",
        "dialect/interrupts.py",
        "        _deliver(list(dict.fromkeys(held)))\n",
        "",
        (_INTERRUPTS + "test_handlers_run_behind_the_block",),
    ),
    Mutation(
        "finalizers' calls are traced while the interpreter ends",
        "executor/functions/router.py",
        "        if is_finalizing():\n            return self._call_at_end(args, kwargs)\n",
        "",
        _END,
    ),
    Mutation(
        "Python runs functions of files, which have no code",
        "executor/functions/saved/saved_source.py",
        "raises = True  # there is no Python code",
        "raises = False",
        ("executor/tiers/test_warm.py::test_other_arguments_are_refused_in_words",),
    ),
    Mutation(
        "plans are made while the interpreter ends",
        "executor/functions/graph_runs.py",
        "        if is_finalizing():  # nothing",
        "        if False:  # nothing",
        _END,
    ),
)
