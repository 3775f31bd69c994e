// R1.24: what an earlier profile said of values is forgotten; records of observers stay.
// RUN: profuse-opt %s --pass-pipeline=clear-profile-types --verify-each | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[N:.*]]: i64) -> !profuse.tensor
// CHECK-NEXT:    %[[P:.*]] = "profuse.profile"(%[[X]]) {profiled_type = tensor<4xf32>, site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[T:.*]] = "profuse.tanh"(%[[P]]) : (!profuse.tensor) -> !profuse.tensor
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[T]]) -> (!profuse.tensor)
// CHECK-NEXT:      "profuse.exp"(%{{.*}}) : (!profuse.tensor) -> !profuse.tensor
// CHECK:         return %{{.*}} : !profuse.tensor
func.func @f(%x: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32>} : (tensor<4xf32>) -> tensor<4xf32>
  %t = "profuse.tanh"(%p) : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %n to %n step %n iter_args(%a = %t) -> (tensor<4xf32>) : i64 {
    %e = "profuse.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Fusion functions are compiled for their types.
// CHECK-LABEL: func.func private @fusion_0(
// CHECK-SAME:    %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func private @fusion_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
