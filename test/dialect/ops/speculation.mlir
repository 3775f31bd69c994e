// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @observers
// CHECK:         "profuse.profile"(%{{.*}}) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
// CHECK:         "profuse.profile"(%{{.*}}) {profiled_type = tensor<4x8xf32, {defined = true, device = "cpu", requires_grad = false, strides = ["8", "1"]}>, site = 1 : i64}
// CHECK:         "profuse.profile_value"(%{{.*}}) {seen = 3 : i64, site = 2 : i64} : (i64) -> i64
// CHECK:         "profuse.profile_value"(%{{.*}}) {none = 2 : i64, present = 1 : i64, site = 3 : i64} : (i64) -> i64
// CHECK:         "profuse.profile_counter"() : () -> ()
func.func @observers(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %0 = "profuse.profile"(%x) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.profile"(%0) {site = 1 : i64, profiled_type = tensor<4x8xf32, {strides = ["8", "1"], device = "cpu", requires_grad = false, defined = true}>} : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.profile_value"(%n) {site = 2 : i64, seen = 3 : i64} : (i64) -> i64
  %3 = "profuse.profile_value"(%n) {site = 3 : i64, none = 2 : i64, present = 1 : i64} : (i64) -> i64
  "profuse.profile_counter"() : () -> ()
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func @guards
// CHECK:         %{{.*}}:3 = "profuse.type_check"(%{{.*}}, %{{.*}}) {types = [tensor<4xf32>, !profuse.tensor]}
// CHECK:         %{{.*}}:2 = "profuse.dynamic_guard"(%{{.*}}) {types = [tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>]}
func.func @guards(%x: !profuse.tensor, %y: !profuse.tensor) -> (i1, i1) {
  %0:3 = "profuse.type_check"(%x, %y) {types = [tensor<4xf32>, !profuse.tensor]} : (!profuse.tensor, !profuse.tensor) -> (tensor<4xf32>, !profuse.tensor, i1)
  %1:2 = "profuse.dynamic_guard"(%x) {types = [tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>]} : (!profuse.tensor) -> (tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>, i1)
  return %0#2, %1#1 : i1, i1
}

// CHECK-LABEL: func.func @subgraphs
// CHECK:         "profuse.fusion_group"(%{{.*}}) {callee = @body}
// CHECK:         "profuse.fallback_graph"(%{{.*}}) {callee = @body}
// CHECK:         "profuse.call_fallback"(%{{.*}}) {callee = @body}
func.func @subgraphs(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.fusion_group"(%x) {callee = @body} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.fallback_graph"(%0) {callee = @body} : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.call_fallback"(%1) {callee = @body} : (!profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}
func.func private @body(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
