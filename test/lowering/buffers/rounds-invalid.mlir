// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// A round reads what the one before has written.
// CHECK-LABEL: // from_before
// CHECK:         profuse.independent}
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.for
// CHECK:         profuse.one_thread = "rounds write an array at places that others read or write"
func.func @from_before(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %one to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %k = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%a, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A sum has an order.
// CHECK-LABEL: // total
// CHECK:         profuse.one_thread = "a round hands on a number to the next one"
func.func private @total(%x: tensor<8xf64, {strides = "contiguous"}>, %s: f64) -> tensor<f64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %t = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<f64>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %t) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.add"(%a, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %w : tensor<f64>
  }
  return %r : tensor<f64>
}

// Data name the place that a round writes.
// CHECK-LABEL: // placed
// CHECK:         profuse.independent}
// CHECK-NEXT:    scf.for
// CHECK:         profuse.one_thread = "rounds write an array at places that others read or write"
func.func private @placed(%x: tensor<8xf64, {strides = "contiguous"}>, %at: tensor<8xi64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %k = "profuse.pick"(%at, %i) {index = -9223372036854775808 : i64} : (tensor<8xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, tensor<i64>) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A byte that is or-ed together is data, and no note of something forbidden.
// CHECK-LABEL: // any
// CHECK:         arith.ori
// CHECK:         profuse.one_thread = "a round hands on a number to the next one"
func.func private @any(%x: tensor<8xui8, {strides = "contiguous"}>, %n: i64) -> tensor<ui8> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %t = "profuse.max"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<8xui8, {strides = "contiguous"}>) -> tensor<ui8>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %t) -> (tensor<ui8>) : i64 {
    %w = "profuse.bitwise_or"(%a, %t) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
    scf.yield %w : tensor<ui8>
  }
  return %r : tensor<ui8>
}
