// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @bare
func.func @bare(%x: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: %0 = "profuse.exp"(%arg0) : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.tanh"(%0)
  %1 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.neg"
  %2 = "profuse.neg"(%1) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.abs"
  %3 = "profuse.abs"(%2) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.logical_not"
  %4 = "profuse.logical_not"(%3) : (!profuse.tensor) -> !profuse.tensor
  // CHECK-NEXT: "profuse.cast"(%{{.*}}) {dtype = bf16}
  %5 = "profuse.cast"(%4) {dtype = bf16} : (!profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}

// CHECK-LABEL: func.func @refined
func.func @refined(%x: tensor<4x?xi32>, %y: tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>) {
  // Results may know less than inference would, or as much.
  // CHECK-NEXT: "profuse.exp"(%arg0) : (tensor<4x?xi32>) -> tensor<4x?xf64>
  %0 = "profuse.exp"(%x) : (tensor<4x?xi32>) -> tensor<4x?xf64>
  // CHECK-NEXT: "profuse.exp"(%arg0) : (tensor<4x?xi32>) -> tensor<*xf64>
  %1 = "profuse.exp"(%x) : (tensor<4x?xi32>) -> tensor<*xf64>
  // CHECK-NEXT: "profuse.isnan"(%arg1) : (tensor<?x8xf32, {{.*}}>) -> tensor<?x8xi1>
  %2 = "profuse.isnan"(%y) : (tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>) -> tensor<?x8xi1>
  return
}

// CHECK-LABEL: func.func @numbers
func.func @numbers(%i: i64, %x: f64, %b: i1) {
  // CHECK-NEXT: "profuse.neg"(%arg0) : (i64) -> i64
  %0 = "profuse.neg"(%i) : (i64) -> i64
  // CHECK-NEXT: "profuse.exp"(%arg1) : (f64) -> tensor<f64>
  %1 = "profuse.exp"(%x) : (f64) -> tensor<f64>
  // CHECK-NEXT: "profuse.logical_not"(%arg2) : (i1) -> i1
  %2 = "profuse.logical_not"(%b) : (i1) -> i1
  return
}
