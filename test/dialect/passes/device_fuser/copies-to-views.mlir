// RUN: profuse-opt %s -p copies-to-views --verify-each | FileCheck %s

// R3.12: outside of groups, in nested blocks and in fallbacks; at the end copies are in group bodies only.
// CHECK-LABEL: func.func @guarded(
// CHECK-NOT:     _copy
// CHECK:         %[[R:.*]] = scf.if
// CHECK:           "profuse.cuda_group"
// CHECK:           "profuse.fallback_graph"
// CHECK:         "profuse.reshape"(%[[R]]) {shape = array<i64: 4>}
// CHECK:         scf.if
// CHECK-NEXT:      "profuse.squeeze"(
func.func @guarded(%x: !profuse.tensor, %k: i1) -> !profuse.tensor {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %c#1 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%c#0) {callee = @device_0} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  %0 = "profuse.reshape_copy"(%r) {implicit = true, shape = array<i64: 4>} : (!profuse.tensor) -> !profuse.tensor
  %1 = scf.if %k -> !profuse.tensor {
    %2 = "profuse.squeeze_copy"(%0) {implicit = true} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    scf.yield %0 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
// CHECK-LABEL: func.func private @device_0
// CHECK-NEXT:    "profuse.unsqueeze_copy"(%{{.*}}) {axes = array<i64: 0>, implicit = true}
func.func private @device_0(%x: tensor<4xf32>) -> tensor<1x4xf32> {
  %0 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: 0>, implicit = true} : (tensor<4xf32>) -> tensor<1x4xf32>
  %1 = "profuse.exp"(%0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}
// CHECK-LABEL: func.func private @fallback_0
// CHECK-NEXT:    "profuse.expand_dims"(%{{.*}}) {axes = array<i64: 0>}
// CHECK:         "profuse.fallback_graph"(%{{.*}}) {callee = @fallback_1}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: 0>, implicit = true} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.fallback_graph"(%0) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}
// CHECK-LABEL: func.func private @fallback_1
// CHECK-NEXT:    "profuse.squeeze"(
func.func private @fallback_1(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.squeeze_copy"(%x) {axes = array<i64: 0>, implicit = true} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}
