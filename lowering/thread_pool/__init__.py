"""The pool of threads that kernels share, as text of LLVM IR, and the block that describes it.

A kernel finds the block by the symbol `POOL`; its word `LAUNCH` is null for as long as there is no
pool. ``profuse_launch(block, part, array, count, grain)`` calls ``part(array, begin, end)`` for all
chunks of ``grain`` iterations out of ``count``. If ``grain`` is 0, iterations may be taken together
in any number: a thread takes its share of those that are left, and one that runs alone takes all.

The join is elastic: the launching thread takes chunks itself, shuts the launch when none is left,
and waits only for threads of the pool that have entered it. A thread that the system has not
scheduled in time finds the launch shut, and nobody waits for it. Launches from several threads, and
launches from within a chunk, do not wait for one another: one has the pool, the others run alone.
"""

from __future__ import annotations

POOL = "profuse_pool"

# Words of the block. Those that different threads write are on cache lines of their own.
WORDS = 384
GENERATION = 0  # number of the last launch; threads of the pool wait for it to change
SLEEPERS = 16  # threads that are asleep
JOB = 32  # part, array, count, grain
NEXT = 48  # where the next chunk begins
STATE = 64  # generation << 32 | SHUT | number of threads that have entered
BUSY = 80  # 1 while some thread launches
SPIN = 96  # pauses before a thread goes to sleep
COLUMNS = 97  # grain of chunks of columns in f32: 0 where the library's kernel allows to join them
LAUNCH = 104  # address of profuse_launch; null = no pool
WANTED = 105  # threads that a launch may have beside its own
STARTED = 106  # threads of the pool
WORK = 107  # f64: work of a chunk in picoseconds, for kernels of symbolic sizes
LATEST = 108  # 1 + the CPU from which the last launch came; 0 = none
AVOIDED = 109  # 1 + the CPU that threads of the pool avoid; 0 = none
KNOWN = 110  # threads of the pool whose system number is known
MOVED = 111  # number of the last launch that had the threads avoid another CPU
CPUS = 112  # set of the CPUs that the thread which started the pool might use
THREADS = 128  # system numbers of threads of the pool
MOST = 256  # threads that can be known; further ones avoid no CPU

CHUNK = 12_000_000.0  # picoseconds of estimated work; a launch takes up to a fifth of it
CHECKED = 1.0  # the same while kernels are checked, so that small arrays have several chunks, too

SHUT = 1 << 31
STACK = 4 << 20  # bytes; kernels keep at most 64 KiB there, libraries of products more
# By the architecture in the triple: numbers of the system calls futex, sched_setaffinity,
# sched_getaffinity and gettid, and the hint to a spinning core. On other systems there is no pool.
SYSTEMS = {
    "x86_64": ((202, 203, 204, 186), "void @llvm.x86.sse2.pause(", ")"),
    "aarch64": ((98, 122, 123, 178), "void @llvm.aarch64.hint(i32", " 1)"),
}


def supports(triple: str) -> bool:
    """True if there can be a pool on systems of this triple."""
    return "linux" in triple and triple.partition("-")[0] in SYSTEMS
