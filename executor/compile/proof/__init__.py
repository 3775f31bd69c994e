"""No kernel serves before it has been compared with the definition of what it computes.

`check.check_kernel` runs a new kernel on generated inputs that fulfil its guard (`inputs`), between
guard bytes (`memory`, `launch`), and compares it with tier 0 (`reference`, `compare`).
`python -m profuse.executor.compile.proof FILE` runs a check that failed again (`kept`, `replay`).
"""
