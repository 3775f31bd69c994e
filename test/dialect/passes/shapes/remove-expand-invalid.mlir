// RUN: not profuse-opt %s --pass-pipeline='remove-expand{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=remove-expand --verify-diagnostics

// OPTION: profuse-opt: error: pass remove-expand has no option 'all'
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{broadcast}}
  %0 = "profuse.broadcast_to"(%x) {shape = array<i64: 3>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}
