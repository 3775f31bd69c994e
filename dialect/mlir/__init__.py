"""Graphs as MLIR: contexts, reading and rewriting IR, verifying it, asking about values.

Importing this package loads MLIR, whole: an interrupted import of its extension modules crashes.
"""

from ..interrupts import interrupts_held_back

with interrupts_held_back():
    import mlir.ir
    import mlir.passmanager
