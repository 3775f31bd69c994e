"""Calls of specialised functions in machine code: guards, outputs, kernels, counts.

`layout` makes sure that CPython and NumPy are laid out as the code assumes, `reader` reads off an
optimised plan what there is to do, `emit` writes that as one LLVM function, `entry` makes a builtin
of it, and `attach` keeps the builtin of a function up to date. Calls that do not fit run in Python.
"""
