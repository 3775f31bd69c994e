// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @constants() {
  // expected-error@+1 {{'profuse.constant' needs attribute 'value' (constant value)}}
  %0 = "profuse.constant"() : () -> i64
  // expected-error@+1 {{'profuse.constant' result has type i64, but its operands make it f64}}
  %1 = "profuse.constant"() {value = 1.0 : f64} : () -> i64
  // expected-error@+1 {{'profuse.constant' result has type tensor<3xi64>, but its operands make it tensor<2xi64>}}
  %2 = "profuse.constant"() {value = dense<1> : tensor<2xi64>} : () -> tensor<3xi64>
  // expected-error@+1 {{attribute 'value' must be of kind constant value, not @text}}
  %3 = "profuse.constant"() {value = @text} : () -> i64
  // expected-error@+1 {{attribute 'value' must be of kind constant value, not 1 : i32}}
  %4 = "profuse.constant"() {value = 1 : i32} : () -> i64
  // expected-error@+1 {{attribute 'value' must be of kind constant value, not 1.000000e+00 : f32}}
  %5 = "profuse.constant"() {value = 1.0 : f32} : () -> f64
  // expected-error@+1 {{attribute 'value' must be of kind constant value, not dense<(1.000000e+00,2.000000e+00)> : tensor<2xcomplex<f32>>}}
  %6 = "profuse.constant"() {value = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>} : () -> tensor<2xcomplex<f32>>
  return
}

// -----

func.func @sizes(%n: i64) {
  // expected-error@+1 {{'profuse.iota' 1 sizes are dynamic, but 0 operands give them}}
  %0 = "profuse.iota"() {shape = array<i64: -9223372036854775808>} : () -> tensor<?xi64>
  // expected-error@+1 {{'profuse.full' shape [-2] has a negative size}}
  %1 = "profuse.full"(%n) {shape = array<i64: -2>} : (i64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.iota' axis 1 is out of bounds for array of dimension 1}}
  %2 = "profuse.iota"() {shape = array<i64: 4>, axis = 1} : () -> tensor<4xi64>
  return
}
