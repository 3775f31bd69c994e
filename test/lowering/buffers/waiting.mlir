// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// A sum in order is no SIMD code, so LLVM may unroll the rounds.
// CHECK-LABEL: // sum
// CHECK:         scf.for
// CHECK:           arith.addf
// CHECK:           scf.yield
// CHECK-NEXT:    }
// CHECK-NOT:     llvm.loop_annotation
// CHECK:         return
func.func @sum(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<f64> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %b = "profuse.add"(%a, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}

// Neither is one in an element of an array.
// CHECK-LABEL: // element
// CHECK:         scf.for
// CHECK:           arith.addf
// CHECK:           memref.store
// CHECK-NEXT:    }
// CHECK-NOT:     llvm.loop_annotation
// CHECK:         return
func.func private @element(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<1xf64> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<1xf64>} : () -> tensor<1xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<1xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %old = "profuse.pick"(%a, %zero) {index = -9223372036854775808 : i64} : (tensor<1xf64>, i64) -> tensor<f64>
    %b = "profuse.add"(%old, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %c = "profuse.pick_scatter"(%a, %b, %zero) {index = -9223372036854775808 : i64} : (tensor<1xf64>, tensor<f64>, i64) -> tensor<1xf64>
    scf.yield %c : tensor<1xf64>
  }
  return %r : tensor<1xf64>
}

// The number before becomes SIMD code, as does a sum of functions.
// CHECK-LABEL: // before
// CHECK:         scf.for
// CHECK:           arith.subf
// CHECK:         } {llvm.loop_annotation
// CHECK:         return
func.func private @before(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %o = "profuse.copy"(%x) : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}>
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%y = %o, %a = %start) -> (tensor<?xf64, {dims = ["s0"]}>, tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %d = "profuse.sub"(%v, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %c = "profuse.pick_scatter"(%y, %d, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"]}>, tensor<f64>, i64) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %c, %v : tensor<?xf64, {dims = ["s0"]}>, tensor<f64>
  }
  return %r#0 : tensor<?xf64, {dims = ["s0"]}>
}

// CHECK-LABEL: // functions
// CHECK:         scf.for
// CHECK:           arith.addf
// CHECK:         } {llvm.loop_annotation
// CHECK:         return
func.func private @functions(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<f64> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.exp"(%v) : (tensor<f64>) -> tensor<f64>
    %b = "profuse.add"(%a, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}
