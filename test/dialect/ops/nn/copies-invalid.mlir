// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @copies(%x: tensor<2x3x6xf32>, %n: i64) {
  // expected-error@+1 {{'profuse.reshape_copy' cannot reshape array of size 36 into shape (5,7)}}
  %0 = "profuse.reshape_copy"(%x) {shape = array<i64: 5, 7>} : (tensor<2x3x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.reshape_copy' 0 sizes are dynamic, but 1 operands give them}}
  %1 = "profuse.reshape_copy"(%x, %n) {shape = array<i64: 36>} : (tensor<2x3x6xf32>, i64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.squeeze_copy' cannot select an axis to squeeze out which has size not equal to one}}
  %2 = "profuse.squeeze_copy"(%x) {axes = array<i64: 1>} : (tensor<2x3x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.unsqueeze_copy' axes [5]: axis 5 is out of bounds for array of dimension 4}}
  %3 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: 5>} : (tensor<2x3x6xf32>) -> !profuse.tensor
  return
}

// -----

func.func @sums_and_chunks(%x: tensor<2x3x6xf32>, %y: tensor<4x6xf32>) {
  // expected-error@+1 {{'profuse.sum_to_size' shape (2,6) is not broadcast to (2,3,6)}}
  %0 = "profuse.sum_to_size"(%x) {sizes = array<i64: 2, 6>} : (tensor<2x3x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.sum_to_size' sizes [-1] have a negative size}}
  %1 = "profuse.sum_to_size"(%x) {sizes = array<i64: -1>} : (tensor<2x3x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.broadcasting_chunk' operands could not be broadcast together}}
  %2:4 = "profuse.broadcasting_chunk"(%x, %y) {axis = -1 : i64, chunks = 2 : i64} : (tensor<2x3x6xf32>, tensor<4x6xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.broadcasting_chunk' number of chunks must be larger than 0.}}
  %3:2 = "profuse.broadcasting_chunk"(%x, %y) {chunks = 0 : i64} : (tensor<2x3x6xf32>, tensor<4x6xf32>) -> (!profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.add_optional' operands could not be broadcast together}}
  %4 = "profuse.add_optional"(%x, %y) {given = 1 : i64} : (tensor<2x3x6xf32>, tensor<4x6xf32>) -> !profuse.tensor
  return
}

// -----

func.func @dropouts(%x: tensor<2x6xf32>, %i: tensor<2xi64>, %mask: tensor<2x5xi1>, %seed: i64) {
  // expected-error@+1 {{'profuse.random_bits' 1 sizes are dynamic, but 0 operands give them}}
  %0 = "profuse.random_bits"(%seed, %seed) {shape = array<i64: -9223372036854775808>} : (i64, i64) -> !profuse.tensor
  // expected-error@+1 {{'profuse.native_dropout' p = 1.5 is no probability}}
  %1:2 = "profuse.native_dropout"(%x, %seed, %seed) {p = 1.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_dropout' native_dropout takes arrays of real floats, not of int64}}
  %2:2 = "profuse.native_dropout"(%i, %seed, %seed) {p = 0.5 : f64} : (tensor<2xi64>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_dropout_backward' native_dropout_backward: mask has shape (2,5), not (2,6)}}
  %3 = "profuse.native_dropout_backward"(%x, %mask) {scale = 2.0 : f64} : (tensor<2x6xf32>, tensor<2x5xi1>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.native_dropout_backward' native_dropout_backward: the mask is of float32, not of bool}}
  %4 = "profuse.native_dropout_backward"(%x, %x) {scale = 2.0 : f64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> !profuse.tensor
  return
}

// -----

func.func @sites(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>, %seed: i64, %own: i64) {
  %seven = "profuse.constant"() {value = 7 : i64} : () -> i64
  %again = arith.constant 7 : i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %0:2 = "profuse.native_dropout"(%x, %seed, %seven) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  // One site, computed once more.
  %1:2 = "profuse.native_dropout"(%x, %seed, %seven) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  %2:2 = "profuse.native_dropout"(%y, %seed, %eight) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  %3:2 = "profuse.native_dropout"(%y, %own, %seven) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_dropout' draws the numbers of another op: offset 7 : i64 is that op's, too}}
  %4:2 = "profuse.native_dropout"(%y, %seed, %again) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.random_bits' draws the numbers of another op: offset 8 : i64 is that op's, too}}
  %5 = "profuse.random_bits"(%seed, %eight) {shape = array<i64: 4>} : (i64, i64) -> !profuse.tensor
  return
}

// -----

func.func @another(%y: tensor<2x6xf32>, %seed: i64) {
  %seven = "profuse.constant"() {value = 7 : i64} : () -> i64
  %0:2 = "profuse.native_dropout"(%y, %seed, %seven) {p = 0.5 : f64} : (tensor<2x6xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  return
}
