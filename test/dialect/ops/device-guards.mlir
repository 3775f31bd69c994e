// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// What has passed is known but for sizes other than 0 and 1 (R3.42).
// CHECK-LABEL: func.func @relaxed
// CHECK:         %{{.*}}:3 = "profuse.cuda_guard"(%{{.*}}, %{{.*}}) {types = [tensor<4x1xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x0xf32, {device = "cuda:0", strides = ["1", "8"]}>]}
// CHECK-SAME:    -> (tensor<?x1xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<?x0xf32, {device = "cuda:0"}>, i1)
func.func @relaxed(%x: !profuse.tensor, %y: !profuse.tensor) -> i1 {
  %0:3 = "profuse.cuda_guard"(%x, %y) {types = [tensor<4x1xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x0xf32, {device = "cuda:0", strides = ["1", "8"]}>]} : (!profuse.tensor, !profuse.tensor) -> (tensor<?x1xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<?x0xf32, {device = "cuda:0"}>, i1)
  return %0#2 : i1
}

// CHECK-LABEL: func.func @sizes
// CHECK:         "profuse.size_eq"(%{{.*}}) {reference = array<i64: 4, 1>} : (!profuse.ints) -> i1
// CHECK:         "profuse.size_eq"(%{{.*}}) {reference = array<i64>} : (!profuse.ints) -> i1
func.func @sizes(%s: !profuse.ints) -> (i1, i1) {
  %0 = "profuse.size_eq"(%s) {reference = array<i64: 4, 1>} : (!profuse.ints) -> i1
  %1 = "profuse.size_eq"(%s) {reference = array<i64>} : (!profuse.ints) -> i1
  return %0, %1 : i1, i1
}

// A group of the fuser of device groups is called as any other group is (R3.35).
// CHECK-LABEL: func.func @grouped
// CHECK:         "profuse.cuda_group"(%{{.*}}) {callee = @body} : (!profuse.tensor) -> !profuse.tensor
func.func @grouped(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.cuda_group"(%x) {callee = @body} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// CHECK: func.func private @body
func.func private @body(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
