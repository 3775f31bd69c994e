// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @reshape(%x: tensor<4x6xf32>, %n: i64) {
  // expected-error@+1 {{'profuse.reshape' cannot reshape array of size 24 into shape (5,5)}}
  %0 = "profuse.reshape"(%x) {shape = array<i64: 5, 5>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.reshape' can only specify one unknown dimension}}
  %1 = "profuse.reshape"(%x) {shape = array<i64: -1, -1>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.reshape' 0 sizes are dynamic, but 1 operands give them}}
  %2 = "profuse.reshape"(%x, %n) {shape = array<i64: 24>} : (tensor<4x6xf32>, i64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.reshape' must have at least 1 operand, not 0}}
  %3 = "profuse.reshape"() {shape = array<i64: 24>} : () -> !profuse.tensor
  // expected-error@+1 {{'profuse.broadcast_to' operands could not be broadcast together}}
  %4 = "profuse.broadcast_to"(%x) {shape = array<i64: 4, 5>} : (tensor<4x6xf32>) -> !profuse.tensor
  return
}

// -----

func.func @axes(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'profuse.transpose' axes don't match array}}
  %0 = "profuse.transpose"(%x) {perm = array<i64: 0>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.transpose' result has type tensor<4x6xf32>, but its operands make it tensor<6x4xf32>}}
  %1 = "profuse.transpose"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@+1 {{'profuse.squeeze' cannot select an axis to squeeze out}}
  %2 = "profuse.squeeze"(%x) {axes = array<i64: 0>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.expand_dims' needs attribute 'axes' (integer array)}}
  %3 = "profuse.expand_dims"(%x) : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{axis 2 is out of bounds}}
  %4 = "profuse.flip"(%x) {axes = array<i64: 2>} : (tensor<4x6xf32>) -> !profuse.tensor
  return
}
