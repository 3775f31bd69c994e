// RUN: profuse-opt %s -p to-gpu --verify-diagnostics --split-input-file

// A round reads what the one before has written.
func.func @from_before(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  // expected-error@+1 {{on a GPU, rounds cannot run at one time: rounds write an array at places that others read or write}}
  %r = scf.for %i = %one to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %k = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%a, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// -----

// A sum has an order.
func.func @total(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<f64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %t = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  // expected-error@+1 {{on a GPU, rounds cannot run at one time: a round hands on a number to the next one}}
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %t) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.add"(%a, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %w : tensor<f64>
  }
  return %r : tensor<f64>
}

// -----

// Each of a few rounds would keep one thread busy.
func.func @few(%x: tensor<4x1000000xf64, {strides = "contiguous"}>) -> tensor<4xf64> {
  %none = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %y = "profuse.full"(%none) {dtype = f64, shape = array<i64: 4>} : (tensor<f64>) -> tensor<4xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 4 : i64} : () -> i64
  // expected-error@+1 {{on a GPU, there are only 4 rounds, and each of them takes long}}
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (tensor<4xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<4x1000000xf64, {strides = "contiguous"}>, i64) -> tensor<1000000xf64>
    %e = "profuse.tanh"(%v) : (tensor<1000000xf64>) -> tensor<1000000xf64>
    %s = "profuse.sum"(%e) {axes = array<i64: 0>, keepdims = false} : (tensor<1000000xf64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %s, %i) {index = -9223372036854775808 : i64} : (tensor<4xf64>, tensor<f64>, i64) -> tensor<4xf64>
    scf.yield %w : tensor<4xf64>
  }
  return %r : tensor<4xf64>
}

// -----

// The second loop needs a number that the first one has written.
func.func @between(%x: tensor<8xf64, {strides = "contiguous"}>) -> (tensor<8xf64>, tensor<8xf64>) {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %none = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %e = "profuse.exp"(%v) : (tensor<f64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %e, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  // expected-error@+1 {{on a GPU, a number is read of what a loop has computed}}
  %s = "profuse.pick"(%r, %one) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
  %y = "profuse.full"(%none) {dtype = f64, shape = array<i64: 8>} : (tensor<f64>) -> tensor<8xf64>
  %q = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %e = "profuse.mul"(%v, %s) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %e, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r, %q : tensor<8xf64>, tensor<8xf64>
}
