// RUN: profuse-opt %s --verify-each --split-input-file \
// RUN:   -p 'differentiate,canonicalize-profuse,cse,dce' | FileCheck %s

// A gradient comes in for each float result, and goes out for each float input; sizes may be
// unknown. What was broadcast is summed, and a product is differentiated by its transposes.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME:    %[[X:.*]]: tensor<?x4xf32>, %[[W:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<3xf32>,
// CHECK-SAME:    %[[G:.*]]: tensor<?x3xf32>)
// CHECK-SAME:    -> (tensor<?x3xf32>, tensor<?x4xf32>, tensor<4x3xf32>, tensor<3xf32>)
// CHECK:         %[[Y:.*]] = "profuse.tanh"
// CHECK:         "profuse.mul"(%[[G]], %{{.*}})
// CHECK:         "profuse.sum_to"({{.*}}) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK:         %[[WT:.*]] = "profuse.swapaxes"({{.*}} -> tensor<3x4xf32>
// CHECK:         "profuse.matmul"(%{{.*}}, %[[WT]])
// CHECK:         %[[XT:.*]] = "profuse.swapaxes"({{.*}} -> tensor<4x?xf32>
// CHECK:         "profuse.matmul"(%[[XT]], %{{.*}})
// CHECK:         return %[[Y]],
func.func @layer(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>) -> !profuse.tensor {
  %p = "profuse.matmul"(%x, %w) : (tensor<?x4xf32>, tensor<4x3xf32>) -> !profuse.tensor
  %y = "profuse.add"(%p, %b) : (!profuse.tensor, tensor<3xf32>) -> !profuse.tensor
  %t = "profuse.tanh"(%y) : (!profuse.tensor) -> !profuse.tensor
  return %t : !profuse.tensor
}

// -----

// Results and inputs that are no floats have no gradients; what nothing depends on has zeros.
// CHECK-LABEL: func.func @integers(
// CHECK-SAME:    %{{.*}}: tensor<5xf64>, %{{.*}}: tensor<5xf64>, %{{.*}}: i64, %[[G:.*]]: tensor<5xf64>)
// CHECK-SAME:    -> (tensor<5xf64>, i64, tensor<5xf64>, tensor<5xf64>)
// CHECK:         %[[D:.*]] = "profuse.mul"(%[[G]], %{{.*}})
// CHECK:         %[[UNUSED:.*]] = "profuse.full"
// CHECK:         return %{{.*}}, %{{.*}}, %[[D]], %[[UNUSED]]
func.func @integers(%x: tensor<5xf64>, %unused: tensor<5xf64>, %n: i64) -> (!profuse.tensor, i64) {
  %r = "profuse.sin"(%x) : (tensor<5xf64>) -> !profuse.tensor
  return %r, %n : !profuse.tensor, i64
}

// -----

// The rounds of a loop run backwards, from what each began with; a branch is taken again.
// CHECK-LABEL: func.func @flow(
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK:           "profuse.pick_scatter"
// CHECK:         scf.for
// CHECK:           "profuse.pick"
// CHECK:           scf.if
// CHECK:             "profuse.cos"
// CHECK:           } else {
// CHECK-NOT:         "profuse.cos"
// CHECK:         return
func.func @flow(%x: tensor<5xf64>, %n: i64, %c: i1) -> tensor<5xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<5xf64>) : i64 {
    %w = scf.if %c -> tensor<5xf64> {
      %s = "profuse.sin"(%v) : (tensor<5xf64>) -> tensor<5xf64>
      scf.yield %s : tensor<5xf64>
    } else {
      %m = "profuse.neg"(%v) : (tensor<5xf64>) -> tensor<5xf64>
      scf.yield %m : tensor<5xf64>
    }
    scf.yield %w : tensor<5xf64>
  }
  return %r : tensor<5xf64>
}

// -----

// Writes to an array that the function makes are made pure before they are differentiated.
// CHECK-LABEL: func.func @writes(
// CHECK-NOT:     profuse.{{.*}}_(
// CHECK:         return
func.func @writes(%x: tensor<5xf64>) -> !profuse.tensor {
  %c = "profuse.copy"(%x) : (tensor<5xf64>) -> !profuse.tensor
  %w = "profuse.mul_"(%c, %x) : (!profuse.tensor, tensor<5xf64>) -> !profuse.tensor
  return %w : !profuse.tensor
}

// -----

// A maximum that is subtracted for the sake of range alone has no gradient.
// CHECK-LABEL: func.func @softmax(
// CHECK-COUNT-1: "profuse.max"
// CHECK-NOT:     "profuse.eq"
// CHECK:         return
func.func @softmax(%x: tensor<?x?xf32>) -> !profuse.tensor {
  %m = "profuse.max"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<?x?xf32>) -> !profuse.tensor
  %d = "profuse.sub"(%x, %m) : (tensor<?x?xf32>, !profuse.tensor) -> !profuse.tensor
  %e = "profuse.exp"(%d) : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.sum"(%e) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %r = "profuse.div"(%e, %s) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %r : !profuse.tensor
}
