// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @compare
func.func @compare(%x: tensor<4xf32>, %y: tensor<3x1xi64>, %i: i64) {
  // CHECK-NEXT: "profuse.lt"(%arg0, %arg1) : (tensor<4xf32>, tensor<3x1xi64>) -> tensor<3x4xi1>
  %0 = "profuse.lt"(%x, %y) : (tensor<4xf32>, tensor<3x1xi64>) -> tensor<3x4xi1>
  // CHECK-NEXT: "profuse.eq"(%arg1, %arg2) : (tensor<3x1xi64>, i64) -> tensor<3x1xi1>
  %1 = "profuse.eq"(%y, %i) : (tensor<3x1xi64>, i64) -> tensor<3x1xi1>
  // CHECK-NEXT: "profuse.ge"(%arg2, %arg2) : (i64, i64) -> i1
  %2 = "profuse.ge"(%i, %i) : (i64, i64) -> i1
  return
}

// CHECK-LABEL: func.func @bits
func.func @bits(%b: tensor<4xi1>, %u: tensor<4xui8>, %i: i64) {
  // CHECK-NEXT: "profuse.logical_and"
  %0 = "profuse.logical_and"(%b, %u) : (tensor<4xi1>, tensor<4xui8>) -> tensor<4xi1>
  // CHECK-NEXT: "profuse.bitwise_xor"
  %1 = "profuse.bitwise_xor"(%b, %u) : (tensor<4xi1>, tensor<4xui8>) -> tensor<4xui8>
  // CHECK-NEXT: "profuse.shift_left"(%arg1, %arg2) : (tensor<4xui8>, i64) -> tensor<4xui8>
  %2 = "profuse.shift_left"(%u, %i) : (tensor<4xui8>, i64) -> tensor<4xui8>
  return
}
