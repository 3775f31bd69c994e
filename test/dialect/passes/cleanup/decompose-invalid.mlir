// RUN: not profuse-opt %s --pass-pipeline='decompose{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=decompose --verify-diagnostics

// OPTION: profuse-opt: error: pass decompose has no option 'all'
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{alpha must be a Python number}}
  %0 = "profuse.addmm"(%x, %x, %x) {alpha = dense<1.0> : tensor<f32>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
