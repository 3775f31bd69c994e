// R1.24: elementwise ops broadcast by themselves, where that is shown to give the same.
// RUN: profuse-opt %s --pass-pipeline=remove-expand,dce --verify-each | FileCheck %s

// CHECK-LABEL: func.func @narrowed(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK-NEXT:    %[[R:.*]] = "profuse.add"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[R]]
func.func @narrowed(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = "profuse.broadcast_to"(%y) {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = "profuse.add"(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Here nothing else makes the result as large.
// CHECK-LABEL: func.func @needed(
// CHECK-NEXT:    "profuse.broadcast_to"
// CHECK-NEXT:    "profuse.tanh"
func.func @needed(%y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = "profuse.broadcast_to"(%y) {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = "profuse.tanh"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Of unknown sizes nothing is shown.
// CHECK-LABEL: func.func @unknown(
// CHECK-NEXT:    "profuse.broadcast_to"
// CHECK-NEXT:    "profuse.add"
func.func @unknown(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.broadcast_to"(%y) {shape = array<i64: 4, 8>} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.add"(%x, %0) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// What an importer wrote for an op that broadcasts by itself goes whatever the types are.
// CHECK-LABEL: func.func @implicit(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    "profuse.add"(%[[X]], %[[Y]])
func.func @implicit(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.broadcast_to"(%y) {shape = array<i64: 4, 8>, implicit = true} : (!profuse.tensor) -> !profuse.tensor
  %p = "profuse.profile"(%0) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.add"(%x, %p) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}
