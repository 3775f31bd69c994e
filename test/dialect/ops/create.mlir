// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @numbers
func.func @numbers() {
  // CHECK-NEXT: "profuse.constant"() {value = true} : () -> i1
  %0 = "profuse.constant"() {value = true} : () -> i1
  // CHECK-NEXT: "profuse.constant"() {value = -3 : i64} : () -> i64
  %1 = "profuse.constant"() {value = -3 : i64} : () -> i64
  // CHECK-NEXT: "profuse.constant"() {value = 0x7FF0000000000000 : f64} : () -> f64
  %2 = "profuse.constant"() {value = 0x7FF0000000000000 : f64} : () -> f64
  // CHECK-NEXT: "profuse.constant"() {value = [1.000000e+00, -0.000000e+00]} : () -> complex<f64>
  %3 = "profuse.constant"() {value = [1.0 : f64, -0.0 : f64]} : () -> complex<f64>
  // What people write in IR text.
  // CHECK-NEXT: arith.constant 4 : i64
  %4 = arith.constant 4 : i64
  return
}

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: f64, %n: i64) {
  // CHECK-NEXT: "profuse.constant"() {value = dense<[1, -2]> : tensor<2xi8>} : () -> tensor<2xi8>
  %0 = "profuse.constant"() {value = dense<[1, -2]> : tensor<2xi8>} : () -> tensor<2xi8>
  // CHECK-NEXT: "profuse.constant"() {value = dense<true> : tensor<2x2xi1>} : () -> tensor<2x?xi1>
  %1 = "profuse.constant"() {value = dense<true> : tensor<2x2xi1>} : () -> tensor<2x?xi1>
  // Complex elements are written as their parts.
  // CHECK-NEXT: "profuse.constant"() {value = [dense<{{.*}}> : tensor<2x2xf32>]} : () -> tensor<2xcomplex<f32>>
  %c = "profuse.constant"() {value = [dense<[[1.0, 2.0], [3.0, -0.0]]> : tensor<2x2xf32>]} : () -> tensor<2xcomplex<f32>>
  // CHECK-NEXT: "profuse.full"(%arg0) {dtype = f32, shape = array<i64: 4, 8>} : (f64) -> tensor<4x8xf32>
  %2 = "profuse.full"(%x) {shape = array<i64: 4, 8>, dtype = f32} : (f64) -> tensor<4x8xf32>
  // CHECK-NEXT: "profuse.iota"(%arg1) {shape = array<i64: -9223372036854775808>} : (i64) -> tensor<?xi64>
  %3 = "profuse.iota"(%n) {shape = array<i64: -9223372036854775808>} : (i64) -> tensor<?xi64>
  return
}
