// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<4x1xf32>, %y: tensor<?xf64>, %z: !profuse.tensor) {
  // CHECK-NEXT: "profuse.add"(%arg0, %arg1) : (tensor<4x1xf32>, tensor<?xf64>) -> tensor<4x?xf64>
  %0 = "profuse.add"(%x, %y) : (tensor<4x1xf32>, tensor<?xf64>) -> tensor<4x?xf64>
  // CHECK-NEXT: "profuse.sub"(%0, %arg2) : (tensor<4x?xf64>, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.sub"(%0, %z) : (tensor<4x?xf64>, !profuse.tensor) -> !profuse.tensor
  return
}

// Python numbers are weak beside tensors, and plain Python among themselves.
// CHECK-LABEL: func.func @weak
func.func @weak(%x: tensor<4xf32>, %i: i64, %f: f64, %u: tensor<4xui8>) {
  // CHECK-NEXT: "profuse.mul"(%arg0, %arg2) : (tensor<4xf32>, f64) -> tensor<4xf32>
  %0 = "profuse.mul"(%x, %f) : (tensor<4xf32>, f64) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.add"(%arg3, %arg1) : (tensor<4xui8>, i64) -> tensor<4xui8>
  %1 = "profuse.add"(%u, %i) : (tensor<4xui8>, i64) -> tensor<4xui8>
  // CHECK-NEXT: "profuse.div"(%arg1, %arg1) : (i64, i64) -> f64
  %2 = "profuse.div"(%i, %i) : (i64, i64) -> f64
  // CHECK-NEXT: "profuse.floor_div"(%arg1, %arg1) : (i64, i64) -> i64
  %3 = "profuse.floor_div"(%i, %i) : (i64, i64) -> i64
  return
}

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // CHECK-NEXT: "profuse.pow"
  %0 = "profuse.pow"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.maximum"
  %1 = "profuse.maximum"(%x, %i) : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf64>
  // CHECK-NEXT: "profuse.remainder"
  %2 = "profuse.remainder"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK-NEXT: "profuse.atan2"
  %3 = "profuse.atan2"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.select"
  %4 = "profuse.select"(%i, %x, %x) : (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: "profuse.clip"
  %5 = "profuse.clip"(%x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
