// RUN: profuse-opt -p cse-profuse %s | FileCheck %s

// CHECK-LABEL: func.func @equal
func.func @equal(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: %[[E:.*]] = "profuse.exp"(%arg0)
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  // Once the operands are the same value, users become equal too.
  // CHECK-NEXT: %[[S:.*]] = "profuse.sum"(%[[E]])
  %2 = "profuse.sum"(%0) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.sum"(%1) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.add"(%[[S]], %[[S]])
  %4 = "profuse.add"(%2, %3) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %4 : !profuse.tensor
}

// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<4x4xf32>) -> !profuse.tensor {
  // CHECK-COUNT-2: "profuse.sum"
  %0 = "profuse.sum"(%x) {axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "profuse.sum"(%x) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  // Result types differ.
  // CHECK-COUNT-2: "profuse.exp"
  %2 = "profuse.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "profuse.exp"(%0) : (tensor<4xf32>) -> tensor<?xf32>
  // CHECK-COUNT-2: "profuse.profile_counter"
  "profuse.profile_counter"() : () -> ()
  "profuse.profile_counter"() : () -> ()
  %4 = "profuse.add"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = "profuse.add"(%4, %3) : (tensor<4xf32>, tensor<?xf32>) -> !profuse.tensor
  return %5 : !profuse.tensor
}

// What stands before a block is seen in it; what stands in it is not seen after.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%c: i1, %x: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: %[[E:.*]] = "profuse.exp"
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = scf.if %c -> !profuse.tensor {
    // CHECK-NOT: "profuse.exp"
    %2 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    // CHECK: "profuse.tanh"(%[[E]])
    %3 = "profuse.tanh"(%2) : (!profuse.tensor) -> !profuse.tensor
    %4 = "profuse.sum"(%3) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %4 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  // CHECK: "profuse.tanh"(%[[E]])
  %5 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.add"(%5, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %6 : !profuse.tensor
}

// A caller may write to one of two results: they stay two arrays.
// CHECK-LABEL: func.func @returned
func.func @returned(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  // CHECK-COUNT-2: "profuse.exp"
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.reshape"(%1) {shape = array<i64: -1>} : (!profuse.tensor) -> !profuse.tensor
  return %0, %2 : !profuse.tensor, !profuse.tensor
}

// A kernel writes each of its results to memory of its own.
// CHECK-LABEL: func.func @kernel
func.func @kernel(%x: tensor<4xf32>) -> !profuse.tensor {
  %0, %1 = "profuse.fusion_group"(%x) {callee = @fusion_0} : (tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor)
  return %0 : !profuse.tensor
}
// CHECK-LABEL: func.func private @fusion_0
func.func private @fusion_0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[E:.*]] = "profuse.exp"
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[E]], %[[E]]
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
