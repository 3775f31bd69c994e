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

// A row that registers cannot hold is read by each stage.
// CHECK-LABEL: func.func private @longrow(
// CHECK:       gpu.func @longrow_nest0(
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
// CHECK-LABEL: func.func private @any(
// CHECK-SAME:  Condition(kind='divisible', subject='m', number=4)
// CHECK:       gpu.func @any_nest0(
// CHECK-COUNT-2: scf.for {{.*}} iter_args
// CHECK:         scf.for
// CHECK:           vector.store
// CHECK:       gpu.func @any_nest0_general(
// PTX-LABEL:   .entry any_nest0(
// PTX-COUNT-3:   ld.global.nc.v4.b32
// PTX:           st.global.v4.b32
// PTX-LABEL:   .entry any_nest0_general(
func.func private @any(%0: tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}
