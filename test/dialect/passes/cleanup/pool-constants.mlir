// R1.24: one copy of each constant, at the top; two that a graph returns stay two arrays.
// RUN: profuse-opt %s --pass-pipeline=pool-constants --verify-each | FileCheck %s

// CHECK-LABEL: func.func @pooled(
// CHECK-NEXT:    %[[C:.*]] = "profuse.constant"() {value = 2.000000e+00 : f64}
// CHECK-NEXT:    %[[D:.*]] = "profuse.constant"() {value = 2 : i64}
// CHECK-NEXT:    %[[A:.*]] = "profuse.mul"(%{{.*}}, %[[C]])
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "profuse.mul"(%[[A]], %[[C]])
// CHECK:           "profuse.mul"(%[[A]], %[[D]])
// CHECK-NOT:     profuse.constant
// CHECK:         return
func.func @pooled(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %0 = "profuse.constant"() {value = 2.0 : f64} : () -> f64
  %a = "profuse.mul"(%x, %0) : (!profuse.tensor, f64) -> !profuse.tensor
  %r = scf.if %c -> (!profuse.tensor) {
    %1 = "profuse.constant"() {value = 2.0 : f64} : () -> f64
    %b = "profuse.mul"(%a, %1) : (!profuse.tensor, f64) -> !profuse.tensor
    scf.yield %b : !profuse.tensor
  } else {
    %2 = "profuse.constant"() {value = 2 : i64} : () -> i64
    %b = "profuse.mul"(%a, %2) : (!profuse.tensor, i64) -> !profuse.tensor
    scf.yield %b : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// CHECK-LABEL: func.func @returned(
// CHECK-NEXT:    %[[A:.*]] = "profuse.constant"
// CHECK-NEXT:    %[[B:.*]] = "profuse.constant"
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @returned() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
