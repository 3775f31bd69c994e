// RUN: not profuse-opt %s --pass-pipeline='batch-matmul{min-products=few}' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: profuse-opt %s --pass-pipeline=batch-matmul --verify-diagnostics

// VALUE: option 'min-products' must be an integer, not 'few'
func.func @result(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{mismatch in its core dimension 0}}
  %0 = "profuse.mm_tree"(%a, %a, %a, %a) {adds = array<i64: 0, 1>} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> !profuse.tensor
  return
}
