// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @join(%x: tensor<4x3xf32>, %y: tensor<5x3xf32>) {
  // expected-error@+1 {{'profuse.concatenate' all the input array dimensions except for the concatenation axis must match exactly}}
  %0 = "profuse.concatenate"(%x, %y) {axis = 1} : (tensor<4x3xf32>, tensor<5x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.concatenate' need at least one array to concatenate}}
  %1 = "profuse.concatenate"() {axis = 0} : () -> !profuse.tensor
  // expected-error@+1 {{'profuse.stack' all input arrays must have the same shape}}
  %2 = "profuse.stack"(%x, %y) : (tensor<4x3xf32>, tensor<5x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.repeat' needs attribute 'repeats' (integer)}}
  %3 = "profuse.repeat"(%x) {axis = 0} : (tensor<4x3xf32>) -> !profuse.tensor
  return
}
