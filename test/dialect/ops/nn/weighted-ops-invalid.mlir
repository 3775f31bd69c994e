// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @linear(%x: tensor<2x3xf32>, %w: tensor<5x4xf32>, %t: tensor<2x5x4xf32>) {
  // expected-error@+1 {{'profuse.linear' matmul: Input operand 1 has a mismatch in its core dimension 0}}
  %0 = "profuse.linear"(%x, %w) : (tensor<2x3xf32>, tensor<5x4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.linear' linear takes an array of 1 to 2 axes, not of 3}}
  %1 = "profuse.linear"(%x, %t) : (tensor<2x3xf32>, tensor<2x5x4xf32>) -> !profuse.tensor
  return
}

// -----

func.func @conv2d(%x: tensor<2x4x9x8xf32>, %w: tensor<6x2x3x3xf32>, %h: tensor<6x4x3x3xf16>, %big: tensor<6x4x3x9xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{'profuse.conv2d' conv2d: a weight of shape (6, 2, 3, 3) in 1 groups takes 2 channels and gives a multiple of 1, but there are 4}}
  %0 = "profuse.conv2d"(%x, %w) : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' conv2d: x is of float32, the weight of float16}}
  %1 = "profuse.conv2d"(%x, %h) : (tensor<2x4x9x8xf32>, tensor<6x4x3x3xf16>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' conv2d: a window of 9 elements does not fit into 8 padded ones}}
  %2 = "profuse.conv2d"(%x, %big) : (tensor<2x4x9x8xf32>, tensor<6x4x3x9xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' conv2d: bias has shape (5,), not (6,)}}
  %3 = "profuse.conv2d"(%x, %w, %b) {groups = 2 : i64, given = 1 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<5xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' stride = [0, 1] is no pair of numbers of at least 1}}
  %4 = "profuse.conv2d"(%x, %w) {groups = 2 : i64, stride = array<i64: 0, 1>} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' padding = [1] is no pair of numbers of at least 0}}
  %5 = "profuse.conv2d"(%x, %w) {groups = 2 : i64, padding = array<i64: 1>} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' groups = 0 is less than 1}}
  %6 = "profuse.conv2d"(%x, %w) {groups = 0 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' window = [0, 3] is no pair of numbers of at least 1}}
  %7 = "profuse.conv2d"(%x, %w) {groups = 2 : i64, window = array<i64: 0, 3>} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.conv2d' conv2d: weight has shape (6,2,3,3), not (6,2,5,3)}}
  %8 = "profuse.conv2d"(%x, %w) {groups = 2 : i64, window = array<i64: 5, 3>} : (tensor<2x4x9x8xf32>, tensor<6x2x3x3xf32>) -> !profuse.tensor
  return
}
