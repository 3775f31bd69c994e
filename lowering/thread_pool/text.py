"""The pool as text of LLVM IR: what starts its threads, and shares a launch with them."""

from __future__ import annotations

from . import (
    AVOIDED,
    BUSY,
    CPUS,
    JOB,
    KNOWN,
    LATEST,
    MOST,
    MOVED,
    NEXT,
    SHUT,
    SLEEPERS,
    SPIN,
    STACK,
    STARTED,
    STATE,
    SYSTEMS,
    THREADS,
    WANTED,
)
from .affinity import AFFINITY

_PRIVATE_WAIT, _PRIVATE_WAKE = 128, 129


def pool_text(triple: str) -> str:
    """The pool as text of LLVM IR: the functions ``profuse_launch`` and ``profuse_pauses``.

    ``profuse_pauses(count)`` spins for ``count`` pauses, so that its caller can time one.
    """
    numbers, hint, arguments = SYSTEMS[triple.partition("-")[0]]
    futex, set_affinity, get_affinity, gettid = numbers
    words = {
        "sleepers": SLEEPERS,
        "job": JOB,
        "array": JOB + 1,
        "count": JOB + 2,
        "grain": JOB + 3,
        "next": NEXT,
        "state": STATE,
        "busy": BUSY,
        "spin": SPIN,
        "wanted": WANTED,
        "started": STARTED,
        "latest": LATEST,
        "avoided": AVOIDED,
        "known": KNOWN,
        "cpus": CPUS,
        "threads": THREADS,
        "moved": MOVED,
    }
    text = _TEXT + AFFINITY
    for name, word in words.items():
        text = text.replace(f"@at({name})", f"getelementptr i64, ptr %pool, i64 {word}")
    replaced = {
        "PAUSE": f"call {hint}{arguments}",
        "DECLARE": f"declare {hint})",
        "FUTEX": str(futex),
        "SETAFFINITY": str(set_affinity),
        "GETAFFINITY": str(get_affinity),
        "GETTID": str(gettid),
        "MOST": str(MOST),
        "WAIT": str(_PRIVATE_WAIT),
        "WAKE": str(_PRIVATE_WAKE),
        "SHUT": str(SHUT),
        "INSIDE": str(SHUT - 1),
        "STACK": str(STACK),
    }
    for name, value in replaced.items():
        text = text.replace(f"${name}$", value)
    return text


_TEXT = """
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_getcpu()
declare i32 @memcmp(ptr, ptr, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.vector.reduce.or.v16i64(<16 x i64>)
$DECLARE$

; Takes chunks of the present job until none is left.
define internal void @chunks(ptr %pool) {
  %at_part = @at(job)
  %part = load ptr, ptr %at_part
  %at_array = @at(array)
  %array = load ptr, ptr %at_array
  %at_count = @at(count)
  %count = load i64, ptr %at_count
  %at_grain = @at(grain)
  %grain = load i64, ptr %at_grain
  %at_next = @at(next)
  %any = icmp eq i64 %grain, 0
  br i1 %any, label %look, label %take
take:
  %begin = atomicrmw add ptr %at_next, i64 %grain monotonic
  %some = icmp slt i64 %begin, %count
  br i1 %some, label %run, label %done
run:
  %above = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %above, i64 %count)
  call void %part(ptr %array, i64 %begin, i64 %end)
  br label %take

; Shares: first one of as many as there are threads, then those of what is left, down to half a
; share. So a thread that comes late leaves the others little to wait for.
look:
  %at_wanted = @at(wanted)
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %threads = add i64 %wanted, 1
  %halves = shl i64 %threads, 1
  %more = add i64 %count, %halves
  %rounded = sub i64 %more, 1
  %least = udiv i64 %rounded, %halves
  %first = load atomic i64, ptr %at_next monotonic, align 8
  br label %share
share:
  %low = phi i64 [ %first, %look ], [ %seen, %lost ], [ %high, %mine ]
  %left = sub i64 %count, %low
  %any_left = icmp sgt i64 %left, 0
  br i1 %any_left, label %try, label %done
try:
  %raised = add i64 %left, %wanted
  %even = udiv i64 %raised, %threads
  %part_of = call i64 @llvm.smax.i64(i64 %even, i64 %least)
  %above_low = add i64 %low, %part_of
  %high = call i64 @llvm.smin.i64(i64 %above_low, i64 %count)
  %swapped = cmpxchg ptr %at_next, i64 %low, i64 %high monotonic monotonic
  %seen = extractvalue { i64, i1 } %swapped, 0
  %took = extractvalue { i64, i1 } %swapped, 1
  br i1 %took, label %mine, label %lost
lost:
  br label %share
mine:
  call void %part(ptr %array, i64 %low, i64 %high)
  br label %share
done:
  ret void
}

; A thread of the pool: waits for the generation to change, first spinning, then asleep.
define internal ptr @pool_thread(ptr %pool) {
entry:
  %at_sleepers = @at(sleepers)
  %at_state = @at(state)
  %at_spin = @at(spin)
  %at_wanted = @at(wanted)
  call void @introduce(ptr %pool)
  br label %wait
wait:
  %last = phi i64 [ 0, %entry ], [ %now, %enter ], [ %now, %inside ]
  %spins = load atomic i64, ptr %at_spin monotonic, align 8
  br label %spin
spin:
  %turn = phi i64 [ 0, %wait ], [ %turn1, %again ]
  %seen = load atomic i64, ptr %pool acquire, align 8
  %changed = icmp ne i64 %seen, %last
  br i1 %changed, label %woken, label %again
again:
  $PAUSE$
  %turn1 = add i64 %turn, 1
  %more = icmp slt i64 %turn1, %spins
  br i1 %more, label %spin, label %tired
tired:
  %before = atomicrmw add ptr %at_sleepers, i64 1 seq_cst
  br label %sleep
sleep:
  %seen2 = load atomic i64, ptr %pool seq_cst, align 8
  %changed2 = icmp ne i64 %seen2, %last
  br i1 %changed2, label %rested, label %doze
doze:
  %low = trunc i64 %last to i32
  %slept = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %pool, i64 $WAIT$, i32 %low, ptr null)
  br label %sleep
rested:
  %before2 = atomicrmw sub ptr %at_sleepers, i64 1 seq_cst
  br label %woken
woken:
  %now = phi i64 [ %seen, %spin ], [ %seen2, %rested ]
  br label %enter
enter:
  %state = load atomic i64, ptr %at_state acquire, align 8
  %of = lshr i64 %state, 32
  %low_now = and i64 %now, 4294967295
  %same = icmp eq i64 %of, %low_now
  %shut = and i64 %state, $SHUT$
  %open = icmp eq i64 %shut, 0
  %already = and i64 %state, $INSIDE$
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %room = icmp slt i64 %already, %wanted
  %current = and i1 %same, %open
  %may = and i1 %current, %room
  br i1 %may, label %try, label %wait
try:
  %state1 = add i64 %state, 1
  %swapped = cmpxchg ptr %at_state, i64 %state, i64 %state1 acq_rel monotonic
  %entered = extractvalue { i64, i1 } %swapped, 1
  br i1 %entered, label %inside, label %enter
inside:
  call void @chunks(ptr %pool)
  %left = atomicrmw sub ptr %at_state, i64 1 release
  br label %wait
}

; Starts threads, with all signals blocked: they are for the threads of the program. Where the
; system refuses, nobody wants more than there are.
define internal void @start(ptr %pool) noinline {
entry:
  %attributes = alloca [64 x i8], align 16
  %old = alloca [128 x i8], align 16
  %all = alloca [128 x i8], align 16
  %thread = alloca i64
  %r0 = call i32 @pthread_attr_init(ptr %attributes)
  %r1 = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %r2 = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK$)
  %r3 = call i32 @sigfillset(ptr %all)
  %r4 = call i32 @pthread_sigmask(i32 0, ptr %all, ptr %old)
  %at_wanted = @at(wanted)
  %at_started = @at(started)
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %had = load i64, ptr %at_started
  %first = icmp eq i64 %had, 0
  br i1 %first, label %look, label %next
look:
  %at_cpus = @at(cpus)
  store <16 x i64> zeroinitializer, ptr %at_cpus, align 8
  %r7 = call i64 (i64, ...) @syscall(i64 $GETAFFINITY$, i64 0, i64 128, ptr %at_cpus)
  br label %next
next:
  %made = phi i64 [ %had, %entry ], [ %had, %look ], [ %made1, %start ]
  %more = icmp slt i64 %made, %wanted
  br i1 %more, label %start, label %done
start:
  %failed = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @pool_thread, ptr %pool)
  %made1 = add i64 %made, 1
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %next, label %refused
refused:
  store atomic i64 %made, ptr %at_wanted monotonic, align 8
  br label %done
done:
  store i64 %made, ptr %at_started
  %r5 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %r6 = call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}

define void @profuse_launch(ptr %pool, ptr %part, ptr %array, i64 %count, i64 %grain) {
entry:
  %at_busy = @at(busy)
  %swapped = cmpxchg ptr %at_busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %swapped, 1
  br i1 %mine, label %first, label %alone
first:
  %at_wanted = @at(wanted)
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %at_started = @at(started)
  %started = load i64, ptr %at_started
  %few = icmp slt i64 %started, %wanted
  br i1 %few, label %more_threads, label %launch
more_threads:
  call void @start(ptr %pool)
  br label %launch
alone:
  %begin = phi i64 [ 0, %entry ], [ %end, %alone ]
  %any = icmp eq i64 %grain, 0
  %step = select i1 %any, i64 %count, i64 %grain
  %above = add i64 %begin, %step
  %end = call i64 @llvm.smin.i64(i64 %above, i64 %count)
  call void %part(ptr %array, i64 %begin, i64 %end)
  %more = icmp slt i64 %end, %count
  br i1 %more, label %alone, label %done
launch:
  call void @make_way(ptr %pool)
  %at_part = @at(job)
  store ptr %part, ptr %at_part
  %at_array = @at(array)
  store ptr %array, ptr %at_array
  %at_count = @at(count)
  store i64 %count, ptr %at_count
  %at_grain = @at(grain)
  store i64 %grain, ptr %at_grain
  %at_next = @at(next)
  store atomic i64 0, ptr %at_next monotonic, align 8
  %at_state = @at(state)
  %last = load i64, ptr %pool
  %generation = add i64 %last, 1
  %opened = shl i64 %generation, 32
  store atomic i64 %opened, ptr %at_state release, align 8
  store atomic i64 %generation, ptr %pool seq_cst, align 8
  %at_sleepers = @at(sleepers)
  %sleepers = load atomic i64, ptr %at_sleepers seq_cst, align 8
  %some = icmp ne i64 %sleepers, 0
  br i1 %some, label %wake, label %work
wake:
  %woken = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %pool, i64 $WAKE$, i64 2147483647)
  br label %work
work:
  call void @chunks(ptr %pool)
  %was = atomicrmw or ptr %at_state, i64 $SHUT$ acq_rel
  br label %join
join:
  %state = load atomic i64, ptr %at_state acquire, align 8
  %inside = and i64 %state, $INSIDE$
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %free, label %pause
pause:
  $PAUSE$
  br label %join
free:
  store atomic i64 0, ptr %at_busy release, align 8
  br label %done
done:
  ret void
}

define void @profuse_pauses(i64 %count) {
entry:
  br label %next
next:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %next ]
  $PAUSE$
  %turn1 = add i64 %turn, 1
  %more = icmp slt i64 %turn1, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
"""
