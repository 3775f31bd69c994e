"""The CPUs that the threads of the pool use, as text of LLVM IR.

They avoid the CPU that the launching thread runs on. A thread that the system wakes on that CPU has
to wait for the launching thread, which then runs all chunks: without this, launches on two cores
take as long as on one whenever the pool has been asleep.
"""

AFFINITY = """
; Notes the system number of the calling thread of the pool, if there is room for it, and has it
; avoid the CPU that the others avoid, which may change meanwhile.
define internal void @introduce(ptr %pool) {
entry:
  %set = alloca [16 x i64], align 16
  %at_known = @at(known)
  %thread = call i64 (i64, ...) @syscall(i64 $GETTID$)
  %place = atomicrmw add ptr %at_known, i64 1 seq_cst
  %room = icmp slt i64 %place, $MOST$
  br i1 %room, label %note, label %done
note:
  %at_threads = @at(threads)
  %at = getelementptr i64, ptr %at_threads, i64 %place
  store atomic i64 %thread, ptr %at release, align 8
  %at_avoided = @at(avoided)
  br label %follow
follow:
  %before = phi i64 [ 0, %note ], [ %avoided, %set_own ]
  %avoided = load atomic i64, ptr %at_avoided seq_cst, align 8
  %changed = icmp ne i64 %avoided, %before
  br i1 %changed, label %set_own, label %done
set_own:
  call void @without(ptr %pool, i64 %avoided, ptr %set)
  %put = call i64 (i64, ...) @syscall(i64 $SETAFFINITY$, i64 0, i64 128, ptr %set)
  br label %follow
done:
  ret void
}

; Copies the set of CPUs without the CPU numbered %avoided - 1; the whole set where %avoided is 0,
; or nothing would be left.
define internal void @without(ptr %pool, i64 %avoided, ptr %set) {
entry:
  %at_cpus = @at(cpus)
  %all = load <16 x i64>, ptr %at_cpus, align 8
  store <16 x i64> %all, ptr %set, align 16
  %cpu = sub i64 %avoided, 1
  %word = lshr i64 %cpu, 6
  %there = icmp ult i64 %word, 16
  br i1 %there, label %take, label %done
take:
  %from = getelementptr i64, ptr %at_cpus, i64 %word
  %to = getelementptr i64, ptr %set, i64 %word
  %cpus = load i64, ptr %from
  %low = and i64 %cpu, 63
  %bit = shl i64 1, %low
  %mask = xor i64 %bit, -1
  %left = and i64 %cpus, %mask
  store i64 %left, ptr %to
  %rest = load <16 x i64>, ptr %set, align 16
  %any = call i64 @llvm.vector.reduce.or.v16i64(<16 x i64> %rest)
  %empty = icmp eq i64 %any, 0
  br i1 %empty, label %whole, label %done
whole:
  store <16 x i64> %all, ptr %set, align 16
  br label %done
done:
  ret void
}

; Has the threads of the pool avoid the CPU numbered %cpu - 1. Threads whose CPUs somebody else has
; set are left alone.
define internal void @avoid(ptr %pool, i64 %cpu) noinline {
entry:
  %before = alloca [16 x i64], align 16
  %now = alloca [16 x i64], align 16
  %found = alloca [16 x i64], align 16
  %at_cpus = @at(cpus)
  %at_avoided = @at(avoided)
  %avoided = load i64, ptr %at_avoided
  call void @without(ptr %pool, i64 %avoided, ptr %before)
  call void @without(ptr %pool, i64 %cpu, ptr %now)
  store atomic i64 %cpu, ptr %at_avoided seq_cst, align 8
  %at_threads = @at(threads)
  %at_known = @at(known)
  %known = load atomic i64, ptr %at_known seq_cst, align 8
  %count = call i64 @llvm.smin.i64(i64 %known, i64 $MOST$)
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %number1, %next ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %look, label %done
look:
  %at = getelementptr i64, ptr %at_threads, i64 %number
  %thread = load atomic i64, ptr %at acquire, align 8
  %there = icmp ne i64 %thread, 0
  br i1 %there, label %ask, label %next
ask:
  store <16 x i64> zeroinitializer, ptr %found, align 16
  %got = call i64 (i64, ...) @syscall(i64 $GETAFFINITY$, i64 %thread, i64 128, ptr %found)
  %c0 = call i32 @memcmp(ptr %found, ptr %before, i64 128)
  %c1 = call i32 @memcmp(ptr %found, ptr %at_cpus, i64 128)
  %is0 = icmp eq i32 %c0, 0
  %is1 = icmp eq i32 %c1, 0
  %ours = or i1 %is0, %is1
  br i1 %ours, label %set, label %next
set:
  %put = call i64 (i64, ...) @syscall(i64 $SETAFFINITY$, i64 %thread, i64 128, ptr %now)
  br label %next
next:
  %number1 = add i64 %number, 1
  br label %each
done:
  ret void
}

; Has the threads of the pool avoid the CPU of the launching thread. A launch that is not the
; second in a row from there waits for as many launches since the last time as there are threads:
; those that launch in turn would else pay for moving all threads at each launch.
define internal void @make_way(ptr %pool) {
  %at_latest = @at(latest)
  %at_avoided = @at(avoided)
  %number = call i32 @sched_getcpu()
  %wide = sext i32 %number to i64
  %cpu = add i64 %wide, 1
  %latest = load i64, ptr %at_latest
  store i64 %cpu, ptr %at_latest
  %avoided = load i64, ptr %at_avoided
  %other = icmp ne i64 %cpu, %avoided
  br i1 %other, label %ask, label %done
ask:
  %at_moved = @at(moved)
  %moved = load i64, ptr %at_moved
  %generation = load i64, ptr %pool
  %passed = sub i64 %generation, %moved
  %at_known = @at(known)
  %known = load atomic i64, ptr %at_known monotonic, align 8
  %stays = icmp eq i64 %cpu, %latest
  %late = icmp sge i64 %passed, %known
  %moves = or i1 %stays, %late
  br i1 %moves, label %move, label %done
move:
  store i64 %generation, ptr %at_moved
  call void @avoid(ptr %pool, i64 %cpu)
  br label %done
done:
  ret void
}
"""
