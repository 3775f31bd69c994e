// RUN: profuse-opt -p canonicalize-profuse,dce %s | FileCheck %s

// CHECK-LABEL: func.func @neutral
func.func @neutral(%x: tensor<4xf32>, %i: tensor<?xi32>) -> (tensor<4xf32>, tensor<?xi32>) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %0 = "profuse.mul"(%x, %one) : (tensor<4xf32>, i64) -> tensor<4xf32>
  %1 = "profuse.div"(%0, %one) : (tensor<4xf32>, i64) -> tensor<4xf32>
  %2 = "profuse.sub"(%1, %zero) : (tensor<4xf32>, i64) -> tensor<4xf32>
  // CHECK-NEXT: %[[E:.*]] = "profuse.exp"(%arg0)
  %3 = "profuse.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "profuse.add"(%zero, %i) : (i64, tensor<?xi32>) -> tensor<?xi32>
  // CHECK-NEXT: %[[N:.*]] = "profuse.neg"(%arg1)
  %5 = "profuse.neg"(%4) : (tensor<?xi32>) -> tensor<?xi32>
  // CHECK-NEXT: return %[[E]], %[[N]]
  return %3, %5 : tensor<4xf32>, tensor<?xi32>
}

// -0.0 + 0 is 0.0; complex infinities times 1 are nan; dtypes change; nothing is known.
// CHECK-LABEL: func.func @kept
func.func @kept(%x: tensor<4xf32>, %c: tensor<4xcomplex<f32>>, %i: tensor<4xi32>, %u: !profuse.tensor) -> tensor<f64> {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %minus = arith.constant -0.0 : f64
  // CHECK: "profuse.add"
  %0 = "profuse.add"(%x, %zero) : (tensor<4xf32>, f64) -> tensor<4xf32>
  // CHECK: "profuse.sub"
  %1 = "profuse.sub"(%0, %minus) : (tensor<4xf32>, f64) -> tensor<4xf32>
  // CHECK: "profuse.mul"
  %2 = "profuse.mul"(%c, %one) : (tensor<4xcomplex<f32>>, i64) -> tensor<4xcomplex<f32>>
  // CHECK: "profuse.div"
  %3 = "profuse.div"(%i, %one) : (tensor<4xi32>, i64) -> tensor<4xf64>
  // CHECK: "profuse.mul"
  %4 = "profuse.mul"(%u, %one) : (!profuse.tensor, i64) -> !profuse.tensor
  // CHECK: "profuse.add"
  %5 = "profuse.add"(%1, %2) : (tensor<4xf32>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  // CHECK: "profuse.add"
  %6 = "profuse.add"(%5, %3) : (tensor<4xcomplex<f32>>, tensor<4xf64>) -> tensor<4xcomplex<f64>>
  // CHECK: "profuse.add"
  %7 = "profuse.add"(%6, %4) : (tensor<4xcomplex<f64>>, !profuse.tensor) -> !profuse.tensor
  %8 = "profuse.cast"(%7) {dtype = f64} : (!profuse.tensor) -> tensor<*xf64>
  %9 = "profuse.sum"(%8) : (tensor<*xf64>) -> tensor<f64>
  return %9 : tensor<f64>
}

// CHECK-LABEL: func.func @undone
func.func @undone(%x: tensor<4xf32>, %b: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = "profuse.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[A:.*]] = "profuse.abs"(%arg0)
  %2 = "profuse.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "profuse.abs"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "profuse.logical_not"(%b) : (tensor<4xi1>) -> tensor<4xi1>
  %5 = "profuse.logical_not"(%4) : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK-NEXT: %[[L:.*]] = "profuse.logical_and"(%arg1, %arg1)
  %6 = "profuse.logical_and"(%5, %5) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK-NEXT: return %[[A]], %[[L]]
  return %3, %6 : tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: func.func @casts
func.func @casts(%x: tensor<4xf32>, %d: tensor<4xf64>) -> tensor<4xf32> {
  %0 = "profuse.cast"(%x) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.cast"(%0) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %2 = "profuse.cast"(%1) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  // Narrower and back is no identity.
  // CHECK-NEXT: "profuse.cast"(%arg1) {dtype = f32}
  %3 = "profuse.cast"(%d) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.cast"(%{{.*}}) {dtype = f64}
  %4 = "profuse.cast"(%3) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  // CHECK-NEXT: "profuse.mul"(%arg0,
  %5 = "profuse.mul"(%2, %4) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  %6 = "profuse.cast"(%5) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// CHECK-LABEL: func.func @moves
func.func @moves(%x: tensor<2x3x4xf32>, %s: tensor<?x4xf32, {dims = ["s0", "4"]}>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.transpose"(%x) {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  // CHECK-NEXT: %[[T:.*]] = "profuse.transpose"(%arg0) {perm = array<i64: 0, 2, 1>}
  %1 = "profuse.swapaxes"(%0) {axis1 = 0, axis2 = 2} : (tensor<3x4x2xf32>) -> tensor<2x4x3xf32>
  // CHECK-NEXT: %[[A:.*]] = "profuse.exp"(%[[T]])
  %2 = "profuse.exp"(%1) : (tensor<2x4x3xf32>) -> !profuse.tensor
  %3 = "profuse.transpose"(%1) {perm = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %4 = "profuse.reshape"(%3) {shape = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK-NEXT: %[[R:.*]] = "profuse.reshape"(%arg0) {shape = array<i64: 8, -1>}
  %5 = "profuse.reshape"(%4) {shape = array<i64: 8, -1>} : (tensor<6x4xf32>) -> tensor<8x3xf32>
  // CHECK-NEXT: %[[B:.*]] = "profuse.exp"(%[[R]])
  %6 = "profuse.exp"(%5) : (tensor<8x3xf32>) -> !profuse.tensor
  %7 = "profuse.broadcast_to"(%x) {shape = array<i64: 2, 3, 4>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK-NEXT: %[[C:.*]] = "profuse.exp"(%arg0)
  %8 = "profuse.exp"(%7) : (tensor<2x3x4xf32>) -> !profuse.tensor
  return %2, %6, %8 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// A reshape may copy: two that are returned stay two.
// CHECK-LABEL: func.func @reshaped
func.func @reshaped(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // CHECK-COUNT-2: "profuse.reshape"
  %0 = "profuse.reshape"(%x) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 3, 2>} : (tensor<6xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: return
  return %1 : tensor<3x2xf32>
}

// NumPy returns a fresh array here, not the argument.
// CHECK-LABEL: func.func @returned
func.func @returned(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = arith.constant 1 : i64
  // CHECK: %[[M:.*]] = "profuse.mul"
  %0 = "profuse.mul"(%x, %one) : (tensor<4xf32>, i64) -> tensor<4xf32>
  // The outer `abs` may go: the inner one has made fresh memory that nobody else returns.
  // CHECK-NEXT: %[[A:.*]] = "profuse.abs"
  %1 = "profuse.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "profuse.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[M]], %[[A]]
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// What passes its operand on is that operand, whoever writes to its memory.
// CHECK-LABEL: func.func @passed
func.func @passed(%x: tensor<4xf32>) -> !profuse.tensor {
  // CHECK-NEXT: %[[C:.*]] = "profuse.copy"(%arg0)
  %0 = "profuse.copy"(%x) : (tensor<4xf32>) -> !profuse.tensor
  %1 = "profuse.stop_gradient"(%0) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.mul_"(%[[C]], %arg0)
  %2 = "profuse.mul_"(%1, %x) : (!profuse.tensor, tensor<4xf32>) -> !profuse.tensor
  // CHECK-NEXT: return %[[C]]
  return %0 : !profuse.tensor
}
