// RUN: profuse-opt -p to-gpu %s | FileCheck %s
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm %s | FileCheck %s --check-prefix=NVVM
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm --emit ptx %s | FileCheck %s --check-prefix=PTX \
// RUN:   --implicit-check-not=.local --implicit-check-not='{{div|rem}}.{{[su]}}' --implicit-check-not='{{atom|red}}.global'

// One kernel, a block per row, the row read once: 128 threads with two vectors each. Both
// reductions are five shuffles, a barrier, and two shuffles for four warps.
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME:  Launch(kernel='softmax_nest0', grid=('1024', '1', '1'), block=('128', '1', '1')
// CHECK:       gpu.func @softmax_nest0(
// CHECK-SAME:    workgroup(%{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<4xf32
// CHECK-COUNT-2: vector.load
// CHECK-NOT:     vector.load
// CHECK:         arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         gpu.barrier
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK-COUNT-2: vector.store
// CHECK:       gpu.func @softmax_nest0_general(
// NVVM:        llvm.func @softmax_nest0(%{{.*}}: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: !llvm.ptr<1> {llvm.noalias})
// NVVM:          nvvm.shfl.sync
// NVVM:          nvvm.barrier
// PTX-LABEL:   .entry softmax_nest0(
// PTX-COUNT-2:   ld.global.nc.v4.b32
// PTX-NOT:       ld.global
// PTX:           shfl.sync.bfly.b32
// PTX:           bar.sync
// PTX-NOT:       ld.global
// PTX-NOT:       {{ld|st}}.local
// PTX-COUNT-2:   st.global.v4.b32
// PTX-LABEL:   .entry softmax_nest0_general(
func.func @softmax(%0: tensor<1024x1024xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<1024x1024xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<1024x1024xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}

// A row that registers cannot hold is left in shared memory by the stage that reads it, in vectors
// that the next one replaces by exponentials; the last one reads those. Nothing is read, or
// computed, twice, and the barriers are those of the two reductions: threads read what is their own.
// CHECK-LABEL: func.func private @inshared(
// CHECK-SAME:  Launch(kernel='inshared_nest0', grid=('8', '1', '1'), block=('1024', '1', '1'),
// CHECK-SAME:  shared='80000'
// CHECK:       gpu.func @inshared_nest0(
// CHECK:         %[[BYTES:.*]] = gpu.dynamic_shared_memory
// CHECK:         %[[ROW:.*]] = memref.view %[[BYTES]]
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load %arg0
// CHECK:           vector.store %{{.*}}, %[[ROW]]
// CHECK:         gpu.barrier
// CHECK:         scf.for {{.*}} iter_args
// CHECK-NEXT:      index_cast
// CHECK-NEXT:      vector.load %[[ROW]]
// CHECK:           vector.store %{{.*}}, %[[ROW]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK-NEXT:      index_cast
// CHECK-NEXT:      vector.load %[[ROW]]
// CHECK-NOT:       arith.mulf
// CHECK:           vector.store %{{.*}}, %arg1
// CHECK-NOT:     gpu.barrier
// CHECK:       gpu.func @inshared_nest0_general(
// PTX:         .extern .shared .align 16 .b8 __dynamic_shmem__0[];
// PTX-LABEL:   .entry inshared_nest0(
// PTX:           ld.global.nc.v4.b32
// PTX-NOT:       ld.global
// PTX:           st.shared.v4.b32
// PTX-NOT:       ld.global
// PTX:           bar.sync
// PTX-NOT:       ld.global
// PTX:           ld.shared.v4.b32
// PTX-NOT:       ld.global
// PTX:           st.shared.v4.b32
// PTX-NOT:       ld.global
// PTX:           bar.sync
// PTX-NOT:       {{ld.global|bar.sync}}
// PTX:           ld.shared.v4.b32
// PTX-NOT:       {{ld.global|bar.sync}}
// PTX:           st.global.v4.b32
// PTX-NOT:       {{ld.global|bar.sync}}
// PTX-LABEL:   .entry inshared_nest0_general(
func.func private @inshared(%0: tensor<8x20000xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<8x20000xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<8x20000xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}

// A row that shared memory cannot hold either is read by each stage.
// CHECK-LABEL: func.func private @longrow(
// CHECK-SAME:  shared='0'
// CHECK:       gpu.func @longrow_nest0(
// CHECK-NOT:     gpu.dynamic_shared_memory
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load
// CHECK:         gpu.barrier
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           vector.load
// CHECK:           vector.store
func.func private @longrow(%0: tensor<8x100000xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<8x100000xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<8x100000xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}

// Rows of halves, eight at a time, computed with in f32 once read and stored as halves: mean, then
// variance, then the rest, a warp per row of 512, no shared memory.
// CHECK-LABEL: func.func private @layernorm(
// CHECK-SAME:  Launch(kernel='layernorm_nest0', grid=('16', '1', '1'), block=('32', '4', '1')
// CHECK:       gpu.func @layernorm_nest0(
// CHECK-NOT:     gpu.barrier
// CHECK-COUNT-2: vector.load {{.*}} vector<8xi16>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK-COUNT-2: vector.store {{.*}} vector<8xi16>
// CHECK:       gpu.func @layernorm_nest0_general(
// PTX-LABEL:   .entry layernorm_nest0(
// PTX-COUNT-2:   ld.global.nc.v4.b32
// PTX-NOT:       bar.sync
// PTX:           shfl.sync.bfly.b32
// PTX-NOT:       ld.global
// PTX-COUNT-2:   st.global.v4.b32
// PTX-LABEL:   .entry layernorm_nest0_general(
func.func private @layernorm(%0: tensor<64x512xbf16, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.mean"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<64x512xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<64x512xbf16, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.square"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.mean"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.sqrt"(%4) : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.div"(%2, %5) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %6 : !profuse.tensor
}

// A row of any length: one kernel of three loops, each of vectors where sizes and addresses allow.
// Where shared memory has no room for it, there are kernels that read it three times.
// CHECK-LABEL: func.func private @any(
// CHECK-SAME:  Choice(conditions=(Condition(kind='below', subject='16*((4*m + 15) // 16)', number=57281),), then=(Choice(
// CHECK-SAME:  Condition(kind='divisible', subject='m', number=4)
// CHECK-SAME:  kernel='any_nest0', {{[^L]*}} shared='16*((4*m + 15) // 16)'
// CHECK-SAME:  kernel='any_nest0_general', {{[^L]*}} shared='16*((4*m + 15) // 16)'
// CHECK-SAME:  otherwise=(Choice(
// CHECK-SAME:  kernel='any_nest0_large', {{[^L]*}} shared='0'
// CHECK:       gpu.func @any_nest0(
// CHECK-COUNT-2: scf.for {{.*}} iter_args
// CHECK:         scf.for
// CHECK:           vector.store
// CHECK:       gpu.func @any_nest0_general(
// CHECK:       gpu.func @any_nest0_large(
// CHECK:       gpu.func @any_nest0_large_general(
// PTX-LABEL:   .entry any_nest0(
// PTX:           ld.global.nc.v4.b32
// PTX-NOT:       ld.global
// PTX-COUNT-2:   ld.shared.v4.b32
// PTX-NOT:       ld.global
// PTX:           st.global.v4.b32
// PTX-LABEL:   .entry any_nest0_general(
// PTX-LABEL:   .entry any_nest0_large(
// PTX-COUNT-3:   ld.global.nc.v4.b32
// PTX:           st.global.v4.b32
// PTX-LABEL:   .entry any_nest0_large_general(
func.func private @any(%0: tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}
