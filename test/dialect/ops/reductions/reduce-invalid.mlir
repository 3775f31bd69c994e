// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @axes(%x: tensor<4x8xf32>, %y: tensor<0xf32>) {
  // expected-error@+1 {{'profuse.sum' axes [2]: axis 2 is out of bounds for array of dimension 2}}
  %0 = "profuse.sum"(%x) {axes = array<i64: 2>} : (tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.sum' axes [0, -2]}}
  %1 = "profuse.sum"(%x) {axes = array<i64: 0, -2>} : (tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.max' zero-size array to reduction operation maximum which has no identity}}
  %2 = "profuse.max"(%y) : (tensor<0xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.sum' result has type tensor<4xf32>, but its operands make it tensor<8xf32>}}
  %3 = "profuse.sum"(%x) {axes = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @attributes(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{attribute 'axes' must be of kind integer array, not 0 : i64}}
  %0 = "profuse.sum"(%x) {axes = 0} : (tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{attribute 'keepdims' must be of kind bool, not 1 : i64}}
  %1 = "profuse.sum"(%x) {keepdims = 1} : (tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.sum' has no attribute 'axis'; did you mean 'axes'?}}
  %2 = "profuse.sum"(%x) {axis = 0} : (tensor<4x8xf32>) -> !profuse.tensor
  return
}
