// RUN: profuse-opt %s -p keep-layouts --verify-each | FileCheck %s
// RUN: profuse-opt %s -p 'keep-layouts,keep-layouts' | FileCheck %s

// What NumPy stores with its axes in another order is returned so, and a view puts the axes back.
// CHECK-LABEL: func.func @transposed(
// CHECK:         %[[R:.*]] = scf.if
// CHECK:           %[[F:.*]] = "profuse.fusion_group"({{.*}}) {callee = @fusion_0}
// CHECK-NEXT:      %[[V:.*]] = "profuse.transpose"(%[[F]]) {perm = array<i64: 1, 0>}
// CHECK-NEXT:      scf.yield %[[V]]
// CHECK:           %[[G:.*]] = "profuse.fallback_graph"
// CHECK-NEXT:      scf.yield %[[G]]
// CHECK:         return %[[R]]
func.func @transposed(%x: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.type_check"(%x) {types = [tensor<4x8xf32, {strides = "contiguous"}>]} : (!profuse.tensor) -> (tensor<4x8xf32, {strides = "contiguous"}>, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    %2 = "profuse.fusion_group"(%0#0) {callee = @fusion_0} : (tensor<4x8xf32, {strides = "contiguous"}>) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %3 = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %3 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @fusion_0(
// CHECK-SAME:    -> tensor<4x8xf32>
// CHECK:         %[[E:.*]] = "profuse.exp"
// CHECK-NEXT:    %[[T:.*]] = "profuse.transpose"(%[[E]]) {perm = array<i64: 1, 0>}
// CHECK-NEXT:    return %[[T]] : tensor<4x8xf32>
func.func private @fusion_0(%x: tensor<4x8xf32, {strides = "contiguous"}>) -> tensor<8x4xf32> {
  %0 = "profuse.transpose"(%x) : (tensor<4x8xf32, {strides = "contiguous"}>) -> tensor<8x4xf32>
  %1 = "profuse.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.transpose"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// An operand in Fortran order makes the result one; of operands in both orders C order wins.
// CHECK-LABEL: func.func @orders(
// CHECK:         %[[F:.*]]:2 = "profuse.fusion_group"({{.*}}) {callee = @fusion_1}
// CHECK-NEXT:    %[[V:.*]] = "profuse.transpose"(%[[F]]#0) {perm = array<i64: 2, 1, 0>}
// CHECK-NEXT:    return %[[V]], %[[F]]#1
func.func @orders(%x: tensor<2x3x4xf32, {strides = ["1", "2", "6"]}>, %y: tensor<2x3x4xf32, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor) {
  %0:2 = "profuse.fusion_group"(%x, %y) {callee = @fusion_1} : (tensor<2x3x4xf32, {strides = ["1", "2", "6"]}>, tensor<2x3x4xf32, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor)
  return %0#0, %0#1 : !profuse.tensor, !profuse.tensor
}
func.func private @fusion_1(%x: tensor<2x3x4xf32, {strides = ["1", "2", "6"]}>, %y: tensor<2x3x4xf32, {strides = "contiguous"}>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = "profuse.exp"(%x) : (tensor<2x3x4xf32, {strides = ["1", "2", "6"]}>) -> tensor<2x3x4xf32>
  %1 = "profuse.add"(%0, %y) : (tensor<2x3x4xf32>, tensor<2x3x4xf32, {strides = "contiguous"}>) -> tensor<2x3x4xf32>
  return %0, %1 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// A result that something else reads, or whose order is not known, stays as it is.
// CHECK-LABEL: func.func @read_twice(
// CHECK-NOT:     profuse.transpose
// CHECK:         return
func.func @read_twice(%x: tensor<4x8xf32, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_2} : (tensor<4x8xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}
func.func private @fusion_2(%x: tensor<4x8xf32, {strides = "contiguous"}>) -> tensor<8x4xf32> {
  %0 = "profuse.transpose"(%x) : (tensor<4x8xf32, {strides = "contiguous"}>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @unknown(
// CHECK-NOT:     profuse.transpose
// CHECK:         return
func.func @unknown(%x: tensor<4x8xf32>) -> !profuse.tensor {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_3} : (tensor<4x8xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @fusion_3(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = "profuse.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Sizes need not be known.
// CHECK-LABEL: func.func @symbolic(
// CHECK:         "profuse.transpose"({{.*}}) {perm = array<i64: 1, 0>}
// CHECK:         return
func.func @symbolic(%x: tensor<?x?xf32, {sym = ["s0", "s1"], strides = "contiguous"}>) -> !profuse.tensor {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_4} : (tensor<?x?xf32, {sym = ["s0", "s1"], strides = "contiguous"}>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @fusion_4(%x: tensor<?x?xf32, {sym = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?x?xf32, {sym = ["s1", "s0"]}> {
  %0 = "profuse.transpose"(%x) : (tensor<?x?xf32, {sym = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?x?xf32, {sym = ["s1", "s0"]}>
  %1 = "profuse.exp"(%0) : (tensor<?x?xf32, {sym = ["s1", "s0"]}>) -> tensor<?x?xf32, {sym = ["s1", "s0"]}>
  return %1 : tensor<?x?xf32, {sym = ["s1", "s0"]}>
}

// The place of an axis of one element in memory is no other order: nothing is turned.
// CHECK-LABEL: func.func @one_image(
// CHECK:         %[[F:.*]] = "profuse.fusion_group"({{.*}}) {callee = @fusion_one_image}
// CHECK-NEXT:    return %[[F]]
// CHECK-LABEL: func.func private @fusion_one_image(
// CHECK:         %[[E:.*]] = "profuse.matmul"
// CHECK-NEXT:    return %[[E]]
func.func @one_image(%x: tensor<8x4xf32, {strides = "contiguous"}>, %y: tensor<1x8x3xf32, {strides = "contiguous"}>) -> tensor<1x4x3xf32> {
  %0 = "profuse.fusion_group"(%x, %y) {callee = @fusion_one_image} : (tensor<8x4xf32, {strides = "contiguous"}>, tensor<1x8x3xf32, {strides = "contiguous"}>) -> tensor<1x4x3xf32>
  return %0 : tensor<1x4x3xf32>
}
func.func private @fusion_one_image(%x: tensor<8x4xf32, {strides = "contiguous"}>, %y: tensor<1x8x3xf32, {strides = "contiguous"}>) -> tensor<1x4x3xf32> {
  %0 = "profuse.transpose"(%x) : (tensor<8x4xf32, {strides = "contiguous"}>) -> tensor<4x8xf32>
  %1 = "profuse.matmul"(%0, %y) : (tensor<4x8xf32>, tensor<1x8x3xf32, {strides = "contiguous"}>) -> tensor<1x4x3xf32>
  return %1 : tensor<1x4x3xf32>
}
