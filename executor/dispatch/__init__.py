"""Calls of specialised functions in machine code: guards, outputs, kernels, counts.

`layout` makes sure that CPython and NumPy are laid out as the code assumes, `spec` reads what an
optimised plan does, `emit` writes it as one LLVM function, `entry` makes that a builtin, `attach`
keeps the builtin of a jitted function up to date. Whatever does not fit runs in Python, as ever.
"""
