// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @sizes(%a: tensor<4x3xf32>, %b: tensor<4x8xf32>, %s: tensor<f32>, %n: f64) {
  // expected-error@+1 {{'profuse.matmul' matmul: Input operand 1 has a mismatch in its core dimension 0}}
  %0 = "profuse.matmul"(%a, %b) : (tensor<4x3xf32>, tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.matmul' matmul: Input operand 0 does not have enough dimensions}}
  %1 = "profuse.matmul"(%s, %b) : (tensor<f32>, tensor<4x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.matmul'}}
  %2 = "profuse.matmul"(%a, %n) : (tensor<4x3xf32>, f64) -> !profuse.tensor
  return
}

// -----

func.func @results(%a: tensor<4x3xf32>, %b: tensor<3x8xf32>) {
  // expected-error@+1 {{'profuse.matmul' result has type tensor<8x4xf32>, but its operands make it tensor<4x8xf32>}}
  %0 = "profuse.matmul"(%a, %b) : (tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<8x4xf32>
  // expected-error@+1 {{'profuse.matmul' must have 2 operands, not 3}}
  %1 = "profuse.matmul"(%a, %b, %b) : (tensor<4x3xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> !profuse.tensor
  return
}
