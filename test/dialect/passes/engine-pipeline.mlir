// The engine's optimising pipeline, on an instrumented graph whose observers have been hit.
// RUN: profuse-opt %s -p 'profile-insensitive,profile-driven{min-size=1 max-values=128 max-ops=128},final,prepare-kernels' --verify-each | FileCheck %s
// RUN: profuse-opt %s -p 'profile-insensitive,profile-driven{min-size=1 max-values=128 max-ops=128 dynamic=true},final,prepare-kernels' --verify-each | FileCheck %s --check-prefix=DYN

// The loop is one group, so that one check serves all rounds.
// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[W:.*]]: !profuse.tensor, %[[N:.*]]: i64) -> !profuse.tensor
// CHECK-NOT:     profuse.profile
// CHECK-NOT:     scf.for
// CHECK:         %[[C:.*]]:3 = "profuse.type_check"(%[[X]], %[[W]])
// CHECK-SAME:      types = [tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>, tensor<8xf64, {device = "cpu", strides = ["1"]}>]
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]]#2 -> (!profuse.tensor) {
// CHECK-NEXT:      "profuse.fusion_group"(%[[C]]#0, %[[N]], %[[C]]#1) {callee = @fusion_loop0_0}
// CHECK:         } else {
// CHECK-NEXT:      "profuse.call_fallback"(%[[X]], %[[N]], %[[W]]) {callee = @fallback_loop0_0}
// CHECK:         return %[[R]] : !profuse.tensor

// The kernel's promotion is explicit, the fallback's is NumPy's.
// CHECK-LABEL: func.func private @fusion_loop0_0(
// CHECK:         scf.for
// CHECK:           "profuse.tanh"{{.*}} -> tensor<4x8xf32>
// CHECK:           "profuse.cast"{{.*}} -> tensor<4x8xf64>
// CHECK:           "profuse.cast"(%{{.*}}) {dtype = f32}
// CHECK-LABEL: func.func private @fallback_loop0_0(
// CHECK-NOT:     tensor<
// CHECK:         "profuse.mul"(%{{.*}}, %{{.*}}) : (!profuse.tensor, f64) -> !profuse.tensor

// DYN-LABEL:   func.func @step(
// DYN:           "profuse.dynamic_guard"
// DYN-SAME:        tensor<?x?xf32, {device = "cpu", dims = ["s0", "s1"], requires_grad = false, strides = "contiguous"}>
// DYN-SAME:        tensor<?xf64, {device = "cpu", dims = ["s1"], requires_grad = false, strides = "contiguous"}>
// DYN:           "profuse.call_fallback"
// DYN-LABEL:   func.func private @fusion_loop0_0(
// DYN:           "profuse.cast"{{.*}} -> tensor<?x?xf64, {dims = ["s0", "s1"]}>
func.func @step(%x: !profuse.tensor, %w: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p0 = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>} : (!profuse.tensor) -> !profuse.tensor
    %t = "profuse.tanh"(%p0) : (!profuse.tensor) -> !profuse.tensor
    %p1 = "profuse.profile"(%t) {site = 1 : i64, profiled_type = tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>} : (!profuse.tensor) -> !profuse.tensor
    %p2 = "profuse.profile"(%w) {site = 2 : i64, profiled_type = tensor<8xf64, {device = "cpu", strides = ["1"]}>} : (!profuse.tensor) -> !profuse.tensor
    %u = "profuse.add"(%p1, %p2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %two = "profuse.constant"() {value = 2.0 : f64} : () -> f64
    %v = "profuse.mul"(%u, %two) : (!profuse.tensor, f64) -> !profuse.tensor
    %s = "profuse.cast"(%v) {dtype = f32} : (!profuse.tensor) -> !profuse.tensor
    %p3 = "profuse.profile"(%s) {site = 3 : i64, profiled_type = tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %p3 : !profuse.tensor
  }
  %p4 = "profuse.profile"(%r) {site = 4 : i64, profiled_type = tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>} : (!profuse.tensor) -> !profuse.tensor
  "profuse.profile_counter"() : () -> ()
  return %p4 : !profuse.tensor
}
