"""Compiled code on disk, for later processes: content-addressed, checked, bounded.

`key` says what an entry depends on, `entry` how it lies in a file, `codec` what it holds, `store`
keeps the folder; `lookup` is the door to all of them. Nothing here imports MLIR, so a process that
finds all its graphs never does.
"""
