// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @queries(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'profuse.dim' axes [2]: axis 2 is out of bounds for array of dimension 2}}
  %0 = "profuse.dim"(%x) {axis = 2} : (tensor<4x2xf32>) -> i64
  // expected-error@+1 {{'profuse.rank' result has type f64, but its operands make it i64}}
  %1 = "profuse.rank"(%x) : (tensor<4x2xf32>) -> f64
  // expected-error@+1 {{'profuse.item' can only convert an array of size 1 to a Python scalar}}
  %2 = "profuse.item"(%x) : (tensor<4x2xf32>) -> f64
  // expected-error@+1 {{'profuse.truth' The truth value of an array with more than one element is ambiguous}}
  %3 = "profuse.truth"(%x) : (tensor<4x2xf32>) -> i1
  return
}
