"""The check of new kernels: each is compared with tier 0 before it serves a call.

`check.check_kernel` runs a new kernel on generated inputs that fulfil its guard (`inputs`), with
guard bytes around all memory (`memory`, `launch`), and compares the results with those of tier 0
(`reference`, `compare`). `python -m profuse.executor.compile.proof FILE` repeats a failed check
(`kept`, `replay`).
"""
