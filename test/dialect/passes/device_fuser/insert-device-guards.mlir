// R3.35: a guard of the tensor operands, an if, the group, a fallback; A6: what sizes have to fit.
// R3.36 - R3.39: an operand that an observer gives is a constant in the group, and is compared outside.
// RUN: profuse-opt -p insert-device-guards,dce %s | FileCheck %s

// CHECK-LABEL: func.func @sizes(
// CHECK:         %[[G:.*]]:3 = "profuse.cuda_guard"(%arg0, %arg1) {equal = [array<i64: 0, 0, 1, 0>, array<i64: 0, 1, 1, 1>], types = [tensor<8x8xf32, {{.*}}>, tensor<8x8xf32, {{.*}}>]}
// CHECK:         %[[R:.*]] = scf.if %[[G]]#2 -> (tensor<8x8xf32>)
// CHECK:           "profuse.cuda_group"(%[[G]]#0, %[[G]]#1) {callee = @cuda_group_0}
// CHECK:         } else {
// CHECK:           "profuse.fallback_graph"(%arg0, %arg1) {callee = @fallback_0}
func.func @sizes(%x: tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>, %y: tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<8x8xf32> {
  %0 = "profuse.cuda_group"(%x, %y) {callee = @cuda_group_0} : (tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// One of two checks: the values first, in the order of the operands.
// CHECK-LABEL: func.func @keepdims(
// CHECK:         %[[K:.*]] = "profuse.profile_value"(%arg1)
// CHECK:         %[[G:.*]]:2 = "profuse.cuda_guard"(%arg0)
// CHECK:         %[[SEEN:.*]] = "profuse.constant"() {value = true} : () -> i1
// CHECK:         %[[TRUE:.*]] = "profuse.constant"() {value = true} : () -> i1
// CHECK:         %[[X:.*]] = "profuse.bool_xor"(%[[K]], %[[SEEN]])
// CHECK:         %[[SAME:.*]] = "profuse.bool_xor"(%[[X]], %[[TRUE]])
// CHECK:         %[[ALL:.*]] = "profuse.all_true"(%[[SAME]], %[[G]]#1) : (i1, i1) -> i1
// CHECK:         scf.if %[[ALL]]
// CHECK:           "profuse.cuda_group"(%[[G]]#0) {callee = @cuda_group_1}
// CHECK:           "profuse.fallback_graph"(%arg0, %[[K]]) {callee = @fallback_1}
func.func @keepdims(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %k: i1) -> tensor<4x1xf32> {
  %0 = "profuse.profile_value"(%k) {site = 0 : i64} : (i1) -> i1
  %1 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_1} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, i1) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

// R3.40: the way in which sizes are regrouped, of the viewed value's sizes and those asked for.
// CHECK-LABEL: func.func @view(
// CHECK:         "profuse.cuda_guard"(%arg0, %arg1)
// CHECK-SAME:      equal = [array<i64: 0, 0, 1, 0>, array<i64: 0, 1, 1, 1>]
// CHECK-SAME:      fit = ["(s0_1 % 3) == 0"]
// CHECK:         %[[X:.*]] = "profuse.sizes"(%arg0)
// CHECK:         %[[Y:.*]] = "profuse.sizes"(%arg1)
// CHECK:         %[[OWN:.*]] = "profuse.broadcast_sizes"(%[[X]], %[[Y]])
// CHECK:         %[[OK:.*]] = "profuse.view_guard"(%[[OWN]], %{{.*}}) {constraint = "s0, s1 -> s0, (s1 // 3), 3"}
// CHECK:         "profuse.all_true"(%[[OK]], %
func.func @view(%x: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %y: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<2x2x3xf32> {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.cuda_group"(%x, %y, %0) {callee = @cuda_group_2} : (tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<2x2x3xf32>
  return %1 : tensor<2x2x3xf32>
}

// A8: sizes in front of the group follow from its operands, also those of a value that it returns.
// CHECK-LABEL: func.func @materialised(
// CHECK:         %[[X:.*]] = "profuse.sizes"(%arg0)
// CHECK:         %[[SUM:.*]] = "profuse.reduction_sizes"(%[[X]]) {axes = array<i64: 0>}
// CHECK:         "profuse.view_guard"(%[[SUM]], %{{.*}}) {constraint = "s0 -> (s0 // 3), 3"}
// CHECK:         scf.if
func.func @materialised(%x: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> (tensor<6xf32>, tensor<2x3xf32>) {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1:2 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_5} : (tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> (tensor<6xf32>, tensor<2x3xf32>)
  return %1#0, %1#1 : tensor<6xf32>, tensor<2x3xf32>
}

// R3.43: the target of a sum; the array that is summed has to fit it as well.
// CHECK-LABEL: func.func @target(
// CHECK:         "profuse.cuda_guard"(%arg0)
// CHECK-NOT:       fit
// CHECK:         %[[X:.*]] = "profuse.sizes"(%arg0)
// CHECK:         "profuse.size_eq"(%{{.*}}, %[[X]]) {reference = array<i64: 4, 1>}
func.func @target(%x: tensor<2x4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<4x1xf32> {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_3} : (tensor<2x4x8xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

// In a block: the guard stands there, and so do the checks.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.if %arg2
// CHECK:           "profuse.cuda_guard"(%arg0)
// CHECK:           %[[X:.*]] = "profuse.sizes"(%arg0)
// CHECK:           %[[OK:.*]] = "profuse.view_guard"(%[[X]], %
// CHECK:           %[[ALL:.*]] = "profuse.all_true"(%[[OK]], %
// CHECK:           scf.if %[[ALL]]
// CHECK:             "profuse.cuda_group"
// CHECK:             "profuse.fallback_graph"
func.func @nested(%x: tensor<6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints, %c: i1) -> tensor<2x3xf32> {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1 = scf.if %c -> (tensor<2x3xf32>) {
    %2 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_6} : (tensor<6xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<2x3xf32>
    scf.yield %2 : tensor<2x3xf32>
  } else {
    %2 = "profuse.reshape"(%x) {shape = array<i64: 2, 3>} : (tensor<6xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<2x3xf32>
    scf.yield %2 : tensor<2x3xf32>
  }
  return %1 : tensor<2x3xf32>
}

// Everything else is compared as it is.
// CHECK-LABEL: func.func @axes(
// CHECK:         "profuse.value_eq"(%{{.*}}) {value = array<i64: 1>}
func.func @axes(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<4xf32> {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_4} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @cuda_group_0(
// CHECK-SAME:    dims = ["s0_0", "s0_1"]{{.*}}dims = ["s0_0", "s0_1"]
func.func private @cuda_group_0(%x: tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>, %y: tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<8x8xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func private @cuda_group_1(
// CHECK-NOT:     i1
// CHECK:         "profuse.sum"(%arg0) {axes = array<i64: 1>, keepdims = true}
func.func private @cuda_group_1(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %k: i1) -> tensor<4x1xf32> {
  %0 = "profuse.constant"(%k) {value = true} : (i1) -> i1
  %a = "profuse.constant"() {value = array<i64: 1>} : () -> !profuse.ints
  %1 = "profuse.late"(%x, %a, %0) {op = "sum", names = ["axes", "keepdims"]} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints, i1) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

// CHECK-LABEL: func.func private @cuda_group_2(
// CHECK:         "profuse.reshape"(%{{.*}}, %{{.*}}, %{{.*}}) {shape = array<i64: -9223372036854775808, -9223372036854775808, 3>}
// CHECK-SAME:    dims = ["s0_0", "k1", "3"]
func.func private @cuda_group_2(%x: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %y: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<2x2x3xf32> {
  %0 = "profuse.constant"(%s) {value = array<i64: 2, 2, 3>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.add"(%x, %y) : (tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<2x6xf32>
  %2 = "profuse.late"(%1, %0) {op = "reshape", names = ["shape"]} : (tensor<2x6xf32>, !profuse.ints) -> tensor<2x2x3xf32>
  return %2 : tensor<2x2x3xf32>
}

// CHECK-LABEL: func.func private @cuda_group_3(
// CHECK:         %[[LIKE:.*]] = "profuse.full"
// CHECK:         "profuse.sum_to"(%arg0, %[[LIKE]])
func.func private @cuda_group_3(%x: tensor<2x4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<4x1xf32> {
  %0 = "profuse.constant"(%s) {value = array<i64: 4, 1>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.late"(%x, %0) {op = "sum_to_size", names = ["sizes"]} : (tensor<2x4x8xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

func.func private @cuda_group_4(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<4xf32> {
  %0 = "profuse.constant"(%s) {value = array<i64: 1>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.late"(%x, %0) {op = "sum", names = ["axes"]} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @cuda_group_5(%x: tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> (tensor<6xf32>, tensor<2x3xf32>) {
  %0 = "profuse.constant"(%s) {value = array<i64: 2, 3>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.sum"(%x) {axes = array<i64: 0>} : (tensor<2x6xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<6xf32>
  %2 = "profuse.late"(%1, %0) {op = "reshape", names = ["shape"]} : (tensor<6xf32>, !profuse.ints) -> tensor<2x3xf32>
  return %1, %2 : tensor<6xf32>, tensor<2x3xf32>
}

func.func private @cuda_group_6(%x: tensor<6xf32, {device = "cuda:0", strides = "contiguous"}>, %s: !profuse.ints) -> tensor<2x3xf32> {
  %0 = "profuse.constant"(%s) {value = array<i64: 2, 3>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.late"(%x, %0) {op = "reshape", names = ["shape"]} : (tensor<6xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.ints) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// R3.36: the fallback takes the value of the run.
// CHECK-LABEL: func.func private @fallback_1(
// CHECK-SAME:    %arg0: !profuse.tensor, %arg1: i1)
// CHECK:         "profuse.late"(%arg0, %{{.*}}, %arg1) {names = ["axes", "keepdims"], op = "sum"}
