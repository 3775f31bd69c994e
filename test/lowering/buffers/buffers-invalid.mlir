// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// A row is read as it was before it has been replaced: the array would be copied in each round.
// CHECK-LABEL: // copied
// CHECK-NEXT:  error: a round of a loop would copy an array that it changes in part
func.func @copied(%x: tensor<8x8xf64, {strides = "contiguous"}>, %y: tensor<8xf64, {strides = "contiguous"}>) -> (tensor<8x8xf64>, tensor<8xf64>) {
  %xc = "profuse.copy"(%x) : (tensor<8x8xf64, {strides = "contiguous"}>) -> tensor<8x8xf64>
  %yc = "profuse.copy"(%y) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r:2 = scf.for %i = %zero to %eight step %one iter_args(%a = %xc, %s = %yc) -> (tensor<8x8xf64>, tensor<8xf64>) : i64 {
    %w = "profuse.pick_scatter"(%a, %s, %i) {index = -9223372036854775808 : i64} : (tensor<8x8xf64>, tensor<8xf64>, i64) -> tensor<8x8xf64>
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8x8xf64>, i64) -> tensor<8xf64>
    scf.yield %w, %v : tensor<8x8xf64>, tensor<8xf64>
  }
  return %r#0, %r#1 : tensor<8x8xf64>, tensor<8xf64>
}

// CHECK-LABEL: // other_type
// CHECK-NEXT:  error: {{.*}}a loop carries tensor<8xf64>, and then tensor<4xf64>
func.func @other_type(%x: tensor<8xf64>, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %t = "profuse.copy"(%x) : (tensor<8xf64>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %t) -> (!profuse.tensor) : i64 {
    %e = "profuse.slice"(%a) {starts = array<i64: 0>, stops = array<i64: 4>} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %e : !profuse.tensor
  }
  return %r : !profuse.tensor
}
