"""Compiled code on disk, for later processes: content-addressed, checked, bounded.

`key` defines what an entry depends on, `entry` the format of its file, and `codec` its content.
`store` manages the folder. `lookup` is the interface for callers. Nothing here imports MLIR, so a
process that finds all its graphs on disk never loads it.
"""
