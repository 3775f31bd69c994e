// RUN: profuse-opt -p to-gpu %s | FileCheck %s
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm --emit ptx %s | FileCheck %s --check-prefix=PTX \
// RUN:   --implicit-check-not=.local

// Eight halves per access; what the caller passes is tested to be aligned before the launch, and
// the general kernel, one element per thread, is for when it is not. One output, one loop nest.
// CHECK-LABEL: func.func private @half(
// CHECK-SAME:  Choice(conditions=(Condition(kind='aligned', subject=0, number=16),)
// CHECK:       gpu.func @half_nest0(%{{.*}}: memref<?xi16>, %{{.*}}: memref<?xi16>) kernel
// CHECK:         scf.for
// CHECK-NEXT:      arith.index_cast
// CHECK-NEXT:      vector.load {{.*}} {alignment = 16 : i64} : memref<?xi16>, vector<8xi16>
// CHECK-NOT:       memref.load
// CHECK:           vector.store {{.*}} {alignment = 16 : i64} : memref<?xi16>, vector<8xi16>
// CHECK:       gpu.func @half_nest0_general
// CHECK-NOT:     vector.load
// CHECK:         memref.store
// PTX-LABEL:   .entry half_nest0(
// PTX:           ld.global.nc.v4.b32
// PTX:           st.global.v4.b32
func.func @half(%0: tensor<4096xbf16, {strides = "contiguous"}>, %1: tensor<4096xf16, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor) {
  %2 = "profuse.neg"(%0) : (tensor<4096xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.neg"(%1) : (tensor<4096xf16, {strides = "contiguous"}>) -> !profuse.tensor
  return %2, %3 : !profuse.tensor, !profuse.tensor
}

// Rows along y, columns along x, nothing divided in the loops; sizes that vectors do not divide
// and those past 32 bits are the general kernel's.
// CHECK-LABEL: func.func private @dyn(
// CHECK-SAME:  Condition(kind='below', subject='m*n', number=1073741824)
// CHECK-SAME:  Condition(kind='divisible', subject='m', number=4)
// CHECK-SAME:  ('size', 'n'), ('size', 'm')
// CHECK:       gpu.func @dyn_nest0(
// CHECK:         scf.for {{.*}} : i32 {
// CHECK-NOT:       arith.div
// CHECK-NOT:       arith.rem
// CHECK:           scf.for {{.*}} : i32 {
// CHECK-COUNT-2:     vector.load {{.*}} vector<4xf32>
// CHECK:             vector.store
// CHECK:       gpu.func @dyn_nest0_general(
// CHECK:         scf.for {{.*}} : i64 {
// PTX-LABEL:   .entry dyn_nest0(
// PTX:         $L__BB0_2:
// PTX-NOT:       {{div|rem}}.
// PTX:           ld.global.nc.v4.b32
// PTX-NOT:       {{div|rem}}.
// PTX:           st.global.v4.b32
func.func private @dyn(%0: tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>, %1: tensor<?xf32, {dims = ["m"], strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.add"(%0, %1) : (tensor<?x?xf32, {dims = ["n", "m"], strides = "contiguous"}>, tensor<?xf32, {dims = ["m"], strides = "contiguous"}>) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// Elements that are apart are loaded one by one, next to a value loaded once per row.
// CHECK-LABEL: func.func private @strided(
// CHECK:       gpu.func @strided_nest0(
// CHECK:         scf.for
// CHECK:           memref.load %{{.*}} : memref<?xf32>
// CHECK:           scf.for
// CHECK-COUNT-4:     memref.load
// CHECK:             vector.store
func.func private @strided(%0: tensor<64x256xf32, {strides = ["512", "2"]}>, %1: tensor<64x1xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.mul"(%0, %1) : (tensor<64x256xf32, {strides = ["512", "2"]}>, tensor<64x1xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// Rows picked by index: the violation flag comes from a reduction, the picked rows are stored in
// vectors.
// CHECK-LABEL: func.func private @picked(
// CHECK:       gpu.func @picked_nest0(
// CHECK:         arith.ori
// CHECK:         gpu.shuffle xor
// CHECK:       gpu.func @picked_nest1(
// CHECK:         memref.load %{{.*}} : memref<?xi64>
// CHECK:         vector.store {{.*}} vector<4xf32>
func.func private @picked(%0: tensor<100x64xf32, {strides = "contiguous"}>, %1: tensor<32xi64, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.take"(%0, %1) {axis = 0 : i64} : (tensor<100x64xf32, {strides = "contiguous"}>, tensor<32xi64, {strides = "contiguous"}>) -> !profuse.tensor
  return %2 : !profuse.tensor
}
