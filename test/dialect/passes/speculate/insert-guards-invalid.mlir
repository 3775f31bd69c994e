// RUN: profuse-opt %s -p insert-guards --verify-diagnostics --no-verify
// RUN: not profuse-opt %s -p 'insert-guards{dynamic=maybe}' --no-verify 2>&1 | FileCheck %s

// CHECK: dynamic

func.func @no_callee(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{no function @fusion_0 in this module}}
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_0} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
