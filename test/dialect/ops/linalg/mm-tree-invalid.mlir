// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @counts(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{'profuse.mm_tree' 2 products have 4 factors, not 3}}
  %0 = "profuse.mm_tree"(%a, %a, %a) {adds = array<i64: 0, 1>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{'profuse.mm_tree' adds must leave a sum to add to at every product}}
  %1 = "profuse.mm_tree"(%a, %a, %a, %a) {adds = array<i64: 1, 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{'profuse.mm_tree' adds leaves 2 sums instead of one}}
  %2 = "profuse.mm_tree"(%a, %a, %a, %a) {adds = array<i64: 0, 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{'profuse.mm_tree' transposed has 2 entries for 1 products}}
  %3 = "profuse.mm_tree"(%a, %a) {adds = array<i64: 0>, transposed = array<i1: true, false>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @shapes(%a: tensor<4x3xf32>, %b: tensor<3x8xf32>) {
  // expected-error@+1 {{'profuse.mm_tree' matmul: Input operand 1 has a mismatch in its core dimension 0}}
  %0 = "profuse.mm_tree"(%a, %b, %b, %b) {adds = array<i64: 0, 1>} : (tensor<4x3xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.mm_tree' result has type tensor<8x4xf32>, but its operands make it tensor<4x8xf32>}}
  %1 = "profuse.mm_tree"(%a, %b) {adds = array<i64: 0>} : (tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<8x4xf32>
  // expected-error@+1 {{'profuse.addmm' operands could not be broadcast together}}
  %2 = "profuse.addmm"(%b, %a, %b) {alpha = 2.0 : f64} : (tensor<3x8xf32>, tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf64>
  return
}
