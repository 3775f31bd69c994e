// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @activations(%x: tensor<3x4xf32>, %i: tensor<3xi64>, %n: f64) {
  // expected-error@+1 {{'profuse.gelu' approximate = 'erf' is neither 'none' nor 'tanh'}}
  %0 = "profuse.gelu"(%x) {approximate = "erf"} : (tensor<3x4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.gelu' gelu takes arrays of real floats, not of int64}}
  %1 = "profuse.gelu"(%i) : (tensor<3xi64>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.silu' operand 0 (x) must be a tensor, not f64}}
  %2 = "profuse.silu"(%n) : (f64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.silu' result has type tensor<4xf32>, but its operands make it tensor<3x4xf32>}}
  %3 = "profuse.silu"(%x) : (tensor<3x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @softmaxes(%x: tensor<3x4xf32>, %h: tensor<3x4xf16>, %i: tensor<3xi64>, %e: tensor<3x0xf32>) {
  // expected-error@+1 {{'profuse.softmax' axes [2]: axis 2 is out of bounds for array of dimension 2}}
  %0 = "profuse.softmax"(%x) {axis = 2 : i64} : (tensor<3x4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.softmax' dtype = i64 is no real float}}
  %1 = "profuse.softmax"(%x) {dtype = i64} : (tensor<3x4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.log_softmax' log_softmax takes arrays of real floats, not of int64}}
  %2 = "profuse.log_softmax"(%i) : (tensor<3xi64>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.softmax_backward' softmax_backward: the gradient is of float16, the result of float32}}
  %3 = "profuse.softmax_backward"(%h, %x) : (tensor<3x4xf16>, tensor<3x4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.log_softmax_backward' operands could not be broadcast together}}
  %4 = "profuse.log_softmax_backward"(%x, %e) : (tensor<3x4xf32>, tensor<3x0xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.softmax' zero-size array to reduction operation maximum which has no identity}}
  %5 = "profuse.softmax"(%e) : (tensor<3x0xf32>) -> !profuse.tensor
  return
}
